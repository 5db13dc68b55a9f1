"""The feature gates of Kubernetes and etcd, and which of them a program accepts. Pure.

A program knows the gates of its own version, and judges them as the version that it emulates (KEP-4330): a gate that it
does not know ends it, and so does one that is locked to the other value, or newer than the emulated version.

Upstream: ``unsafeSetFromMap`` of ``k8s.io/component-base/featuregate``. That gates which depend on others are off
without these is not checked here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from quarterdeck.components import gate_histories
from quarterdeck.components.minors import Minor, dotted
from quarterdeck.model.components import Component

#: Gates that set all gates of a stage; every program that has gates knows them.
_ALL = frozenset({"AllAlpha", "AllBeta"})
#: Gates of code that is in other programs of Kubernetes only.
_LACKED: Mapping[Component, frozenset[str]] = {
    Component.SCHEDULER: frozenset({"ControllerManagerReleaseLeaderElectionLockOnExit"}),
}
_ENTRY = re.compile(r"(?:(\d+\.\d+) )?(alpha|beta|GA|deprecated) (on|off)( locked)?")
_TRUE, _FALSE = frozenset({"1", "t", "true"}), frozenset({"0", "f", "false"})


@dataclass(frozen=True, slots=True)
class GateStage:
    """A stage of a gate, from the emulated version ``since`` on. ``locked``: ``on`` is its only value."""

    since: Minor
    alpha: bool
    on: bool
    locked: bool


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: the first minor version that knows it, the first one that does not know it any more, and its stages."""

    known: Minor
    gone: Minor | None
    stages: tuple[GateStage, ...]

    def at(self, emulated: Minor) -> GateStage | None:
        """Its stage in an emulated version; None before its first."""
        return next((each for each in reversed(self.stages) if each.since <= emulated), None)


def _minor(text: str) -> Minor:
    major, _, number = text.partition(".")
    return int(major), int(number)


def _parse(history: str, oldest: Minor) -> Gate:
    """Read a line of a table. A stage without a version is also that of all earlier ones."""
    known: Minor | None = None
    gone: Minor | None = None
    stages: list[GateStage] = []
    for part in history.split(", "):
        if part.startswith("from "):
            known = _minor(part.removeprefix("from "))
        elif part.endswith(" gone"):
            gone = _minor(part.removesuffix(" gone"))
        elif found := _ENTRY.fullmatch(part):
            since = _minor(found[1]) if found[1] else (0, 0)
            stages.append(GateStage(since, alpha=found[2] == "alpha", on=found[3] == "on", locked=bool(found[4])))
        else:
            raise ValueError(f"{part!r} is no stage of a feature gate")
    return Gate(known=known or max(oldest, stages[0].since), gone=gone, stages=tuple(stages))


def _table(text: str, oldest: Minor) -> Mapping[str, Gate]:
    rows = (line.split(": ", 1) for line in text.splitlines())
    return {name: _parse(history, oldest) for name, history in rows}


KUBERNETES_GATES = _table(gate_histories.KUBERNETES, (1, 33))
ETCD_GATES = _table(gate_histories.ETCD, (3, 6))


def gates_problem(component: Component, value: str, *, binary: Minor, emulated: Minor) -> str:
    """Why a program of the minor version ``binary`` that emulates ``emulated`` refuses a value of ``--feature-gates``;
    "" if it does not. Alpha features are refused while an older version is emulated: upstream does not support that.
    """
    found: list[str] = []
    for pair in filter(None, (each.strip() for each in value.split(","))):
        name, _, switch = pair.rpartition(":")[2].partition("=")
        word = switch.strip().lower()
        if word not in _TRUE | _FALSE:
            found.append(f"{pair} is not of the form GATE=true or GATE=false")
        else:
            found.append(_problem(component, name.strip(), on=word in _TRUE, binary=binary, emulated=emulated))
    return "; ".join(filter(None, found))


def _problem(component: Component, name: str, *, on: bool, binary: Minor, emulated: Minor) -> str:
    if name in _ALL:
        return _of_alpha(name, binary, emulated) if on and name == "AllAlpha" else ""
    etcd = component == Component.ETCD
    of, gates = ("etcd", ETCD_GATES) if etcd else ("Kubernetes", KUBERNETES_GATES)
    gate, lacks = gates.get(name), f"{of} {dotted(binary)} has no feature gate {name}"
    if name in _LACKED.get(component, ()):
        return f"{component} has no feature gate {name}"
    if gate is None:
        known = [each for each, row in gates.items() if row.known <= binary and (row.gone is None or binary < row.gone)]
        similar = difflib.get_close_matches(name, known, n=1)
        return f"{lacks}: is {similar[0]} meant?" if similar else lacks
    if gate.gone is not None and gate.gone <= binary:
        return f"{lacks}, which was removed in {dotted(gate.gone)}"
    if binary < gate.known:
        return f"{lacks}, which is new in {dotted(gate.known)}"
    stage = gate.at(emulated)
    if stage is None:
        return f"{of} {dotted(binary)} that emulates {dotted(emulated)} does not accept the feature gate {name}"
    if stage.locked and stage.on is not on:
        return f"{of} {dotted(emulated)} has locked the feature gate {name} to {'true' if stage.on else 'false'}"
    return _of_alpha(name, binary, emulated) if stage.alpha and on else ""


def _of_alpha(name: str, binary: Minor, emulated: Minor) -> str:
    if emulated == binary:
        return ""
    return f"the feature gate {name} is alpha, which is not supported while {dotted(emulated)} is emulated"
