"""What all resources share: Kubernetes' shape, camelCase outside and snake_case inside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from quarterdeck.api.names import dns_label
from quarterdeck.api.problems import refuse

API_VERSION: Final = "quarterdeck.dev/v1alpha1"


class Model(BaseModel):
    """A part of a resource. Strict: text is never taken for a number, unknown fields are refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class OwnerReference(Model):
    """The resource that another one belongs to, and goes with."""

    api_version: str
    kind: str
    name: str
    uid: str


class Metadata(Model):
    """Who a resource is. All but name, labels and annotations is the store's, or quarterdeck's, to write.

    There is one ``namespace`` so far. ``finalizers`` name works to be done before a resource that is to be deleted
    goes: see ``Store.delete``.
    """

    name: Annotated[str, AfterValidator(dns_label)]
    namespace: Literal["default"] = "default"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    resource_version: str | None = None
    generation: int = 1
    creation_timestamp: AwareDatetime | None = None
    uid: str | None = None
    deletion_timestamp: AwareDatetime | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


def owner_reference(owner: Resource) -> OwnerReference:
    """The reference to a stored resource, for what belongs to it."""
    assert owner.metadata.uid is not None, "a stored resource has a uid"
    return OwnerReference(
        api_version=owner.api_version, kind=type(owner).__name__, name=owner.name, uid=owner.metadata.uid
    )


class Resource(Model):
    """The root of the kinds. Each has a field ``kind``, which is the name of its class."""

    api_version: Literal["quarterdeck.dev/v1alpha1"] = API_VERSION
    metadata: Metadata

    @property
    def name(self) -> str:
        """The name in the metadata."""
        return self.metadata.name


R = TypeVar("R", bound=Resource)


def named_within(longest: int) -> Callable[[Metadata], Metadata]:
    """A check that the name has at most ``longest`` characters, so that all names built from it fit."""

    def check(metadata: Metadata) -> Metadata:
        if len(metadata.name) > longest:
            refuse(("name", f"has {len(metadata.name)} characters; at most {longest} are allowed"))
        return metadata

    return check


def instant(now: float) -> datetime:
    """A moment on the wall clock (seconds since 1970) as resources show it."""
    return datetime.fromtimestamp(now, UTC)
