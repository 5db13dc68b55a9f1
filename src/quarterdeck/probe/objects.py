"""The probe's objects, and the apiserver's answers about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.errors import Unavailable
from quarterdeck.probe.ledger import ObjectSlot
from quarterdeck.probe.wire import Request

_LABEL = "quarterdeck.dev/probe"


class WatchEventType(StrEnum):
    """The types of watch events."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class SeenObject:
    """An object as it was read. ``slot`` is None for objects that are not the probe's."""

    slot: ObjectSlot | None
    number: int
    revision: int


@dataclass(frozen=True, slots=True)
class ObjectEvent:
    """One line of a watch. ``code`` is the status of an ERROR."""

    type: WatchEventType
    seen: SeenObject
    code: int = 0


@dataclass(frozen=True, slots=True)
class Requests:
    """All requests of a probe, for one namespace."""

    namespace: str
    id: str

    @property
    def _folder(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def create_namespace(self) -> Request:
        """Create the probe's namespace."""
        metadata = {"name": self.namespace, "labels": {_LABEL: self.id}}
        return _json("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def delete_namespace(self) -> Request:
        """Delete the probe's namespace."""
        return Request("DELETE", f"/api/v1/namespaces/{self.namespace}")

    def create(self, slot: ObjectSlot) -> Request:
        """Create an object with number 0."""
        return _json("POST", self._folder, self._object(slot, 0))

    def write(self, slot: ObjectSlot, number: int) -> Request:
        """Set an object's number, whatever it was: repeating it changes nothing, so this is idempotent."""
        return _json("PUT", f"{self._folder}/{slot.name}", self._object(slot, number))

    def read(self, slot: ObjectSlot) -> Request:
        """Read an object. No resourceVersion is given, so the read is linearizable."""
        return Request("GET", f"{self._folder}/{slot.name}")

    def list(self) -> Request:
        """Read all objects, linearizable."""
        return Request("GET", f"{self._folder}?labelSelector={_LABEL}%3D{self.id}")

    def watch(self, revision: int) -> Request:
        """Watch all objects from after ``revision``."""
        selector = f"labelSelector={_LABEL}%3D{self.id}"
        return Request("GET", f"{self._folder}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}&{selector}")

    def delete_all(self) -> Request:
        """Delete all objects."""
        return Request("DELETE", f"{self._folder}?labelSelector={_LABEL}%3D{self.id}")

    def _object(self, slot: ObjectSlot, number: int) -> dict[str, object]:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": slot.name, "namespace": self.namespace, "labels": {_LABEL: self.id}},
            "data": {"writer": str(slot.writer), "slot": str(slot.index), "number": str(number)},
        }


def parse_object(body: bytes) -> SeenObject:
    """A ConfigMap from the apiserver. Raises Unavailable for anything else."""
    return _seen(_load(body))


def parse_list(body: bytes) -> tuple[dict[ObjectSlot, int], int]:
    """A list's objects of the probe, and its revision. Raises Unavailable for anything else."""
    document = _load(body)
    items = document.get("items") or []
    if not isinstance(items, list):
        raise Unavailable("reading a list from the apiserver", "its items are not a list")
    found = [_seen(item) for item in items]
    return {each.slot: each.number for each in found if each.slot is not None}, _seen(document).revision


def parse_event(line: bytes) -> ObjectEvent:
    """One line of a watch. Raises Unavailable for anything else."""
    document = _load(line)
    try:
        kind = WatchEventType(str(document.get("type")))
    except ValueError as error:
        raise Unavailable("reading a watch event", f"unknown type {document.get('type')!r}") from error
    inner = document.get("object")
    if not isinstance(inner, dict):
        raise Unavailable("reading a watch event", "it has no object")
    code = inner.get("code")
    return ObjectEvent(kind, _seen(inner), code if isinstance(code, int) else 0)


def _seen(document: dict[str, object]) -> SeenObject:
    metadata = document.get("metadata")
    data = document.get("data")
    revision = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    at = int(revision) if isinstance(revision, str) and revision.isdigit() else 0
    try:
        if isinstance(data, dict):
            return SeenObject(ObjectSlot(int(data["writer"]), int(data["slot"])), int(data["number"]), at)
    except (KeyError, TypeError, ValueError):
        pass  # not the probe's
    return SeenObject(None, 0, at)


def _json(method: str, path: str, document: dict[str, object]) -> Request:
    return Request(method, path, json.dumps(document, separators=(",", ":")).encode())


def _load(body: bytes) -> dict[str, object]:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise Unavailable("reading an answer of the apiserver", f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise Unavailable("reading an answer of the apiserver", "it is not an object")
    return document
