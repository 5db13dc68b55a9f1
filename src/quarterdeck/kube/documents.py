"""The parts that quarterdeck reads of what apiservers answer."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from quarterdeck.kube.port import LeaderLease


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Metadata(_Document):
    """ObjectMeta."""

    name: str
    resource_version: str = Field(alias="resourceVersion")


class LeaseSpec(_Document):
    """The spec of a coordination.k8s.io/v1 Lease."""

    holder: str | None = Field(default=None, alias="holderIdentity")
    renewed: datetime | None = Field(default=None, alias="renewTime")
    duration: float | None = Field(default=None, alias="leaseDurationSeconds")


class LeaseDocument(_Document):
    """A coordination.k8s.io/v1 Lease."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()

    def lease(self) -> LeaderLease:
        """What the port gives."""
        return LeaderLease(
            name=self.metadata.name,
            holder=self.spec.holder or "",
            renewed=None if self.spec.renewed is None else self.spec.renewed.timestamp(),
            duration=self.spec.duration or 0.0,
            resource_version=self.metadata.resource_version,
        )


class VersionDocument(_Document):
    """What /version answers."""

    release: str = Field(alias="gitVersion")
