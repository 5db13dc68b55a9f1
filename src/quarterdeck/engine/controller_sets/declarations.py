"""Validation of controller sets: names that programs know, owners that run them, and changes after which no two
managers run one controller.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec
from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.components.admission_plugins import listed
from quarterdeck.components.catalogue import flags_field, flags_of
from quarterdeck.components.controller.common import shared_defaults
from quarterdeck.components.controller.names import (
    ALWAYS_KUBE,
    CLOUDS_ALONE,
    KUBE_OFF,
    NODE_IPAM,
    TOKENS,
    Listed,
    canonical,
    enabled,
    has,
    names_of,
    parse_help,
    suggested,
)
from quarterdeck.components.upstream_versions import FEATURE_GATES, minor
from quarterdeck.errors import InvalidInput, PreconditionFailed, TimedOut
from quarterdeck.model.components import Component
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.runner import run, start

#: Seconds that a program has to print its help, and variables of the environment that it gets.
_HELP_DEADLINE = 5.0
_ENVIRONMENT = ("PATH", "HOME", "LANG")
#: Sets of one manager without a warning.
_FEW = 2

_SETS, _CLOUD = "spec.controllerSets", "spec.cloudControllerManager"


async def admit_controllers(wanted: ControlPlane, current: ControlPlane | None) -> None:
    """``admit_sets``, with the controllers that the cloud controller manager's program lists. The program is run only
    when the sets or the program change. Raises what ``admit_sets`` does.
    """
    before = current.spec if current is not None else None
    sets = (wanted.spec.controller_sets, before.controller_sets if before is not None else ())
    cloud, kept = wanted.spec.cloud_controller_manager, before is not None and _as_before(wanted.spec, before)
    program = cloud.program if cloud is not None and any(sets) and not kept else None
    admit_sets(wanted, current, await listed_by(Path(program)) if program is not None else None)


async def listed_by(program: Path) -> Listed | None:
    """The controllers that a program lists; None for one without a help text like upstream's."""
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="quarterdeck-help-") as folder:
        try:
            by, doing = start(folder=Path(folder), environment=environment), f"reading the flags of {program}"
            ended = await run((str(program), "--help"), doing=doing, deadline=_HELP_DEADLINE, by=by)
        except (OSError, TimedOut):
            return None  # a program of another kind: its controllers are unknown
    return parse_help(ended.output) or parse_help(ended.errors)


def admit_sets(wanted: ControlPlane, current: ControlPlane | None, says: Listed | None = None) -> None:
    """Refuse controller sets that no lock could guard. ``says``: the controllers of the cloud controller manager's
    program (None: unknown).

    Raises InvalidInput for invalid sets, PreconditionFailed for sets that cannot follow ``current`` (None: the plane
    does not exist yet) and for a version whose controllers are unknown.
    """
    before = current.spec if current is not None else None
    _Sets(name=wanted.name, spec=wanted.spec, says=says).check(before)


def warnings_of(spec: ControlPlaneSpec) -> tuple[Finding, ...]:
    """Warnings about valid sets."""
    owned = {each: [one.name for one in spec.controller_sets if one.owner is each] for each in ControllerProgram}
    return tuple(
        Finding(
            "controller sets",
            Verdict.WARN,
            f"{manager} owns {len(names)} ({', '.join(names)}): it has one migration lock at a time, so all others"
            " are under its main lock",
        )
        for manager, names in owned.items()
        if len(names) > _FEW
    )


def _as_before(wanted: ControlPlaneSpec, before: ControlPlaneSpec) -> bool:
    """Whether nothing has changed on which names depend: a program that is now missing blocks no other change."""
    return (wanted.controller_sets, wanted.cloud_controller_manager, wanted.kubernetes_version) == (
        before.controller_sets,
        before.cloud_controller_manager,
        before.kubernetes_version,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sets:
    """The sets of a plane, and its programs."""

    name: str
    spec: ControlPlaneSpec
    says: Listed | None

    @property
    def doing(self) -> str:
        return f"checking the controller sets of plane {self.name}"

    @property
    def minor(self) -> tuple[int, int]:
        return minor(self.spec.kubernetes_version)

    def check(self, before: ControlPlaneSpec | None) -> None:
        """Raises InvalidInput and PreconditionFailed."""
        if before is not None:
            self._check_cloud_stays(before)
        if self.spec.controller_sets:
            refuse_flags(self.spec)
        for path, each in self._paths():
            if each.owner is ControllerProgram.CLOUD and self.spec.cloud_controller_manager is None:
                seen = f"{path}.owner: it is cloud-controller-manager, and there is no {_CLOUD}"
                raise InvalidInput(self.doing, seen, "declare one, or choose kube-controller-manager")
            if before is None or not _as_before(self.spec, before):
                self._check_names(path, each)
            self._check_owner_runs(path, each)
        if before is not None:
            self._check_changes(before)

    def _paths(self) -> Iterator[tuple[str, ControllerSetSpec]]:
        for number, each in enumerate(self.spec.controller_sets):
            yield f"{_SETS}[{number}]", each

    # names

    def _check_names(self, path: str, each: ControllerSetSpec) -> None:
        for name in each.controllers:
            self._check_canonical(f"{path}.controllers: {name}", name)
            if not has(each.owner, self.minor, name, self.says):
                self._refuse_owner(f"{path}.controllers: {name}", name, each.owner)
            if self._would_end(each.owner.other, name):
                raise InvalidInput(
                    self.doing,
                    f"{path}.controllers: {name} is unknown to the program of {_CLOUD}, which exits when it must"
                    " turn it off",
                    "remove it from the set: only one manager has it",
                )

    def _check_canonical(self, seen: str, name: str) -> None:
        if canonical(name) == ALWAYS_KUBE:
            why = "is always run by kube-controller-manager, under its main lock alone"
            raise InvalidInput(self.doing, f"{seen} {why}", "remove it from the set")
        if canonical(name) != name:
            why = "is a short name, under which it would run under the main locks of both managers"
            raise InvalidInput(self.doing, f"{seen} {why}", f"write {canonical(name)}")

    def _refuse_owner(self, seen: str, name: str, owner: ControllerProgram) -> None:
        """Raises InvalidInput: its owner does not have it."""
        if owner is ControllerProgram.KUBE and name in CLOUDS_ALONE:
            why = "is never run by kube-controller-manager"
            raise InvalidInput(self.doing, f"{seen} {why}", "remove it from the set: no other manager runs it")
        kube = set(names_of(ControllerProgram.KUBE, self.minor))
        if owner is ControllerProgram.KUBE:
            program, known = f"kube-controller-manager {self.spec.kubernetes_version}", kube - CLOUDS_ALONE
        elif self.says is not None:
            program, known = f"the program of {_CLOUD}", set(self.says.names)
        else:
            program, known = (
                f"Kubernetes {self.spec.kubernetes_version}",
                kube | {*names_of(ControllerProgram.CLOUD, self.minor)},
            )
        nearest = suggested(name, known - {ALWAYS_KUBE})
        next_step = f"did you mean {nearest}?" if nearest else "see what the program's --help lists at --controllers"
        raise InvalidInput(self.doing, f"{seen} is no controller of {program}", next_step)

    def _would_end(self, manager: ControllerProgram, name: str) -> bool:
        """Whether a manager that does not own it exits when it must turn it off, because it does not know it."""
        if manager is ControllerProgram.KUBE or self.spec.cloud_controller_manager is None or self.says is None:
            return False  # a kube-controller-manager gets only names that it knows
        return name not in self.says.names

    # what runs

    def _check_owner_runs(self, path: str, each: ControllerSetSpec) -> None:
        value = _flags(self.spec, each.owner).get("controllers", "*")
        for name in each.controllers:
            if not enabled(value, name, self._off(self.spec, each.owner)):
                field = f"{flags_field(each.owner.component)}.controllers"
                raise InvalidInput(
                    self.doing,
                    f"{path}.controllers: {name} is turned off at its owner, whose --controllers is {value!r}",
                    f"name it in {field}, or give the set the other owner",
                )

    def _off(self, spec: ControlPlaneSpec, manager: ControllerProgram) -> frozenset[str]:
        """The controllers that a manager does not run unless they are named."""
        if manager is ControllerProgram.CLOUD:
            return self.says.off if self.says is not None else frozenset()
        return KUBE_OFF if spec.nodes.bootstrap is False else KUBE_OFF - TOKENS

    def _runs(self, spec: ControlPlaneSpec, manager: ControllerProgram, name: str) -> bool:
        """Whether a manager of ``spec`` runs a controller that is in no set. Unknown counts as true."""
        if manager is ControllerProgram.CLOUD and spec.cloud_controller_manager is None:
            return False
        flags = _flags(spec, manager)
        if name == NODE_IPAM and flags.get("allocate-node-cidrs", "false").lower() not in ("true", "t", "1"):
            return False
        on = enabled(flags.get("controllers", "*"), name, self._off(spec, manager))
        return on and has(manager, minor(spec.kubernetes_version), name, self.says)

    # changes

    def _check_cloud_stays(self, before: ControlPlaneSpec) -> None:
        """It may be removed only when it owns no set: a change of owner needs both managers."""
        if before.cloud_controller_manager is None or self.spec.cloud_controller_manager is not None:
            return
        if owned := [each.name for each in before.controller_sets if each.owner is ControllerProgram.CLOUD]:
            raise PreconditionFailed(
                f"removing the cloud controller manager of plane {self.name}",
                f"{_SETS}: it owns {', '.join(owned)}",
                "change the owner to kube-controller-manager, and remove it after that",
            )

    def _check_changes(self, before: ControlPlaneSpec) -> None:
        was = {each.name: each for each in before.controller_sets}
        in_set = {name: each for each in before.controller_sets for name in each.controllers}
        for path, each in self._paths():
            if each.name in was:
                self._check_unchanged(path, was[each.name], each)
                continue
            for name in each.controllers:
                if name in in_set:
                    self._check_same_owner(f"{path}.owner", name, in_set[name], each)
        kept = {name for each in self.spec.controller_sets for name in each.controllers}
        for each in before.controller_sets:
            other, left = each.owner.other, [name for name in each.controllers if name not in kept]
            if both := [name for name in left if self._runs(self.spec, other, name)]:
                self._refuse_end(each, both)

    def _check_unchanged(self, path: str, was: ControllerSetSpec, each: ControllerSetSpec) -> None:
        for field, old, new in (
            ("lock", was.lock, each.lock),
            ("controllers", ", ".join(sorted(was.controllers)), ", ".join(sorted(each.controllers))),
        ):
            if old != new:
                seen = f"{path}.{field}: that of set {each.name} is {old}, and cannot change"
                raise PreconditionFailed(self.doing, seen, "give the new set another name")

    def _check_same_owner(self, path: str, name: str, was: ControllerSetSpec, each: ControllerSetSpec) -> None:
        if was.owner is not each.owner:
            seen = f"{path}: {name} is in set {was.name} of {was.owner}, and migrates only with that set"
            raise PreconditionFailed(self.doing, seen, f"keep set {was.name}, and change its owner")

    def _refuse_end(self, was: ControllerSetSpec, names: list[str]) -> None:
        """Raises PreconditionFailed: without the set both would run them."""
        other = was.owner.other
        off = ",".join((*(f"-{name}" for name in names), _flags(self.spec, other).get("controllers", "*")))
        seen = f"{_SETS}: without set {was.name}, {other} would run {', '.join(names)} as well as {was.owner}"
        field = f"{flags_field(other.component)}.controllers"
        raise PreconditionFailed(self.doing, seen, f"keep the set, or set {field} to {off!r}")


def _flags(spec: ControlPlaneSpec, manager: ControllerProgram) -> Mapping[str, str]:
    """The users' flags of a manager."""
    return flags_of(spec).get(manager.component, {})


# Flags that must not be set together with controller sets, because locks would not guard the sets.

_MANAGERS = frozenset(each.component for each in ControllerProgram)
_COORDINATING = _MANAGERS | {Component.APISERVER}
_MIGRATION = ("enable-leader-migration", "leader-migration-config")
#: Off by default, and beta from 1.33 to 1.37. An apiserver with it grants locks to candidates; a manager with it waits
#: to be granted its migration lock, for which it is no candidate (app/controllermanager.go: leaderElectAndRun).
_COORDINATED, _BETA = "CoordinatedLeaderElection", "AllBeta"
_LEASE, _RENEW = "leader-elect-lease-duration", "leader-elect-renew-deadline"

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")


def refuse_flags(spec: ControlPlaneSpec) -> None:
    """Raises InvalidInput for the first flag of a plane that conflicts with its controller sets."""
    for component, flags in flags_of(spec).items():
        if component in _COORDINATING:
            _refuse_coordination(component, flags)
        if component in _MANAGERS:
            _refuse_migration(component, flags)
    _refuse_timing(spec)


def _refuse_migration(component: Component, flags: Mapping[str, str]) -> None:
    for flag in _MIGRATION:
        if flag in flags:
            raise InvalidInput(
                f"setting --{flag} of {component}",
                "spec.controllerSets says which controllers are under which lock",
                f"remove it from {flags_field(component)}",
            )


def _refuse_coordination(component: Component, flags: Mapping[str, str]) -> None:
    value = flags.get(FEATURE_GATES, "")
    gates = dict(_gates(value))
    if gates.get(_COORDINATED, gates.get(_BETA, "")) == "true":
        raise InvalidInput(
            f"setting --{FEATURE_GATES} of {component}",
            f"{value!r} enables {_COORDINATED}, with which no lock of spec.controllerSets is ever granted",
            f"set {_COORDINATED}=false in {flags_field(component)}",
        )


def _gates(value: str) -> Iterator[tuple[str, str]]:
    """Since 1.31 a gate may be written ``component:gate=value``."""
    for each in listed(value):
        gate, _, on = each.rpartition(":")[2].partition("=")
        yield gate, {"t": "true", "1": "true"}.get(on.lower(), on.lower())


def _refuse_timing(spec: ControlPlaneSpec) -> None:
    """No manager may take a lock that the other one still holds: it waits for the lease duration that the holder wrote,
    in whole seconds, and programs with a client-go before 0.27 for that of their own flag
    (tools/leaderelection/leaderelection.go); a holder exits when it could not renew within its renew deadline.
    """
    flags = {each: flags_of(spec)[each] for each in sorted(_MANAGERS & flags_of(spec).keys())}
    for one, its in flags.items():
        lease = its.get(_LEASE, shared_defaults()[_LEASE])
        for other, theirs in flags.items():
            renew = theirs.get(_RENEW, shared_defaults()[_RENEW])
            if int(_seconds(one, _LEASE, lease)) <= _seconds(other, _RENEW, renew):
                raise InvalidInput(
                    f"setting --{_LEASE} of {one} to {lease}",
                    f"{other} may hold a lock of spec.controllerSets for {renew} without renewing it (--{_RENEW})",
                    "set a longer duration, in whole seconds",
                )


def _seconds(component: Component, flag: str, text: str) -> float:
    """Seconds of a Go duration, such as 1m30s."""
    if _DURATION.fullmatch(text) is None:
        raise InvalidInput(
            f"setting --{flag} of {component}", f"{text!r} is not a duration", "write it as 15s or 1m30s"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
