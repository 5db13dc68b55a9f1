"""Resources as documents: YAML with several documents, or JSON (one object, or a List of them)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from pydantic import JsonValue

from quarterdeck.api.base import API_VERSION, Model, R, Resource, without_unset
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.errors import explained
from quarterdeck.api.names import shortened
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Site
from quarterdeck.errors import InvalidInput
from quarterdeck.yaml_text import dumped_all
from quarterdeck.yaml_text.streams import documents

M = TypeVar("M", bound=Model)

#: What users declare and read.
Declared: TypeAlias = ControlPlane | Site | Operation
DECLARED: tuple[type[Declared], ...] = (ControlPlane, Site, Operation)


def load(text: str, source: str) -> tuple[Declared, ...]:
    """All resources in ``text``, which is YAML or JSON; ``source`` is its name in errors.

    Raises InvalidInput that names every problem of the first bad document, with its path.
    """
    found = _documents(text, source)
    if not found:
        raise InvalidInput(f"reading {source}", "it contains no resource")
    resources: list[Declared] = []
    for place, document in found:
        resource = _declared(document, place)
        if any(each.kind == resource.kind and each.name == resource.name for each in resources):
            raise InvalidInput(f"reading {place}", f"{resource.kind} {resource.name!r} was there before")
        resources.append(resource)
    return tuple(resources)


def parse(kind: type[R], document: JsonValue, doing: str) -> R:
    """A resource from plain data with the documents' field names. Raises InvalidInput."""
    return parse_part(kind, document, doing)


def parse_part(kind: type[M], document: JsonValue, doing: str) -> M:
    """``parse`` for data that is not a resource. Raises InvalidInput."""
    try:
        text = json.dumps(without_unset(document, kind))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(doing, f"it holds what JSON cannot: {error}") from error
    with explained(doing, kind):
        return kind.model_validate_json(text, by_alias=True, by_name=False)


def single(text: str, source: str) -> JsonValue:
    """The only document in a text. Raises InvalidInput."""
    found = list(documents(text, source))
    if len(found) != 1:
        seen = f"{len(found)} documents are in it, not one" if found else "there is nothing in it"
        raise InvalidInput(f"reading {source}", seen)
    value: JsonValue = found[0].value
    return value


def dump_yaml(resources: Sequence[Resource]) -> str:
    """YAML that ``load`` reads back, one document for each resource."""
    return dumped_all(_plain(resource) for resource in resources)


def dump_json(resources: Sequence[Resource]) -> str:
    """JSON that ``load`` reads back: the object if there is one resource, else a List."""
    if len(resources) == 1:
        return json.dumps(_plain(resources[0]), indent=2, ensure_ascii=False) + "\n"
    items = [_plain(resource) for resource in resources]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"


def _plain(resource: Resource) -> JsonValue:
    plain: dict[str, JsonValue] = resource.model_dump(mode="json", exclude_none=True)
    return {"apiVersion": plain["apiVersion"], "kind": plain["kind"], **plain}


def _declared(document: JsonValue, place: str) -> Declared:
    doing = f"reading {place}"
    if not isinstance(document, dict):
        raise InvalidInput(doing, f"a resource must be a mapping, not {shortened(document)}")
    kinds = {each.__name__: each for each in DECLARED}
    kind = document.get("kind")
    if kind is None:
        raise InvalidInput(doing, "kind: required, but missing", f"there are {', '.join(kinds)}")
    if not isinstance(kind, str) or kind not in kinds:
        alike = difflib.get_close_matches(str(kind), kinds, n=1)
        hint = f"did you mean {alike[0]!r}?" if alike else f"there are {', '.join(kinds)}"
        raise InvalidInput(doing, f"kind: unknown kind {shortened(kind)}", hint)
    version = document.get("apiVersion")
    if version != API_VERSION:
        seen = "required, but missing" if version is None else f"must be {API_VERSION!r}, not {shortened(version)}"
        raise InvalidInput(doing, f"apiVersion: {seen}", f"write apiVersion: {API_VERSION}")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    called = f" {name!r}" if isinstance(name, str) else ""
    return parse(kinds[kind], document, f"reading {kind}{called} in {place}")


def _documents(text: str, source: str) -> list[tuple[str, JsonValue]]:
    """All resources of a text, those of a List or of a list one by one, with the place of each in errors."""
    found = list(documents(text, source))
    flat: list[tuple[str, JsonValue]] = []
    for document in found:
        value = document.value
        if isinstance(value, dict) and value.get("kind") == "List":
            value = value.get("items")
            if not isinstance(value, list):
                raise InvalidInput(f"reading {document.place}", "items: a List needs a list of resources here")
        if not isinstance(value, list):
            flat.append((document.place, value))
            continue
        flat += [(f"{document.place}, item {number}", each) for number, each in enumerate(value, start=1)]
    return flat
