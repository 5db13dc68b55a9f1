"""What an apiserver refuses in a PodSecurityConfiguration (k8s.io/pod-security-admission: admission/api/load,
admission/api/validation, api/helpers.go). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from quarterdeck.api.names import shortened

_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_MODES = ("enforce", "audit", "warn")
_LEVELS = ("privileged", "baseline", "restricted")
_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]*)")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "": ("apiVersion", "kind", "defaults", "exemptions"),
    "defaults": tuple(f"{mode}{part}" for mode in _MODES for part in ("", "-version")),
    "exemptions": ("usernames", "namespaces", "runtimeClasses"),
}


def pod_security_problems(configuration: Mapping[str, object]) -> tuple[str, ...]:
    """``path: what is wrong`` for each problem of a PodSecurityConfiguration; nothing for one that is right."""
    return tuple(_problems(configuration))


def _problems(configuration: Mapping[str, object]) -> Iterator[str]:
    version = str(configuration.get("apiVersion")).rpartition("/")[2]
    if version not in _VERSIONS:
        yield f"apiVersion: {shortened(version)} is not a version of it; there are {', '.join(_VERSIONS)}"
    yield from _unknown("", configuration)
    for part in ("defaults", "exemptions"):
        within = configuration.get(part)
        if within is not None and not isinstance(within, dict):
            yield f"{part}: must be a mapping, not {shortened(within)}"
        elif within:
            yield from _unknown(part, within)
            if part == "defaults":
                yield from _defaults(within)


def _unknown(part: str, within: Mapping[str, object]) -> Iterator[str]:
    for name in within:
        if name not in _FIELDS[part]:
            path = f"{part}.{name}" if part else name
            yield f"{path}: unknown field; there are {', '.join(_FIELDS[part])}"


def _defaults(given: Mapping[str, object]) -> Iterator[str]:
    for mode in _MODES:
        level, version = given.get(mode) or "privileged", given.get(f"{mode}-version") or "latest"
        if level not in _LEVELS:
            yield f"defaults.{mode}: {shortened(level)} is not a level; there are {', '.join(_LEVELS)}"
        if not isinstance(version, str) or _VERSION.fullmatch(version) is None:
            yield f"defaults.{mode}-version: {shortened(version)} is not a version, such as v1.36 or latest"
