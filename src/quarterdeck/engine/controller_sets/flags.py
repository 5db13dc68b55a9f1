"""Flags that may not be set beside controller sets, since locks would not guard what they are to guard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.controllers import Manager
from quarterdeck.components.admission_plugins import listed
from quarterdeck.components.catalogue import flags_field, flags_of
from quarterdeck.components.controller.common import shared_defaults
from quarterdeck.components.upstream_versions import FEATURE_GATES
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component

_MANAGERS = frozenset(each.component for each in Manager)
_COORDINATING = _MANAGERS | {Component.APISERVER}
_MIGRATION = ("enable-leader-migration", "leader-migration-config")
#: Off by default, and beta from 1.33 to 1.36. An apiserver with it grants locks to candidates; a manager with it waits
#: to be granted its migration lock, for which it is no candidate (app/controllermanager.go: leaderElectAndRun).
_COORDINATED, _BETA = "CoordinatedLeaderElection", "AllBeta"
_LEASE, _RENEW = "leader-elect-lease-duration", "leader-elect-renew-deadline"

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")


def refuse_flags(spec: ControlPlaneSpec) -> None:
    """Raises InvalidInput for the first flag of a plane with controller sets that goes against them."""
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
                f"take it out of {flags_field(component)}",
            )


def _refuse_coordination(component: Component, flags: Mapping[str, str]) -> None:
    value = flags.get(FEATURE_GATES, "")
    gates = dict(_gates(value))
    if gates.get(_COORDINATED, gates.get(_BETA, "")) == "true":
        raise InvalidInput(
            f"setting --{FEATURE_GATES} of {component}",
            f"{value!r} turns {_COORDINATED} on, with which no lock of spec.controllerSets is ever granted",
            f"give {_COORDINATED}=false in {flags_field(component)}",
        )


def _gates(value: str) -> Iterator[tuple[str, str]]:
    """Since 1.31 a gate may be written ``component:gate=value``."""
    for each in listed(value):
        gate, _, on = each.rpartition(":")[2].partition("=")
        yield gate, {"t": "true", "1": "true"}.get(on.lower(), on.lower())


def _refuse_timing(spec: ControlPlaneSpec) -> None:
    """No manager may take a lock that the other one still holds: it waits for the lease duration that the holder wrote,
    in whole seconds, and programs with a client-go before 0.27 for that of their own flag
    (tools/leaderelection/leaderelection.go); a holder ends when it could not renew for its renew deadline.
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
                    "give a duration that is longer, in whole seconds",
                )


def _seconds(component: Component, flag: str, text: str) -> float:
    """Seconds of a Go duration, such as 1m30s."""
    if _DURATION.fullmatch(text) is None:
        raise InvalidInput(
            f"setting --{flag} of {component}", f"{text!r} is not a duration", "write it as 15s or 1m30s"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
