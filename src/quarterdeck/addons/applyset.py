"""ApplySets (KEP-3659): the objects of each add-on, recorded in the plane itself.

Each add-on has a parent object, a ConfigMap, which says of which kinds its members are; each member bears a label with
the set's id. So objects that are no longer wanted are found, and ``kubectl`` knows their set.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from quarterdeck.addons.objects import DesiredObject, GroupKind, Manifest, Ref, items, mapping

#: The namespace of the parents. The apiserver forbids its deletion.
NAMESPACE = "kube-system"
#: Namespaces that cannot be deleted (kubernetes: plugin/pkg/admission/namespace/lifecycle).
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
#: The field manager, and the tooling of sets.
MANAGER = "quarterdeck"
TOOLING = "quarterdeck/v1"

ID = "applyset.kubernetes.io/id"
PART_OF = "applyset.kubernetes.io/part-of"
_TOOL = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
_PREFIX = "quarterdeck-addon-"
_ADDON = "quarterdeck.dev/addon"


@dataclass(frozen=True, slots=True)
class ApplySetParent:
    """The parent object of an add-on's set: the kinds and namespaces of its members."""

    addon: str
    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the ConfigMap."""
        return f"{_PREFIX}{self.addon}"

    @property
    def id(self) -> str:
        """The id of the set by KEP-3659: from name, namespace, kind and group."""
        digest = hashlib.sha256(f"{self.name}.{NAMESPACE}.ConfigMap.".encode()).digest()
        return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"

    def widened(self, refs: Iterable[Ref]) -> ApplySetParent:
        """The parent with these members as well: written before the first is applied, so that none is forgotten."""
        refs = tuple(refs)
        kinds = self.kinds | {each.kind for each in refs}
        return ApplySetParent(self.addon, kinds, self.namespaces | {each.namespace for each in refs if each.namespace})

    def manifest(self) -> Manifest:
        """The object itself."""
        others = sorted(self.namespaces - {NAMESPACE})
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "labels": {ID: self.id, _ADDON: self.addon},
                "annotations": {
                    _TOOL: TOOLING,
                    _KINDS: ",".join(sorted(map(str, self.kinds))),
                    **({_NAMESPACES: ",".join(others)} if others else {}),
                },
            },
        }


def parent_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> ApplySetParent | None:
    """The set whose parent a ConfigMap is; None if it is not one of quarterdeck's."""
    addon = labels.get(_ADDON, "")
    if annotations.get(_TOOL) != TOOLING or not addon:
        return None
    kinds = frozenset(GroupKind.parse(each) for each in annotations.get(_KINDS, "").split(",") if each)
    namespaces = frozenset(each for each in annotations.get(_NAMESPACES, "").split(",") if each)
    return ApplySetParent(addon, kinds, namespaces)


def as_member(wanted: DesiredObject, parent: ApplySetParent) -> dict[str, JsonValue]:
    """The manifest to apply for an object, with its namespace and the label of the set."""
    metadata = dict(mapping(wanted.manifest.get("metadata")))
    metadata["labels"] = {**mapping(metadata.get("labels")), PART_OF: parent.id}
    if wanted.ref.namespace:
        metadata["namespace"] = wanted.ref.namespace
    else:
        metadata.pop("namespace", None)
    return {**wanted.manifest, "metadata": metadata}


# Ownership of fields: which may be taken back, and whether any were taken.

#: An item of a list as conflicts name it (structured-merge-diff: fieldpath.PathElement): ``[name="x"]``,
#: ``[containerPort=53,protocol="UDP"]``, ``[="x"]``, ``[0]``.
_ITEM = re.compile(r'\[((?:"(?:[^"\\]|\\.)*"|[^\]"])*)\]')
_PAIR = re.compile(r'([^=,"]*)=("(?:[^"\\]|\\.)*"|[^,]+)')


def owned_fields(managed: JsonValue) -> JsonValue:
    """The fields of an object that quarterdeck owns, by its ``managedFields``."""
    for each in items(managed):
        if (each.get("manager"), each.get("operation")) == (MANAGER, "Apply") and not each.get("subresource"):
            return dict(mapping(each.get("fieldsV1")))
    return None


def fields_digest(owned: Mapping[Ref, JsonValue]) -> str:
    """A digest of the fields of objects that quarterdeck owns: it changes as soon as another manager takes one."""
    rows = [(str(ref), owned[ref]) for ref in sorted(owned)]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def ours(fields: Iterable[str], before: Manifest | None) -> bool:
    """Whether quarterdeck had set all fields that another manager owns now: only these are taken back."""
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
