"""The observation of sites: their machines, with the units and the volumes of all planes there, in one call each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from quarterdeck.actions.plane import Plane
from quarterdeck.components.etcd import WRITE_AHEAD_LOG
from quarterdeck.engine.asking import or_none
from quarterdeck.engine.assemble import Dated, Place
from quarterdeck.engine.restless import Restless
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import UnitStatus

SeenSites = Mapping[str, Dated[SiteFacts]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesObserver:
    """Observes the sites of one plane. Planes of a process that look at a site at the same time share that look. It
    remembers whose units end again and again.
    """

    plane: Plane
    _restless: Restless = field(default_factory=Restless)

    async def observe(self, names: Sequence[str]) -> SeenSites:
        """One look at each of these sites."""
        at = self.plane.steady()
        found = await asyncio.gather(*(or_none(self.plane.site(name).facts(WRITE_AHEAD_LOG)) for name in names))
        return {name: Dated(at, facts) for name, facts in zip(names, found, strict=True)}

    def restless(self, memory: Memory, places: Mapping[str, Place], sites: SeenSites) -> frozenset[tuple[str, str]]:
        """The plane's units, as (site, name), that end again and again, by this look and those before it."""
        now = self.plane.steady()
        units = tuple(_units(memory, places, sites))
        return frozenset(
            (site, unit.name) for site, unit in units if self._restless.note((site, unit.name), unit.restarts, now)
        )


def machine_of(record: Replica, sites: SeenSites) -> MachineFacts | None:
    """The machine of a replica, if it told its units."""
    site = sites[record.site].said
    machine = site.machine(record.machine) if site is not None else None
    return machine if machine is not None and machine.units is not None else None


def _units(memory: Memory, places: Mapping[str, Place], sites: SeenSites) -> Iterator[tuple[str, UnitStatus]]:
    """All units of the plane that are known, by site."""
    for record in memory.replicas:
        machine = machine_of(record, sites)
        if machine is not None:
            for name in places[record.name].units.values():
                yield record.site, machine.unit(name)
