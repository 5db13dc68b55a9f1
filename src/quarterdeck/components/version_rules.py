"""What the versions of a plane's programs mean for it: flags and gates that they refuse, and known flaws. Pure."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.admission_plugins import listed
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.feature_gates import gates_problem
from quarterdeck.components.minors import ETCD, KUBERNETES, Minor, MinorRelease, dotted, flag_problem
from quarterdeck.components.record import Flags
from quarterdeck.components.transitions.upgrade_windows import behaviour
from quarterdeck.components.upstream_versions import FEATURE_GATES, minor, patch
from quarterdeck.model.components import Component

#: Programs of the Kubernetes version. (A cloud controller manager has a version of its own.)
_KUBERNETES = (Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER)
_RUNTIME_CONFIG = "runtime-config"


def illegal_flags(
    declared: ReplicaTemplate | ControlPlaneSpec, before: ReplicaTemplate | ControlPlaneSpec | None = None
) -> tuple[str, ...]:
    """Which of the users' flags the versions of a plane refuse, each with its path and the reason; without those that
    they refused ``before`` a change as well.
    """
    how, known = behaviour(declared), illegal_flags(before) if before is not None else ()
    found = (
        *problems(declared, binary=how.binary, emulated=how.emulated),
        *etcd_problems(declared, minor(declared.etcd.version)),
    )
    return tuple(each for each in found if each not in known)


def problems(declared: ReplicaTemplate | ControlPlaneSpec, *, binary: Minor, emulated: Minor) -> tuple[str, ...]:
    """Which of the users' flags are illegal for Kubernetes programs of the minor version ``binary`` that emulate
    ``emulated`` (equal: they emulate none), each with its path and the reason.

    Flags are those of the binary; feature gates and APIs those of the emulated version (KEP-4330). Alpha gates and
    APIs are refused while an older version is emulated: upstream logs that it does not support them.
    """
    return tuple(
        found
        for component in _KUBERNETES
        for found in _of_program(component, declared, binary=binary, emulated=emulated)
    )


def etcd_problems(declared: ReplicaTemplate | ControlPlaneSpec, binary: Minor) -> tuple[str, ...]:
    """Which of the users' flags are illegal for an etcd of the minor version ``binary``, with paths and reasons."""
    return tuple(_of_program(Component.ETCD, declared, binary=binary, emulated=binary))


def flaws(declared: ReplicaTemplate | ControlPlaneSpec) -> tuple[str, ...]:
    """The known flaws of the versions of a plane, and which patch releases have none of them; a sentence each."""
    versions = (
        ("Kubernetes", KUBERNETES, declared.kubernetes_version),
        ("etcd", ETCD, declared.etcd.version),
    )
    return tuple(filter(None, (_flaws(name, minors.get(minor(at)), at) for name, minors, at in versions)))


def _flaws(name: str, release: MinorRelease | None, version: str) -> str:
    there = [each for each in release.flaws if patch(version) < each.fixed] if release is not None else []
    if not there:
        return ""
    fixed = f"{dotted(minor(version))}.{max(each.fixed for each in there)}"
    known = "; ".join(each.what for each in there)
    return f"{name} {version.removeprefix('v')} has flaws that {fixed} does not have: {known}"


def _of_program(
    component: Component, declared: ReplicaTemplate | ControlPlaneSpec, *, binary: Minor, emulated: Minor
) -> list[str]:
    flags = _flags(component)
    found: list[str] = []
    for flag, value in (flags.given(declared) or {}).items():
        why = flag_problem(component, flag, binary)
        if not why and flag == FEATURE_GATES:
            why = gates_problem(component, value, binary=binary, emulated=emulated)
        if not why and flag == _RUNTIME_CONFIG and emulated != binary:
            why = _alpha_apis(value, emulated)
        if why:
            found.append(f"{flags.path}.{flag}: {why}")
    return found


def _flags(component: Component) -> Flags:
    flags = CATALOGUE[component].flags
    assert flags is not None, "users can set flags of it"
    return flags


def _alpha_apis(value: str, emulated: Minor) -> str:
    """Why a value of ``--runtime-config`` is refused while a version is emulated; "" if it is not."""
    pairs = [each.partition("=") for each in listed(value)]
    on = [name for name, _, word in pairs if ("alpha" in name or name == "api/all") and word.lower() != "false"]
    return f"alpha APIs are not supported while {dotted(emulated)} is emulated: {', '.join(on)}" if on else ""
