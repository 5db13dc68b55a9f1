"""What quarterdeck itself does differently for different upstream versions. (``minors`` has what they differ in.)"""

from __future__ import annotations

import re
from enum import StrEnum

from quarterdeck.components.feature_gates import KUBERNETES_GATES
from quarterdeck.components.minors import Minor, flag_problem
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component

FEATURE_GATES = "feature-gates"


class EtcdOption(StrEnum):
    """An option of etcd whose flag was renamed when it left its experimental state."""

    MAX_LEARNERS = "max-learners"
    WATCH_PROGRESS = "watch-progress-notify-interval"
    CATCHUP_ENTRIES = "snapshot-catchup-entries"


class EtcdGate(StrEnum):
    """A feature of etcd that a flag of its own turned on before 3.6, and a feature gate does since."""

    INITIAL_CORRUPT_CHECK = "InitialCorruptCheck"


_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


def _parts(version: str) -> tuple[int, int, int]:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise InvalidInput(f"reading the version {version!r}", "it is not of the form 1.36.3", "give major.minor.patch")
    return int(match[1]), int(match[2]), int(match[3])


def minor(version: str) -> Minor:
    """``(1, 36)`` of ``1.36.3`` or ``v1.36.3``. Raises InvalidInput."""
    return _parts(version)[:2]


def patch(version: str) -> int:
    """``3`` of ``1.36.3`` or ``v1.36.3``. Raises InvalidInput."""
    return _parts(version)[2]


def _etcd_has(flag: str, etcd: str) -> bool:
    return not flag_problem(Component.ETCD, flag, minor(etcd))


def etcd_option(option: EtcdOption, etcd: str, value: str) -> dict[str, str]:
    """The flag (without dashes) of an etcd version and its value; nothing where it has no such option: 3.5 allows one
    learner at a time (etcdserver/api/membership: maxLearners).
    """
    if _etcd_has(option.value, etcd):
        return {option.value: value}
    return {} if option is EtcdOption.MAX_LEARNERS else {f"experimental-{option.value}": value}


def etcd_gate(gate: EtcdGate, etcd: str, *, on: bool) -> tuple[str, str]:
    """The flag (without dashes) that turns a feature on or off, and its value; gates are separated by commas."""
    value = "true" if on else "false"
    if _etcd_has(FEATURE_GATES, etcd):
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


def has_mixed_version_proxy(emulated: Minor) -> bool:
    """Whether UnknownVersionInteroperabilityProxy is on by default in an apiserver that behaves as that minor version;
    where it is off, its flags are refused.
    """
    stage = KUBERNETES_GATES["UnknownVersionInteroperabilityProxy"].at(emulated)
    return stage is not None and stage.on


def reads_admission_manifests(emulated: Minor) -> bool:
    """Whether an apiserver that behaves as that minor version reads admission policies and webhooks from files by
    default: since 1.37 (KEP-5793).
    """
    stage = KUBERNETES_GATES["ManifestBasedAdmissionControlConfig"].at(emulated)
    return stage is not None and stage.on


def holds_migration_locks(kubernetes: str) -> bool:
    """Whether a kube-controller-manager can run controllers under a migration lock. Since 1.36 (and in 1.37.2 still) it
    ends as soon as it gets one: it creates their informers again, and the name of these is taken (kubernetes:
    cmd/kube-controller-manager/app, CreateControllerContext; client-go: tools/cache, NewInformerName).
    """
    return minor(kubernetes) < (1, 36)
