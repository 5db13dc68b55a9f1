"""The observation of sites: their machines, units and volumes of all planes, in one call each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from quarterdeck.actions.plane import Plane
from quarterdeck.components.etcd import WRITE_AHEAD_LOG
from quarterdeck.engine.observation.assemble import Dated, ReplicaPlace
from quarterdeck.engine.observation.queries import all_or_none
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import UnitState, UnitStatus
from quarterdeck.sites.endings import why_unit_ended

# Programs that exit repeatedly.

#: Seconds: a program that was restarted ``ENDS`` times within ``WINDOW`` is crash looping. A machine restarts one that
#: exits at once after 0.25 s, and then ever later, up to 5 s; one that has run for a second at once.
WINDOW = 60.0
ENDS = 2


@dataclass
class CrashLoops:
    """The restarts of units across observations (``UnitStatus.restarts``)."""

    _seen: dict[Hashable, deque[tuple[float, int]]] = field(default_factory=dict)

    def note(self, unit: Hashable, restarts: int, now: float) -> bool:
        """Record a unit at ``now`` (seconds on a steady clock); returns whether it is crash looping."""
        looks = self._seen.setdefault(unit, deque())
        if looks and restarts < looks[-1][1]:
            looks.clear()  # it was started on purpose: counting starts again
        looks.append((now, restarts))
        while looks[0][0] < now - WINDOW:
            looks.popleft()
        return restarts - looks[0][1] >= ENDS


SeenSites = Mapping[str, Dated[SiteFacts]]
#: Seconds between two queries why a crash-looping unit exited.
_ASKED_EVERY = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """Why a unit exited, and its restarts by then; queried ``at`` (seconds)."""

    why: str
    restarts: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesObserver:
    """Observes the sites of one plane. Concurrent observations of a site by planes of one process are shared. It
    remembers the units that exit repeatedly, and why.
    """

    plane: Plane
    _crash_loops: CrashLoops = field(default_factory=CrashLoops)
    _endings: dict[tuple[str, str], _Ending] = field(default_factory=dict)

    async def observe(self, names: Sequence[str]) -> SeenSites:
        """One observation of each of these sites."""
        at = self.plane.steady()
        found = await all_or_none(partial(self.plane.site(name).facts, WRITE_AHEAD_LOG) for name in names)
        return {name: Dated(at, facts) for name, facts in zip(names, found, strict=True)}

    def crash_looping(
        self, memory: Memory, places: Mapping[str, ReplicaPlace], sites: SeenSites
    ) -> frozenset[tuple[str, str]]:
        """The plane's units, as (site, name), that exit repeatedly, by this and earlier observations."""
        now = self.plane.steady()
        units = tuple((record.site, unit) for record, unit in _units(memory, places, sites))
        return frozenset(
            (site, unit.name) for site, unit in units if self._crash_loops.note((site, unit.name), unit.restarts, now)
        )

    async def endings(
        self,
        memory: Memory,
        places: Mapping[str, ReplicaPlace],
        sites: SeenSites,
        crash_looping: Collection[tuple[str, str]],
    ) -> Mapping[tuple[str, str], str]:
        """Why the plane's units that do not run, or do not run for long, exited: by (site, name). A machine is queried
        again only after the unit has exited again.
        """
        asked = {
            (record.site, unit.name): (record, unit)
            for record, unit in _units(memory, places, sites)
            if (unit.state is UnitState.FAILED and not unit.refused) or (record.site, unit.name) in crash_looping
        }
        for key in self._endings.keys() - asked.keys():
            del self._endings[key]
        now = self.plane.steady()
        news = [
            (key, record, unit)
            for key, (record, unit) in asked.items()
            if (known := self._endings.get(key)) is None
            or (known.restarts != unit.restarts and now - known.at >= _ASKED_EVERY)
        ]
        found = await asyncio.gather(
            *(why_unit_ended(self.plane.site(each.site), each.machine, unit.name) for _, each, unit in news)
        )
        for (key, _, unit), why in zip(news, found, strict=True):
            self._endings[key] = _Ending(why=why, restarts=unit.restarts, at=now)
        return {key: each.why for key, each in self._endings.items()}


def machine_of(record: Replica, sites: SeenSites) -> MachineFacts | None:
    """The machine of a replica, if it reported its units."""
    site = sites[record.site].answer
    machine = site.machine(record.machine) if site is not None else None
    return machine if machine is not None and machine.units is not None else None


def _units(
    memory: Memory, places: Mapping[str, ReplicaPlace], sites: SeenSites
) -> Iterator[tuple[Replica, UnitStatus]]:
    """All known units of the plane, each with its replica."""
    for record in memory.replicas:
        machine = machine_of(record, sites)
        if machine is not None:
            for name in places[record.name].units.values():
                yield record, machine.unit(name)
