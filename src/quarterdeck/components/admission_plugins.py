"""The admission plugins that quarterdeck adds to those that are on by default, and their configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

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
#: above what etcd can write; so only a client gone wild meets them.
_EVENT_LIMITS: tuple[tuple[str, int, int], ...] = (
    ("Server", 5_000, 20_000),
    ("Namespace", 1_000, 10_000),
    ("SourceAndObject", 20, 200),
)


def listed(value: str) -> tuple[str, ...]:
    """The words of a flag that takes a list."""
    return tuple(word for each in value.split(",") if (word := each.strip()))


def plugins(extra: Mapping[str, str]) -> dict[str, str]:
    """``enable-admission-plugins``: ours, with what the user's extra arguments add, without what they disable.

    A plugin that is both enabled and disabled keeps an apiserver from starting.
    """
    disabled = set(listed(extra.get("disable-admission-plugins", "")))
    named = (NEEDED, *ADDED, *listed(extra.get("enable-admission-plugins", "")))
    return {"enable-admission-plugins": ",".join(dict.fromkeys(each for each in named if each not in disabled))}


def admission_configuration(given: Sequence[AdmissionPlugin]) -> str:
    """An AdmissionConfiguration with the user's plugins, and with the limits for events unless the user gave others."""
    if not given:
        return _own_configuration()
    return _document({**_own(), **{each.name: each.configuration for each in given}})


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
