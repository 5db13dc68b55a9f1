"""Users' manifests, parsed like kubectl does: errors name document and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from quarterdeck.addons.objects import Manifest
from quarterdeck.api.names import shortened
from quarterdeck.errors import InvalidInput
from quarterdeck.yaml_text.streams import documents

#: Fields that the apiserver writes, and manifests must not declare.
_ITS_OWN = ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink")
#: Metadata that says nothing.
_UNSET = (None, "")


def parsed(text: str, source: str) -> tuple[Manifest, ...]:
    """All objects in a text, with the items of Lists. ``source`` is its name in errors.

    Raises InvalidInput that names the document and the line.
    """
    found: list[Manifest] = []
    for document in documents(text, source):
        found += [_checked(each, place) for place, each in _flat(document.value, document.place)]
    return tuple(found)


def _flat(document: JsonValue, place: str) -> Iterator[tuple[str, JsonValue]]:
    """The objects of a list, or the object itself. As for kubectl, what has ``items`` is a list, whatever its kind is
    called, and an item without kind and version has those of the list's name (apimachinery: unstructured/helpers.go).
    An object with ``items`` and a name is of a kind of somebody's own: lists have no names.
    """
    if not isinstance(document, dict) or not _is_list(document):
        yield place, document
        return
    kind = str(document.get("kind", "")).removesuffix("List")
    listed = document["items"] or ()
    assert isinstance(listed, list | tuple), "a list's items are a list"
    for number, each in enumerate(listed, start=1):
        item = each
        if isinstance(each, dict) and not each.get("kind") and not each.get("apiVersion") and kind:
            item = {**each, "apiVersion": document.get("apiVersion"), "kind": kind}
        yield from _flat(item, f"{place}, item {number}")


def _is_list(document: Mapping[str, JsonValue]) -> bool:
    if "items" not in document or not isinstance(document["items"], list | None):
        return False
    metadata = document.get("metadata")
    named = isinstance(metadata, dict) and metadata.get("name") is not None
    return document.get("kind") == "List" or not named


def _checked(document: JsonValue, place: str) -> Manifest:
    doing = f"reading {place}"
    if not isinstance(document, dict):
        raise InvalidInput(doing, f"an object must be a mapping, not {type(document).__name__}")
    for field in ("apiVersion", "kind"):
        value = document.get(field)
        if not isinstance(value, str) or not value:
            seen = "required, but missing" if value is None else f"{shortened(value)} is not a string"
            raise InvalidInput(doing, f"{field}: {seen}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidInput(doing, f"metadata: required, but missing in this {document['kind']}")
    for field in ("name", "namespace"):
        value = metadata.get(field)
        if not value and isinstance(value, str | None) and field == "namespace":
            continue
        if not isinstance(value, str) or not value or "/" in value:
            seen = "required, but missing" if value is None else f"{shortened(value)} is not a name"
            raise InvalidInput(doing, f"metadata.{field}: {seen} in this {document['kind']}")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field, {}), dict | None):
            raise InvalidInput(doing, f"metadata.{field}: must be a mapping")
    plain: dict[str, JsonValue] = {key: value for key, value in document.items() if key != "status"}
    plain["metadata"] = {key: value for key, value in metadata.items() if key not in _ITS_OWN and value not in _UNSET}
    return plain
