"""Differences between supported upstream versions: the only place that knows flag and API names per version."""

from __future__ import annotations

import re
from enum import StrEnum

from quarterdeck.errors import InvalidInput

FEATURE_GATES = "feature-gates"


class EtcdOption(StrEnum):
    """An option of etcd whose flag was renamed when it left its experimental state."""

    MAX_LEARNERS = "max-learners"
    WATCH_PROGRESS = "watch-progress-notify-interval"
    CATCHUP_ENTRIES = "snapshot-catchup-entries"


class EtcdGate(StrEnum):
    """A feature of etcd that a flag of its own turned on before 3.6, and a feature gate does since."""

    INITIAL_CORRUPT_CHECK = "InitialCorruptCheck"


def minor(version: str) -> tuple[int, int]:
    """``(1, 36)`` of ``1.36.3`` or ``v1.36.3``. Raises InvalidInput."""
    match = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        raise InvalidInput(f"reading the version {version!r}", "it is not of the form 1.36.3", "give major.minor.patch")
    return int(match[1]), int(match[2])


def etcd_flag(option: EtcdOption, etcd: str) -> str:
    """The flag (without dashes) of an etcd version: 3.6 dropped the prefix ``experimental-``."""
    return option.value if minor(etcd) >= (3, 6) else f"experimental-{option.value}"


def etcd_gate(gate: EtcdGate, etcd: str, *, on: bool) -> tuple[str, str]:
    """The flag (without dashes) that turns a feature on or off, and its value; gates are separated by commas."""
    value = "true" if on else "false"
    if minor(etcd) >= (3, 6):
        return FEATURE_GATES, f"{gate}={value}"
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", gate.value).lower()
    return f"experimental-{words}", value


def authentication_api(kubernetes: str) -> str:
    """The apiVersion of the apiserver's AuthenticationConfiguration: v1 since 1.34 (KEP-3331)."""
    return "apiserver.config.k8s.io/" + ("v1" if minor(kubernetes) >= (1, 34) else "v1beta1")


def tells_what_it_loaded(kubernetes: str) -> bool:
    """Whether an apiserver, which reloads its authentication file when that changes, tells the hash of the one that it
    goes by: since 1.34 (kubernetes: authentication_config_controller_last_config_info).
    """
    return minor(kubernetes) >= (1, 34)


def tracing_api(kubernetes: str) -> str:
    """The apiVersion of the apiserver's TracingConfiguration: v1 since 1.34 (KEP-647)."""
    return "apiserver.config.k8s.io/" + ("v1" if minor(kubernetes) >= (1, 34) else "v1beta1")


def has_mixed_version_proxy(kubernetes: str) -> bool:
    """Whether UnknownVersionInteroperabilityProxy is on by default; where it is off, its flags are refused."""
    return minor(kubernetes) >= (1, 36)


def holds_migration_locks(kubernetes: str) -> bool:
    """Whether a kube-controller-manager can run controllers under a migration lock. Since 1.36 (and in 1.37.2 still) it
    ends as soon as it gets one: it creates their informers again, and the name of these is taken (kubernetes:
    cmd/kube-controller-manager/app, CreateControllerContext; client-go: tools/cache, NewInformerName).
    """
    return minor(kubernetes) < (1, 36)
