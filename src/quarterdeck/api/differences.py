"""The differences between two specs of a plane, field by field."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue
from typing_extensions import override

from quarterdeck.api.base import Model
from quarterdeck.api.controlplane import ControlPlaneSpec


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field (``spec.etcd.quotaBytes``), and its values as documents have them; None where it is not set."""

    path: str
    before: JsonValue
    after: JsonValue

    @override
    def __str__(self) -> str:
        """Such as ``spec.replicas: 1 → 3``."""
        return f"{self.path}: {shown(self.before)} → {shown(self.after)}"


def differences(before: ControlPlaneSpec, after: ControlPlaneSpec) -> tuple[FieldDifference, ...]:
    """Every field that differs, in the order of the spec. Lists are compared as a whole."""
    return tuple(FieldDifference(*each) for each in leaves("spec", _plain(before), _plain(after)))


def shown(value: JsonValue) -> str:
    """A value in one line, for people."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(shown(each) for each in value) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {shown(each)}" for key, each in value.items()) or "{}"
    return str(value)


def _plain(spec: ControlPlaneSpec) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = spec.model_dump(mode="json", exclude_none=True)
    # Add-on values may contain passwords: that they differ is enough.
    plain["addons"] = {each.name: f"sha256 {_hash(each)}" for each in spec.addons}
    return by_name(without_secrets(plain))


#: Fields that may contain passwords or keys, and what each is a field of.
_SECRETS = frozenset(
    {("cloudControllerManager", "config"), ("server", "clientKey"), ("server", "token"), ("tlsConfig", "keyData")}
)


def without_secrets(plain: dict[str, JsonValue], inside: str = "") -> dict[str, JsonValue]:
    """A document with the hashes of its secrets in their place: that they differ is enough. ``inside``: its field."""

    def hidden(name: str, value: JsonValue) -> JsonValue:
        if isinstance(value, list):
            return [hidden(name, each) for each in value]
        if isinstance(value, dict):
            return without_secrets(value, name)
        return hashed(value) if isinstance(value, str) and (inside, name) in _SECRETS else value

    return {name: hidden(name, value) for name, value in plain.items()}


def hashed(text: str) -> str:
    """What stands for a text that is long or secret."""
    return f"{text.count(chr(10)) + 1} lines, sha256 {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def by_name(plain: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """A document with its controller sets by name, so that differences name the set."""
    sets = plain.get("controllerSets")
    if not isinstance(sets, list):
        return plain
    return {**plain, "controllerSets": {str(each["name"]): each for each in sets if isinstance(each, dict)}}


def _hash(model: Model) -> str:
    return hashlib.sha256(model.model_dump_json(exclude_none=True).encode()).hexdigest()[:8]


def leaves(path: str, before: JsonValue, after: JsonValue) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """The fields at or below ``path`` in which two documents differ, with their values; in the order of the first."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from leaves(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif before != after:
        yield path, before, after
