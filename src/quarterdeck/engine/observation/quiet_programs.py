"""Programs that run, are not well, and of which nothing new is seen: what is waited for may never come.

A start takes as long as it takes: etcd reads its log, an apiserver runs its hooks, and a slow machine needs minutes for
either. A program that gets on shows it: its checks fail in another way than before, its member comes nearer, or it
writes something that it has not written yet. One that hangs repeats itself.
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

#: Seconds for which nothing new was seen of a program before that is said, and between two looks at what it writes.
QUIET = 30.0
EVERY = 5.0
#: What differs between two lines that say the same: all but words.
_NO_WORD = re.compile(r"\S*\d\S*|[^A-Za-z\s]+")

#: Programs, each with what it last complained of.
Complaints = tuple[tuple[Component, str], ...]


@dataclass(slots=True, kw_only=True)
class _QuietProcess:
    """A process that is not well: ``since`` when nothing new was seen of it, what it ``showed`` so far, when it was
    last ``asked`` what it writes (None: not yet), and what it complains of. Times in seconds.
    """

    number: tuple[int | None, int]
    since: float
    showed: set[str]
    asked: float | None = None
    complaint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ill:
    """A program that runs and is not well: what its checks say to people, and all that they say (``sign``)."""

    record: Replica
    component: Component
    unit: UnitStatus
    sign: str
    checks: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the other observers heard: of apiservers, by replica; of members; and whose programs are not well."""

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
        """The programs of which nothing new is seen, each with what it complains of, by replica. One that an earlier
        process has noted is one until something new is seen of it.
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
        """Read what it writes. What it wrote before it was first asked is no news."""
        output = await output_of(self.plane.site(ill.record.site), ill.record.machine, ill.unit.name)
        if output is None:
            return
        lines = {_plain(line) for line in output.splitlines()}
        if known.asked is not None and not lines <= known.showed:
            known.since = now
        known.showed |= lines
        known.asked = now
        complaint = "; ".join(filter(None, (ill.checks, present_reason(output))))
        if _plain(complaint) != _plain(known.complaint):  # a number alone that changes is no other complaint
            known.complaint = complaint


def _ill(
    record: Replica, place: ReplicaPlace, sites: SeenSites, heard: Heard, noted: Mapping[str, float]
) -> Iterator[_Ill]:
    """The programs of a replica that run, and are not well as far as is known."""
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
    """What shows how a member gets on that is not well; "" where it is, or is none."""
    if membership is None:
        return "no quorum"
    member = membership.of(record.name)
    if member is None or member.health is Health.HEALTHY:
        return ""
    return f"{member.health}, {member.lag} behind"


def _of_server(seen: Dated[ServerFacts] | None) -> tuple[str, str]:
    """What shows how an apiserver gets on that is not ready, and what its checks say; "" where it is ready."""
    if seen is None or seen.said is None or seen.said.ready:
        return "", ""
    return seen.said.unready or "not ready", seen.said.unready


def _plain(text: str) -> str:
    return " ".join(_NO_WORD.sub(" ", text).split())
