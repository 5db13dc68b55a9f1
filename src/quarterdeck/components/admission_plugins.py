"""Admission plugins: those that quarterdeck adds to the default ones, and their configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from quarterdeck.api.names import shortened
from quarterdeck.api.plane.apiserver import AdmissionPlugin
from quarterdeck.yaml_text import dumped

#: Always on: without it a kubelet may change any node and any pod.
NEEDED = "NodeRestriction"
#: On unless the user turns them off (``disable-admission-plugins``).
ADDED = ("DenyServiceExternalIPs", "EventRateLimit")

#: Plugins that may not be disabled. The others that are on by default only fill in what users leave out.
PROTECTIVE = frozenset(
    {
        NEEDED,
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "NamespaceLifecycle",
        "PodSecurity",
        "ResourceQuota",
        "ServiceAccount",
        "StorageObjectInUseProtection",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    }
)

#: Events a second, and at once, that one apiserver takes: of all, of a namespace, of one object from one source. Far
#: above what client-go's own filter lets any one client send about an object (25 at once, then one in 5 minutes), and
#: above what etcd can write; so only a runaway client meets them.
_EVENT_LIMITS: tuple[tuple[str, int, int], ...] = (
    ("Server", 5_000, 20_000),
    ("Namespace", 1_000, 10_000),
    ("SourceAndObject", 20, 200),
)


def listed(value: str) -> tuple[str, ...]:
    """The words of a flag that takes a list."""
    return tuple(word for each in value.split(",") if (word := each.strip()))


def plugins(extra: Mapping[str, str]) -> dict[str, str]:
    """``enable-admission-plugins``: quarterdeck's, with those that the user adds, without those that the user disables.

    A plugin that is both enabled and disabled keeps an apiserver from starting.
    """
    disabled = set(listed(extra.get("disable-admission-plugins", "")))
    named = (NEEDED, *ADDED, *listed(extra.get("enable-admission-plugins", "")))
    return {"enable-admission-plugins": ",".join(dict.fromkeys(each for each in named if each not in disabled))}


def admission_configuration(given: Sequence[AdmissionPlugin], reading: Mapping[str, object]) -> str:
    """An AdmissionConfiguration with the user's plugins, those that are ``reading`` manifests, and with the limits for
    events unless the user gave others.
    """
    if not given and not reading:
        return _own_configuration()
    return _document({**_own(), **{each.name: each.configuration for each in given}, **reading})


@cache
def _own_configuration() -> str:
    return _document(_own())


def _own() -> dict[str, object]:
    limits = [{"type": kind, "qps": qps, "burst": burst} for kind, qps, burst in _EVENT_LIMITS]
    group = "eventratelimit.admission.k8s.io/v1alpha1"
    return {"EventRateLimit": {"apiVersion": group, "kind": "Configuration", "limits": limits}}


def _document(plugins: Mapping[str, object]) -> str:
    return dumped(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": name, "configuration": plugins[name]} for name in sorted(plugins)],
        }
    )


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
    """``path: problem`` for each problem of a PodSecurityConfiguration; empty for a valid one."""
    return tuple(_problems(configuration))


def _problems(configuration: Mapping[str, object]) -> Iterator[str]:
    version = str(configuration.get("apiVersion")).rpartition("/")[2]
    if version not in _VERSIONS:
        yield f"apiVersion: {shortened(version)} is not a version of it; use one of {', '.join(_VERSIONS)}"
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
            yield f"{path}: unknown field; use one of {', '.join(_FIELDS[part])}"


def _defaults(given: Mapping[str, object]) -> Iterator[str]:
    for mode in _MODES:
        level, version = given.get(mode) or "privileged", given.get(f"{mode}-version") or "latest"
        if level not in _LEVELS:
            yield f"defaults.{mode}: {shortened(level)} is not a level; use one of {', '.join(_LEVELS)}"
        if not isinstance(version, str) or _VERSION.fullmatch(version) is None:
            yield f"defaults.{mode}-version: {shortened(version)} is not a version, such as v1.36 or latest"
