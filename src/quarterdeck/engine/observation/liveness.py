"""Which programs run and are unhealthy: checked like a kubelet's probes, only by the driver, and rarely while healthy.

A process that was never healthy may still be starting, which takes as long as it takes. One that was healthy, and no
longer is, hangs. So processes are remembered, not programs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from quarterdeck.actions.addresses import apiserver_address, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.engine.observation.assemble import Dated, ReplicaPlace, ServerFacts, UnhealthyPrograms
from quarterdeck.engine.observation.observe_sites import SeenSites, machine_of
from quarterdeck.engine.observation.queries import SOON
from quarterdeck.kube.port import HealthAnswer
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.units import UnitState, UnitStatus

#: Seconds between two checks of a program that was unhealthy, or not ready; of a healthy controller; and of one that
#: was just started: a rollout may wait for it before it continues with the next replica.
OFTEN = 2.0
SELDOM = 20.0
AT_FIRST = 0.3
#: The same for a manager of controller sets, and seconds of silence after which it counts as frozen: well before others
#: get its locks (15 s after their renewal), because it keeps acting for up to 10 s when it resumes (client-go:
#: leaderelection, renew).
GUARDED = 2.0
FROZEN = 4.0
#: Seconds after a start during which a program was "just started".
_FIRST = 10.0
#: Seconds for a process to become healthy, however much it has to read: as long as ``Settings.start``.
STARTS = 600.0


@dataclass(slots=True)
class _Process:
    """A process, identified by its pid and the restarts of its unit: since when it is known, whether it was ever
    healthy, its last answer, and since when it has not been healthy.
    """

    number: tuple[int | None, int]
    since: float
    was_well: bool = False
    asked: float | None = None
    well: bool | None = None
    silent: float | None = None


@dataclass(kw_only=True)
class Liveness:
    """The programs of one plane, across observations."""

    plane: Plane
    _known: dict[tuple[str, Component], _Process] = field(default_factory=dict)

    async def observe(
        self,
        memory: Memory,
        places: Mapping[str, ReplicaPlace],
        sites: SeenSites,
        servers: Mapping[str, Dated[ServerFacts]],
        memberships: Mapping[Cluster, Membership | None],
    ) -> Mapping[str, UnhealthyPrograms]:
        """The programs that run and do not report that they are healthy, by replica. Empty for machines that do not
        answer, and for processes that do not drive.
        """
        if self.plane.guard is None:
            return {}
        asked: list[tuple[Replica, Component]] = []
        for record in memory.replicas:
            machine = machine_of(record, sites)
            for component, name in places[record.name].units.items():
                unit = machine.unit(name) if machine is not None else None
                if self._runs(record.name, component, unit):
                    asked.append((record, component))
        ready = {name: each.answer.ready if each.answer is not None else None for name, each in servers.items()}
        await asyncio.gather(*(self._ask(*each, ready=ready, memberships=memberships) for each in asked))
        return self._unhealthy(memory)

    def _runs(self, name: str, component: Component, unit: UnitStatus | None) -> bool:
        """Whether a program runs; a new process starts a new record. Unobserved programs keep theirs."""
        if unit is None:
            return False
        if unit.state is not UnitState.RUNNING:
            self._known.pop((name, component), None)
            return False
        number = unit.pid, unit.restarts
        known = self._known.get((name, component))
        if known is None or known.number != number:
            self._known[name, component] = _Process(number=number, since=self.plane.steady())
        return True

    async def _ask(
        self,
        record: Replica,
        component: Component,
        *,
        ready: Mapping[str, bool | None],
        memberships: Mapping[Cluster, Membership | None],
    ) -> None:
        known, now = self._known[record.name, component], self.plane.steady()
        if component in CLUSTER:
            known.well = _follows(memberships[CLUSTER[component]], record)
        elif component == Component.APISERVER and ready.get(record.name):
            known.well = True
        elif component.is_controller and not ready.get(record.name):
            known.well = None  # it waits for its apiserver
        elif known.asked is None or now - known.asked >= self._pause(component, known, now):
            known.asked = now
            known.well = bool((await self._answer(record, component, known)).ok)
        known.was_well |= known.well is True
        known.silent = (known.silent or now) if known.well is False else None

    async def _answer(self, record: Replica, component: Component, known: _Process) -> HealthAnswer:
        within = None if known.was_well else SOON
        if component == Component.APISERVER:
            return await self.plane.kube.livez(apiserver_address(record), within=within)
        (port,) = CATALOGUE[component].ports
        return await self.plane.kube.healthz(server_address(record, port.name), within=within)

    def _unhealthy(self, memory: Memory) -> Mapping[str, UnhealthyPrograms]:
        names = {each.name for each in memory.replicas}
        self._known = {key: each for key, each in self._known.items() if key[0] in names}
        now = self.plane.steady()
        silent = {key: each for key, each in self._known.items() if each.well is False}
        return {
            name: UnhealthyPrograms(
                all=frozenset(component for (one, component) in silent if one == name),
                hung=frozenset(
                    component
                    for (one, component), each in silent.items()
                    if one == name and (each.was_well or now - each.since >= STARTS)
                ),
                frozen=frozenset(
                    component
                    for (one, component), each in silent.items()
                    if one == name and self._guarded(component) and each.was_well
                    if each.silent is not None and now - each.silent >= FROZEN
                ),
            )
            for name in {name for name, _ in silent}
        }

    def _guarded(self, component: Component) -> bool:
        """Whether a program may run controllers that others take over when it is frozen."""
        sets = (each.controller_sets for each in self.plane.revisions.templates.values())
        return component.manages and any(sets)

    def _pause(self, component: Component, known: _Process, now: float) -> float:
        """Seconds between two checks of an apiserver or a controller."""
        if not component.is_controller:
            return OFTEN
        starts = not known.was_well and now - known.since < _FIRST
        if known.well:
            return GUARDED if self._guarded(component) else SELDOM
        return AT_FIRST if starts else OFTEN


def _follows(membership: Membership | None, record: Replica) -> bool | None:
    """Whether a member works, as its cluster reports; None where that is unknown."""
    member = membership.of(record.name) if membership is not None else None
    return {Health.HEALTHY: True, Health.DOWN: False}.get(member.health) if member is not None else None
