"""The parts of apiservers' answers that quarterdeck reads."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from quarterdeck.kube.port import SeenLease

_FIRST = datetime.min.replace(tzinfo=UTC)


class _Document(BaseModel):
    # Built on first use: most commands read few of these documents.
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class ManagedFields(_Document):
    """The fields that a program wrote last, and when."""

    manager: str = ""
    time: datetime = _FIRST
    fields: dict[str, JsonValue] = Field(default_factory=dict, alias="fieldsV1")

    def has(self, *path: str) -> bool:
        """Whether a field is among them."""
        found: JsonValue = self.fields
        for each in path:
            found = found.get(f"f:{each}") if isinstance(found, dict) else None
        return found is not None


class ObjectMeta(_Document):
    """ObjectMeta."""

    name: str
    resource_version: str = Field(alias="resourceVersion")
    managed: tuple[ManagedFields, ...] = Field(default=(), alias="managedFields")


class LeaseSpec(_Document):
    """The spec of a coordination.k8s.io/v1 Lease."""

    holder: str | None = Field(default=None, alias="holderIdentity")
    acquired: datetime | None = Field(default=None, alias="acquireTime")
    renewed: datetime | None = Field(default=None, alias="renewTime")
    duration: float | None = Field(default=None, alias="leaseDurationSeconds")
    transitions: int | None = Field(default=None, alias="leaseTransitions")


class LeaseDocument(_Document):
    """A coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()

    def lease(self, *, deleted: bool = False, answered_at: float | None = None) -> SeenLease:
        """The port's form. The manager that wrote the holder holds it: other managers keep fields that they wrote
        earlier. The times of managedFields are the apiserver's own (apimachinery:
        managedfields/internal/managedfieldsupdater.go).
        """
        spec = self.spec
        wrote = [each for each in self.metadata.managed if each.has("spec", "holderIdentity")]
        renewed = [each.time for each in self.metadata.managed if each.has("spec", "renewTime") and each.time > _FIRST]
        return SeenLease(
            name=self.metadata.name,
            holder=spec.holder or "",
            renewed=_seconds(spec.renewed),
            duration=spec.duration or 0.0,
            resource_version=self.metadata.resource_version,
            acquired=_seconds(spec.acquired),
            transitions=spec.transitions or 0,
            manager=max(wrote, key=lambda each: each.time).manager if wrote else "",
            deleted=deleted,
            written_at=_seconds(max(renewed, default=None)),
            answered_at=answered_at,
        )


class ListMetadata(_Document):
    """ListMeta."""

    resource_version: str = Field(alias="resourceVersion")


class LeaseListDocument(_Document):
    """A list of Leases."""

    metadata: ListMetadata
    items: tuple[LeaseDocument, ...] = ()


class WatchEvent(_Document):
    """An event of a watch. Its object is a Lease or, for an error, a Status."""

    type: str
    object: dict[str, JsonValue]


class StatusDocument(_Document):
    """A Status."""

    code: int = 0
    message: str = ""


class AccessReviewStatus(_Document):
    """SubjectAccessReviewStatus."""

    allowed: bool


class AccessReviewDocument(_Document):
    """An authorization.k8s.io/v1 SubjectAccessReview that was answered."""

    status: AccessReviewStatus


class VersionDocument(_Document):
    """What /version answers."""

    release: str = Field(alias="gitVersion")


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
