"""The JSON schema of each kind says what only validators know, as far as it can."""

from __future__ import annotations

import typing
from collections.abc import Iterator

import pytest
from pydantic import AfterValidator, BaseModel, BeforeValidator

from quarterdeck.api.base import API_VERSION, Model, Resource
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.documents import DECLARED
from quarterdeck.api.site import Site

#: Any of these is a bound.
BOUNDS = {
    "pattern", "format", "enum", "const", "maxLength", "minItems", "uniqueItems", "minimum", "maximum",
    "propertyNames", "properties", "anyOf",
}  # fmt: skip


def models(root: type[BaseModel], seen: set[type[BaseModel]] | None = None) -> Iterator[type[BaseModel]]:
    """A model and all that are in it."""
    seen = set() if seen is None else seen
    if root in seen:
        return
    seen.add(root)
    yield root
    for hint in typing.get_type_hints(root, include_extras=True).values():
        for part in parts(hint):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from models(part, seen)


def parts(hint: object) -> Iterator[object]:
    """A type and all that it is made of."""
    yield hint
    for each in typing.get_args(hint):
        yield from parts(each)


def validated() -> Iterator[tuple[type[BaseModel], str]]:
    """The fields that a function checks."""
    for kind in DECLARED:
        for model in models(kind):
            for name in typing.get_type_hints(model):
                if name in model.model_fields and name in model.__annotations__:
                    hint = typing.get_type_hints(model, include_extras=True)[name]
                    if any(isinstance(each, AfterValidator | BeforeValidator) for each in parts(hint)):
                        yield model, name


@pytest.mark.parametrize(
    ("model", "name"), sorted(set(validated()), key=str), ids=lambda each: getattr(each, "__name__", each)
)
def test_a_field_that_a_function_checks_has_a_bound_in_the_schema(model: type[BaseModel], name: str) -> None:
    schema = model.model_json_schema()
    own = schema.get("properties") or schema["$defs"][model.__name__]["properties"]
    found = own[model.model_fields[name].alias or name]
    assert any(BOUNDS & each.keys() for each in flat(found)), found


def flat(schema: dict[str, typing.Any]) -> Iterator[dict[str, typing.Any]]:
    """A schema and its parts; that something may be null bounds nothing."""
    choices = schema.get("anyOf", [])
    if {"type": "null"} in choices:
        schema = {key: value for key, value in schema.items() if key != "anyOf"}
    yield schema
    for each in (*choices, *([schema["items"]] if "items" in schema else [])):
        yield from flat(each)


def test_the_schema_takes_what_people_write_and_says_the_bounds_of_it() -> None:
    defs = ControlPlane.model_json_schema()["$defs"]
    quota = defs["Etcd"]["properties"]["quotaBytes"]
    assert {each.get("type") for each in quota["anyOf"]} == {"number", "string"}
    assert (quota["minimum"], quota["maximum"]) == (64 * 2**20, 64 * 2**30)
    assert defs["ControlPlaneSpec"]["properties"]["replicas"]["enum"] == [1, 3, 5, 7]
    zones = defs["Placement"]["properties"]["zones"]["anyOf"][0]
    assert (zones["minItems"], zones["uniqueItems"], zones["items"]["maxLength"]) == (1, True, 20)
    assert defs["ExtraArgs"]["properties"]["etcd"]["propertyNames"] == {"pattern": "^[a-z0-9][a-z0-9-]*$"}


@pytest.mark.parametrize(("kind", "longest"), [(ControlPlane, 40), (Site, 20)])
def test_the_schema_bounds_a_kinds_name(kind: type[Resource], longest: int) -> None:
    schema = kind.model_json_schema()
    assert schema["properties"]["metadata"]["properties"] == {"name": {"maxLength": longest}}
    assert schema["$defs"]["Metadata"]["properties"]["name"]["pattern"]
    assert schema["properties"]["apiVersion"]["const"] == API_VERSION
    assert schema["additionalProperties"] is False
    assert issubclass(kind, Model)
