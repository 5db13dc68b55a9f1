"""Whose fields are: what may be taken back, and whether anybody took any."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from quarterdeck.addons.applyset import MANAGER
from quarterdeck.addons.objects import Manifest, Ref, items, mapping

#: An item of a list as conflicts name it (structured-merge-diff: fieldpath.PathElement): ``[name="x"]``,
#: ``[containerPort=53,protocol="UDP"]``, ``[="x"]``, ``[0]``.
_ITEM = re.compile(r'\[((?:"(?:[^"\\]|\\.)*"|[^\]"])*)\]')
_PAIR = re.compile(r'([^=,"]*)=("(?:[^"\\]|\\.)*"|[^,]+)')


def owned_fields(managed: JsonValue) -> JsonValue:
    """What quarterdeck owns of an object, by its ``managedFields``."""
    for each in items(managed):
        if (each.get("manager"), each.get("operation")) == (MANAGER, "Apply") and not each.get("subresource"):
            return dict(mapping(each.get("fieldsV1")))
    return None


def fields_digest(owned: Mapping[Ref, JsonValue]) -> str:
    """A digest of what quarterdeck owns of objects: it is another one as soon as somebody took any of it."""
    rows = [(str(ref), owned[ref]) for ref in sorted(owned)]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def ours(fields: Iterable[str], before: Manifest | None) -> bool:
    """Whether quarterdeck had set all of the fields that somebody else owns now: only these are taken back."""
    fields = tuple(fields)
    return before is not None and bool(fields) and all(_has(dict(before), each) for each in fields)


def _has(value: JsonValue, path: str) -> bool:
    """Whether a manifest has a field. Keys of maps may have dots themselves, so each that fits is tried."""
    if not path:
        return True
    if path.startswith(".") and isinstance(value, dict):
        return any(_has(each, path[1 + len(key) :]) for key, each in value.items() if path.startswith(f".{key}"))
    found = _ITEM.match(path)
    if found is None or not isinstance(value, list):
        return False
    return any(_has(each, path[found.end() :]) for number, each in enumerate(value) if _is(each, number, found[1]))


def _is(item: JsonValue, number: int, named: str) -> bool:
    """Whether an item of a list is the one that is named so. A key that it does not say has its default."""
    pairs = [(key, _plain(text)) for key, text in _PAIR.findall(named)]
    if not pairs:
        return named == str(number)
    if not pairs[0][0]:
        return item == pairs[0][1]
    return isinstance(item, dict) and all(item.get(key, known) == known for key, known in pairs)


def _plain(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        return text
    return value
