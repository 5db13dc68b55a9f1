"""What all resources share: Kubernetes' shape, camelCase outside and snake_case inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import override

from quarterdeck.api.names import DNS_LABEL_MAX, dns_label
from quarterdeck.api.problems import refuse
from quarterdeck.api.schema import label, spell_out

API_VERSION: Final = "quarterdeck.dev/v1alpha1"


class Model(BaseModel):
    """A part of a resource. Strict: text is never taken for a number, unknown fields are refused; but the store, which
    a newer version may have written, is read with those that are unknown, and they are written again as they were.
    """

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    @classmethod
    @override
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core)
        spell_out(handler.resolve_ref_schema(schema).get("properties", {}).values())
        return schema

    @model_serializer(mode="wrap")
    def _with_what_is_unknown(self, known: SerializerFunctionWrapHandler) -> dict[str, Any]:
        plain: dict[str, Any] = known(self)
        return {**plain, **self.__pydantic_extra__} if self.__pydantic_extra__ else plain


def unknown_fields(model: BaseModel, path: str = "") -> Iterator[str]:
    """The paths of all fields that this version does not know, such as ``spec.etcd.tier``."""
    inside = f"{path}." if path else ""
    for name in model.__pydantic_extra__ or {}:
        yield f"{inside}{name}"
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        where = f"{inside}{info.alias or name}"
        for number, each in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(each, BaseModel):
                yield from unknown_fields(each, f"{where}[{number}]" if isinstance(value, tuple) else where)


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

    name: Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]
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
