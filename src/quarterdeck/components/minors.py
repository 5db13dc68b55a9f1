"""The supported minor versions of Kubernetes and etcd: what each of them removes and adds, and flaws of its patch
releases. Pure data; ``feature_gates`` has the gates, ``version_rules`` what follows for a plane.

Upstream: ``--help`` of each program, and what etcd makes of each flag of any version; lifecycle tags and types of
``k8s.io/api``, and the discovery of apiservers with all APIs turned on; the changelogs of Kubernetes and etcd;
https://kubernetes.io/releases for the ends of support. etcd publishes no such dates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TypeAlias

from quarterdeck.model.components import Component

#: Major and minor version: ``(1, 36)``.
Minor: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Flaw:
    """A flaw, in words, of the patch releases before ``fixed``."""

    fixed: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MinorRelease:
    """A minor version, compared with the supported one before it.

    ``newest``: the patch release that this was read from. ``lowest``: older ones are not supported.
    ``upgraded_from``: the oldest patch release of the minor version before that can be upgraded to this one.
    ``supported_until``: the last day of upstream's support (None: upstream names none). ``flags_gone``: the flags
    (without dashes) that each program has no more, and what to set instead ("": nothing). ``flags_new``: those that it
    did not have.
    ``apis_gone``: the kinds of each API version that are no longer served. ``flaws``: those of its patch releases that
    a plane notices; older ones than ``lowest`` are left out.
    """

    newest: int
    lowest: int = 0
    upgraded_from: int = 0
    supported_until: date | None = None
    flags_gone: Mapping[Component, Mapping[str, str]] = field(default_factory=dict)
    flags_new: Mapping[Component, tuple[str, ...]] = field(default_factory=dict)
    apis_gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flaws: tuple[Flaw, ...] = ()


KUBERNETES: Mapping[Minor, MinorRelease] = {
    (1, 33): MinorRelease(
        newest=13,
        supported_until=date(2026, 6, 28),
        flaws=(
            Flaw(3, "lists of several pages are read from etcd, not from the apiserver's cache (kubernetes#132337)"),
            Flaw(4, "kube-scheduler can crash on pods whose resources are resized (kubernetes#133285)"),
            Flaw(6, "kube-controller-manager mishandles orphaned pods of DaemonSets (kubernetes#134652)"),
        ),
    ),
    (1, 34): MinorRelease(
        newest=4,
        supported_until=date(2026, 10, 27),
        flags_new={
            Component.APISERVER: (
                "coordinated-leadership-lease-duration",
                "coordinated-leadership-renew-deadline",
                "coordinated-leadership-retry-period",
            ),
        },
        apis_gone={
            "admissionregistration.k8s.io/v1beta1": ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
            "resource.k8s.io/v1alpha3": ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
        },
        flaws=(
            Flaw(2, "all pods of StatefulSets are replaced after the upgrade from 1.33 (kubernetes#135087)"),
            Flaw(3, "informers of the programs ignore their transformers, and need more memory (kubernetes#135592)"),
        ),
    ),
    (1, 35): MinorRelease(
        newest=4,
        supported_until=date(2027, 2, 28),
        flags_new={
            Component.APISERVER: ("min-compatibility-version",),
            Component.CONTROLLER_MANAGER: (
                "concurrent-device-taint-eviction-syncs",
                "controller-shutdown-timeout",
                "min-compatibility-version",
            ),
            Component.SCHEDULER: ("min-compatibility-version",),
        },
        apis_gone={
            "certificates.k8s.io/v1alpha1": ("PodCertificateRequest",),
            "storage.k8s.io/v1alpha1": ("VolumeAttributesClass",),
            "storagemigration.k8s.io/v1alpha1": ("StorageVersionMigration",),
        },
        flaws=(Flaw(1, "kube-scheduler is slow, because its requests are throttled (kubernetes#135904)"),),
    ),
    (1, 36): MinorRelease(
        newest=3,
        supported_until=date(2027, 6, 28),
        flags_new={
            Component.APISERVER: ("tls-curve-preferences",),
            Component.CONTROLLER_MANAGER: ("tls-curve-preferences", "concurrent-resourceclaim-syncs"),
            Component.SCHEDULER: ("tls-curve-preferences",),
        },
        apis_gone={"scheduling.k8s.io/v1alpha1": ("Workload",)},
        flaws=(Flaw(2, "kube-controller-manager can crash on Services without spec.ipFamilies (kubernetes#139233)"),),
    ),
    (1, 37): MinorRelease(
        newest=2,
        supported_until=date(2027, 10, 28),
        flags_gone={Component.CONTROLLER_MANAGER: {"concurrent-service-syncs": ""}},
        flags_new={Component.CONTROLLER_MANAGER: ("concurrent-disruption-syncs",)},
        apis_gone={
            "certificates.k8s.io/v1alpha1": ("ClusterTrustBundle",),
            "networking.k8s.io/v1beta1": ("IPAddress", "ServiceCIDR"),
            "scheduling.k8s.io/v1alpha2": ("PodGroup", "Workload"),
            "storage.k8s.io/v1beta1": ("VolumeAttributesClass",),
        },
    ),
}

#: Options of etcd whose flags began with ``experimental-`` before 3.6, and could do so in 3.6 too.
_RENAMED = (
    "bootstrap-defrag-threshold-megabytes",
    "compact-hash-check-time",
    "compaction-batch-limit",
    "compaction-sleep-interval",
    "corrupt-check-time",
    "distributed-tracing-address",
    "distributed-tracing-instance-id",
    "distributed-tracing-sampling-rate",
    "distributed-tracing-service-name",
    "downgrade-check-time",
    "enable-distributed-tracing",
    "memory-mlock",
    "peer-skip-client-san-verification",
    "snapshot-catchup-entries",
    "warning-apply-duration",
    "watch-progress-notify-interval",
)
#: Flags of etcd that became feature gates in 3.6, without ``experimental-``.
_NOW_GATES: Mapping[str, str] = {
    "compact-hash-check-enabled": "CompactHashCheck",
    "enable-lease-checkpoint": "LeaseCheckpoint",
    "enable-lease-checkpoint-persist": "LeaseCheckpointPersist",
    "initial-corrupt-check": "InitialCorruptCheck",
    "stop-grpc-service-on-defrag": "StopGRPCServiceOnDefrag",
    "txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
}
_WARNING_UNARY = "warning-unary-request-duration"
_WATCHES = "users with etcd's own permissions can watch keys that they must not read (GHSA-xg4h-6gfc-h4m8)"
_HANDSHAKES = "connections that never finish their TLS handshake are kept forever (GHSA-6vch-q96h-7gc3)"

# Patch releases before the lowest have bugs in membership changes that lose members or data.
ETCD: Mapping[Minor, MinorRelease] = {
    (3, 5): MinorRelease(newest=35, lowest=31, flaws=(Flaw(33, _WATCHES), Flaw(33, _HANDSHAKES))),
    (3, 6): MinorRelease(
        newest=16,
        lowest=12,
        # Older ones have members that only one of etcd's two stores knows (etcd#20793, etcd#20967).
        upgraded_from=32,
        flags_gone={
            Component.ETCD: dict.fromkeys(
                (
                    "enable-v2",
                    "experimental-enable-v2v3",
                    "proxy",
                    "proxy-dial-timeout",
                    "proxy-failure-wait",
                    "proxy-read-timeout",
                    "proxy-refresh-interval",
                    "proxy-write-timeout",
                ),
                "",
            )
        },
        flags_new={
            Component.ETCD: (
                *_RENAMED,
                *(
                    f"discovery-{each}"
                    for each in (
                        "cacert",
                        "cert",
                        "dial-timeout",
                        "endpoints",
                        "insecure-skip-tls-verify",
                        "insecure-transport",
                        "keepalive-time",
                        "keepalive-timeout",
                        "key",
                        "password",
                        "request-timeout",
                        "token",
                        "user",
                    )
                ),
                f"experimental-{_WARNING_UNARY}",
                "feature-gates",
                "log-format",
                "max-learners",
                _WARNING_UNARY,
            )
        },
        flaws=(Flaw(14, _WATCHES), Flaw(14, _HANDSHAKES)),
    ),
    (3, 7): MinorRelease(
        newest=3,
        upgraded_from=11,
        flags_gone={
            Component.ETCD: {
                "discovery": "",
                "discovery-proxy": "",
                **{f"experimental-{each}": f"--{each}" for each in (*_RENAMED, _WARNING_UNARY)},
                **{f"experimental-{each}": f"the feature gate {gate}" for each, gate in _NOW_GATES.items()},
            }
        },
        flaws=(Flaw(1, _WATCHES), Flaw(1, _HANDSHAKES)),
    ),
}


def dotted(minor: Minor) -> str:
    """``1.36``."""
    return f"{minor[0]}.{minor[1]}"


def minors_of(component: Component) -> Mapping[Minor, MinorRelease]:
    """The minor versions of the project of a program."""
    return ETCD if component == Component.ETCD else KUBERNETES


def flag_problem(component: Component, flag: str, minor: Minor) -> str:
    """Why a program of that minor version has no such flag; "" if it has it, or no supported version does."""
    name = "etcd" if component == Component.ETCD else "Kubernetes"
    seen = f"{name} {dotted(minor)} has no --{flag}"
    for each, release in sorted(minors_of(component).items()):
        if each <= minor and (instead := release.flags_gone.get(component, {}).get(flag)) is not None:
            return f"{seen}, which was removed in {dotted(each)}{f': set {instead} instead' if instead else ''}"
        if each > minor and flag in release.flags_new.get(component, ()):
            return f"{seen}, which is new in {dotted(each)}"
    return ""
