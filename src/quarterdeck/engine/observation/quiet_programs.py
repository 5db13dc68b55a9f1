"""Programs that run, are unhealthy, and report nothing new: they may never become healthy.

A start takes as long as it takes: etcd reads its log, an apiserver runs its hooks, and a slow machine needs minutes for
either. A program that makes progress shows it: its checks fail in another way than before, its member catches up, or it
logs something new. A hanging one repeats itself.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from quarterdeck.actions.plane import Plane
from quarterdeck.components.endings import present_reason
from quarterdeck.engine.observation.assemble import Dated, ReplicaPlace, ServerFacts, UnhealthyPrograms
from quarterdeck.engine.observation.observe_sites import SeenSites, machine_of
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.units import UnitState, UnitStatus
from quarterdeck.planner.rules.rollout import unit as called
from quarterdeck.sites.endings import output_of

#: Seconds without news of a program before it counts as quiet, and between two readings of its output.
QUIET = 30.0
EVERY = 5.0
#: The parts in which two equivalent lines may differ: everything except words.
_NO_WORD = re.compile(r"\S*\d\S*|[^A-Za-z\s]+")

#: Programs, each with its last error.
Complaints = tuple[tuple[Component, str], ...]


@dataclass(slots=True, kw_only=True)
class _QuietProcess:
    """An unhealthy process: ``since`` when it has reported nothing new, what it ``showed`` so far, when its output was
    last read (``asked``; None: not yet), and its last error. Times in seconds.
    """

    number: tuple[int | None, int]
    since: float
    showed: set[str]
    asked: float | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ill:
    """A program that runs and is unhealthy: the result of its checks for people, and the full result (``sign``)."""

    record: Replica
    component: Component
    unit: UnitStatus
    sign: str
    checks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The facts of the other observers: apiservers by replica, memberships, and unhealthy programs."""

    servers: Mapping[str, Dated[ServerFacts]]
    memberships: Mapping[Cluster, Membership | None]
    silent: Mapping[str, UnhealthyPrograms]


@dataclass(kw_only=True)
class Quiet:
    """The programs of one plane, look after look."""

    plane: Plane
    _known: dict[tuple[str, Component], _QuietProcess] = field(default_factory=dict)

    async def observe(
        self, memory: Memory, places: Mapping[str, ReplicaPlace], sites: SeenSites, heard: Heard
    ) -> Mapping[str, Complaints]:
        """The quiet programs, each with its last error, by replica. One that an earlier driver has noted stays one
        until it reports something new.
        """
        noted, now = dict(memory.unready), self.plane.steady()
        ill = [each for record in memory.replicas for each in _ill(record, places[record.name], sites, heard, noted)]
        there = {(each.record.name, each.component) for each in ill}
        self._known = {key: each for key, each in self._known.items() if key in there}
        await asyncio.gather(*(self._look(each, noted, now) for each in ill))
        found: dict[str, Complaints] = {}
        for each in ill:
            known = self._known[each.record.name, each.component]
            if now - known.since >= QUIET:
                found[each.record.name] = (*found.get(each.record.name, ()), (each.component, known.complaint))
        return found

    async def _look(self, ill: _Ill, noted: Mapping[str, float], now: float) -> None:
        known = self._process(ill, noted, now)
        if now - (known.since if known.asked is None else known.asked) >= EVERY:
            await self._read(ill, known, now)
        if ill.sign not in known.showed:
            known.since = now
            known.showed.add(ill.sign)

    def _process(self, ill: _Ill, noted: Mapping[str, float], now: float) -> _QuietProcess:
        key, number = (ill.record.name, ill.component), (ill.unit.pid, ill.unit.restarts)
        known = self._known.get(key)
        if known is None or known.number != number:
            since = noted.get(called(ill.component, ill.record)) if known is None else None
            ago = max(QUIET, self.plane.now() - since) if since is not None else 0.0
            known = self._known[key] = _QuietProcess(number=number, since=now - ago, showed={ill.sign})
        return known

    async def _read(self, ill: _Ill, known: _QuietProcess, now: float) -> None:
        """Read its output. Output from before the first reading is not new."""
        output = await output_of(self.plane.site(ill.record.site), ill.record.machine, ill.unit.name)
        if output is None:
            return
        lines = {_plain(line) for line in output.splitlines()}
        if known.asked is not None and not lines <= known.showed:
            known.since = now
        known.showed |= lines
        known.asked = now
        complaint = "; ".join(filter(None, (ill.checks, present_reason(output))))
        if _plain(complaint) != _plain(known.complaint):  # a change of numbers alone is not another error
            known.complaint = complaint


def _ill(
    record: Replica, place: ReplicaPlace, sites: SeenSites, heard: Heard, noted: Mapping[str, float]
) -> Iterator[_Ill]:
    """The programs of a replica that run, and are unhealthy as far as known."""
    machine = machine_of(record, sites)
    if machine is None:
        return
    for component, name in place.units.items():
        unit = machine.unit(name)
        if unit.state is not UnitState.RUNNING:
            continue
        if component in CLUSTER:
            sign, checks = _of_member(record, heard.memberships[CLUSTER[component]]), ""
        elif component == Component.APISERVER:
            sign, checks = _of_server(heard.servers.get(record.name))
        else:
            silent = component in heard.silent.get(record.name, UnhealthyPrograms()).all
            sign, checks = "silent" if silent or called(component, record) in noted else "", ""
        if sign:
            yield _Ill(record=record, component=component, unit=unit, sign=sign, checks=checks)


def _of_member(record: Replica, membership: Membership | None) -> str:
    """The progress of an unhealthy member; "" for a healthy one, or without a member."""
    if membership is None:
        return "no quorum"
    member = membership.of(record.name)
    if member is None or member.health is Health.HEALTHY:
        return ""
    return f"{member.health}, {member.lag} behind"


def _of_server(seen: Dated[ServerFacts] | None) -> tuple[str, str]:
    """The progress of an apiserver that is not ready, and its failing checks; "" for a ready one."""
    if seen is None or seen.answer is None or seen.answer.ready:
        return "", ""
    return seen.answer.unready or "not ready", seen.answer.unready


def _plain(text: str) -> str:
    return " ".join(_NO_WORD.sub(" ", text).split())
