"""The shape of all resources: Kubernetes' conventions, camelCase outside and snake_case inside."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from enum import Enum, StrEnum
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import override

from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.names import DNS_LABEL_MAX, dns_label
from quarterdeck.api.schema import label, refuse, spell_out

API_VERSION: Final = "quarterdeck.dev/v1alpha1"


#: The configuration of all models that people and programs see.
STRICT: Final = ConfigDict(
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


class Model(BaseModel):
    """A part of a resource. Strict: text is never converted to a number, unknown fields are refused. But the store,
    which a newer version may have written, is read with its unknown fields, and they are written back unchanged.
    """

    model_config = STRICT

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
    """The resource that another one is deleted with."""

    #: The format of the owner.
    api_version: str
    #: The kind of the owner.
    kind: str
    #: The name of the owner.
    name: str
    #: The id of the owner.
    uid: str


class Metadata(Model):
    """The identity of a resource. Users write its name, labels and annotations; the store writes the rest."""

    #: The name of the resource.
    name: Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]
    #: The namespace; there is only one.
    namespace: Literal["default"] = "default"
    #: Labels of the user.
    labels: dict[str, str] = Field(default_factory=dict)
    #: Annotations of the user.
    annotations: dict[str, str] = Field(default_factory=dict)
    #: The version of the stored resource. An update with an old version is refused.
    resource_version: str | None = None
    #: The number of changes of the spec.
    generation: int = 1
    #: When the resource was created.
    creation_timestamp: AwareDatetime | None = None
    #: The id of the resource. No other resource ever has it.
    uid: str | None = None
    #: When the deletion of the resource was requested.
    deletion_timestamp: AwareDatetime | None = None
    #: Work to finish before a deleted resource disappears.
    finalizers: tuple[str, ...] = ()
    #: The resources that this one is deleted with.
    owner_references: tuple[OwnerReference, ...] = ()


def owner_reference(owner: Resource) -> OwnerReference:
    """The reference to a stored resource, for resources that it owns."""
    assert owner.metadata.uid is not None, "a stored resource has a uid"
    return OwnerReference(
        api_version=owner.api_version, kind=type(owner).__name__, name=owner.name, uid=owner.metadata.uid
    )


class Resource(Model):
    """The root of the kinds. Each has a field ``kind``, the name of its class."""

    #: The version of the format.
    api_version: Literal["quarterdeck.dev/v1alpha1"] = API_VERSION
    #: The name of the resource and its labels.
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
    """A time of the wall clock (seconds since 1970) as resources show it."""
    return datetime.fromtimestamp(now, UTC)


# Conditions: statements about a resource, with a time and a reason.


class ConditionStatus(StrEnum):
    """Kubernetes' three answers."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """A statement about a resource, in the Kubernetes form."""

    #: What the condition is about.
    type: str
    #: Whether the statement holds.
    status: ConditionStatus
    #: Why, as one word for programs.
    reason: str
    #: Why, as a sentence for people.
    message: str = ""
    #: When `status` last changed.
    last_transition_time: AwareDatetime
    #: The generation of the spec that the statement is about.
    observed_generation: int | None = None


def with_condition(
    conditions: tuple[Condition, ...],
    kind: ConditionType,
    status: ConditionStatus,
    *,
    reason: ConditionReason,
    now: float,
    message: str = "",
    observed_generation: int | None = None,
) -> tuple[Condition, ...]:
    """``conditions`` with the one of type ``kind`` set; ``now`` (wall clock, seconds) is used only if its status
    changes.
    """
    before = find_condition(conditions, kind)
    same = before is not None and before.status == status
    condition = Condition(
        type=kind.value,
        status=status,
        reason=reason.value,
        message=message,
        last_transition_time=before.last_transition_time if before is not None and same else instant(now),
        observed_generation=observed_generation,
    )
    if before is None:
        return (*conditions, condition)
    return tuple(condition if each.type == kind else each for each in conditions)


def find_condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((each for each in conditions if each.type == kind), None)


# Fields that a document names and leaves empty: as for Kubernetes, they are not set. A field of null is absent
# (apiextensions prunes it before it sets defaults), and so is an optional text that is empty (Go's ``omitempty``).

#: Marks an optional text for which "" is a value.
EMPTY_MEANS_SOMETHING: Final = object()
#: The text values of a document.
_TEXTS = (str, Enum, PurePath, datetime)


def without_unset(document: JsonValue, *models: type[BaseModel]) -> JsonValue:
    """A document without its empty fields. ``models``: the candidates for its model."""
    if isinstance(document, list):
        return [without_unset(each, *models) for each in document]
    if not isinstance(document, dict) or not models:
        return document
    fields = {info.alias or name: info for model in models for name, info in model.model_fields.items()}
    return {
        name: without_unset(value, *_models_in(fields[name].annotation)) if name in fields else value
        for name, value in document.items()
        if not (name in fields and _is_unset(value, fields[name]))
    }


def _is_unset(value: JsonValue, field: FieldInfo) -> bool:
    if field.is_required():
        return False
    if value == "":
        return field.default is None and EMPTY_MEANS_SOMETHING not in field.metadata and _is_text(field.annotation)
    return value is None


def _is_text(annotation: Any) -> bool:
    if get_origin(annotation) is Literal:
        return True
    if isinstance(annotation, type):
        return issubclass(annotation, _TEXTS)
    return any(map(_is_text, _parts(annotation)))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in _parts(annotation):
        yield from _models_in(each)


def _parts(annotation: Any) -> tuple[Any, ...]:
    """The parts of an optional, a list or an annotated type; a mapping's keys are the user's own, not fields."""
    if hasattr(annotation, "__metadata__"):
        return (annotation.__origin__,)
    wanted = (Union, types.UnionType, tuple)
    return get_args(annotation) if get_origin(annotation) in wanted else ()
