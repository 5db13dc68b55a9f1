"""The DNS port for a promoted address: its "record" is the list of machines of its site that may have it.

Each of these, and each that had it before, runs keepalived as a unit of the plane. The note of that unit is its current
order, so that an observation of the site shows all of them. The newest order counts. A machine that it does not name
keeps the address as long as it serves clients there: established connections continue. It loses the address when none
of them is left, when its server stops, and when the unit is removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from typing_extensions import override

from quarterdeck.components.etcd import WRITE_AHEAD_LOG
from quarterdeck.components.traffic.keepalived import PromotedSettings, promoted_unit, served_file
from quarterdeck.endpoint.clients_wait import pause_clients, resume_clients
from quarterdeck.endpoint.dns.claims import require_own
from quarterdeck.endpoint.dns.records import record_of
from quarterdeck.endpoint.port import Dns, HoldsClients
from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.endpoints import DnsRecord, Ownership, PersonMust, RecordClaim, Sighting
from quarterdeck.model.site_facts import MachineFacts
from quarterdeck.model.units import Machine, MachineRole, UnitState
from quarterdeck.sites.endings import why_idle
from quarterdeck.sites.port import Routes, SitePort

#: Seconds for a connection to the address, between two of these, and for it to lead somewhere after an order.
_ANSWER, _AGAIN_AFTER = 0.5, 0.03
_PATIENCE = 20.0
_RUNS = frozenset({UnitState.RUNNING, UnitState.STOPPING})


@dataclass(frozen=True, slots=True)
class Order:
    """The machines that may have the address, by their own addresses; the first one that can serve has priority.
    ``number`` is higher than that of all earlier orders. ``ownership``: the owner on whose behalf it was given.
    """

    number: tuple[int, int]
    ownership: Ownership
    leads: tuple[str, ...]

    @property
    def note(self) -> str:
        """The order as one line of text."""
        words = (*self.number, self.ownership.token, self.ownership.owner or "-", *self.leads)
        return " ".join(map(str, words))

    @classmethod
    def read(cls, note: str) -> Self | None:
        """The order of a note; None if it is invalid."""
        first, *rest = note.split(" ")
        try:
            second, token, owner, *leads = rest
            number = int(first), int(second)
            return cls(number, Ownership(owner if owner != "-" else "", int(token)), tuple(leads))
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class NotifiedMachine:
    """A machine with an order, and whether its unit runs."""

    machine: Machine
    order: Order
    runs: bool

    @property
    def named(self) -> bool:
        """Whether the order names it."""
        return self.machine.address in self.order.leads


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedAddress(Dns, HoldsClients):
    """``address`` of ``plane`` at ``site``, any of whose ``machines`` can have it. Clients connect to ``port``; at
    ``status_port`` load balancers report their state to their own machine. ``ttl`` is that of every record; ``steady``
    are seconds that never go back (as ``clocks.steady``).
    """

    plane: str
    address: str
    site: SitePort
    machines: Sequence[Machine]
    unit: str
    port: int
    status_port: int
    ttl: int
    steady: Callable[[], float]
    patience: float = _PATIENCE

    @override
    async def check(self, name: str) -> None:
        """The address must be one."""
        record_of((self.address,), 0)

    @override
    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: RecordClaim | None = None
    ) -> PersonMust | None:
        """Returns once all machines that answer have the order, and the address leads somewhere."""
        doing = f"leading {self.address} to {' '.join(addresses)}"
        require_own(doing, await self.look(name), claim)
        there = {each.address: each for each in self.machines}
        strange = [each for each in addresses if each not in there]
        if strange:
            seen = f"site {self.site.name} has no machine {' '.join(strange)}"
            raise PreconditionFailed(doing, seen, "keep the load balancer in front")
        ownership = claim.ownership if claim is not None else Ownership("", 0)
        order = Order((ownership.token, int(self.steady() * 1000)), ownership, addresses)
        named = [there[each] for each in addresses]
        others = [each.machine for each in await self._notified() if each.runs and each.machine not in named]
        # Those that may have it are standbys before any other machine gives it up.
        await asyncio.gather(*(self._tell(each, order) for each in named))
        await asyncio.gather(*(self._tell(each, order) for each in others))
        await self._come_true(doing, named)
        return None

    @override
    async def observe(self, name: str) -> DnsRecord | None:
        return (await self.look(name)).record

    @override
    async def look(self, name: str) -> Sighting:
        """Where no machine that answers has an order there is no record, unless an edge is silent: it may have the
        address.
        """
        notified = await self._notified()
        if not notified:
            await self._require_edges()
            return Sighting(record=None, servers=0)
        newest = max((each.order for each in notified), key=lambda each: each.number)
        stale = [each for each in notified if each.runs and each.order != newest]
        idle = [each for each in notified if not each.runs and each.machine.address in newest.leads]
        torn = []
        if stale:
            torn.append(f"{self.unit} on {_names(stale)} has an older order")
        if idle:
            torn.append(f"{self.unit} does not run on {_names(idle)}")
        return Sighting(
            record=record_of(newest.leads, self.ttl),
            ownership=newest.ownership,
            others=tuple(record_of((each.machine.address,), self.ttl) for each in stale if each.named),
            torn="; ".join(torn),
            uneven=bool(torn),
            servers=0,
        )

    @override
    async def remove(self, name: str, claim: RecordClaim | None = None) -> PersonMust | None:
        """Take the address from all machines. Those that do not answer are waited for."""
        require_own(f"taking {self.address} away", await self.look(name), claim)
        await asyncio.gather(*(self._remove(each) for each in self.machines))
        return None

    @override
    async def hold(self, seconds: float) -> None:
        """Clients' packets are dropped for that long, and sent again."""
        there = await self._with_apiservers()
        await asyncio.gather(*(pause_clients(self.site, each.name, self.unit, seconds) for each in there))

    @override
    async def let_go(self) -> None:
        """Where the apiserver has ended in the meantime the address moves to another machine first."""
        there = await self._with_apiservers()
        await asyncio.gather(*(resume_clients(self.site, each.name, self.unit) for each in there))

    async def _with_apiservers(self) -> list[Machine]:
        """The machines on which clients may be connected to an apiserver itself."""
        return [
            each.machine for each in await self._notified() if each.runs and each.machine.role is not MachineRole.EDGE
        ]

    async def _facts(self) -> list[MachineFacts]:
        facts = await self.site.facts(WRITE_AHEAD_LOG)  # the observation that observers share
        names = {each.name for each in self.machines}
        return [each for each in facts.machines if each.machine.name in names]

    async def _notified(self) -> list[NotifiedMachine]:
        """The machines with an order, as far as they answer: also those on which the unit does not run, since they
        start it again.
        """
        units = ((each.machine, each.unit(self.unit)) for each in await self._facts())
        found = ((machine, unit, Order.read(unit.note)) for machine, unit in units)
        return [
            NotifiedMachine(machine, order, unit.state in _RUNS) for machine, unit, order in found if order is not None
        ]

    async def _require_edges(self) -> None:
        silent = [each.machine for each in await self._facts() if each.units is None]
        edges = sorted(each.name for each in silent if each.role is MachineRole.EDGE)
        if edges:
            raise Unavailable(f"locating {self.address}", f"{', '.join(edges)} does not answer")

    async def _tell(self, machine: Machine, order: Order) -> None:
        """Give a machine an order. Running units keep running: connections survive it."""
        folder = self.site.folder(machine.name, self.unit)
        assert isinstance(self.site, Routes)
        place = order.leads.index(machine.address) if machine.address in order.leads else None
        settings = PromotedSettings(
            unit=self.unit, address=self.address, own=machine.address, place=place, note=order.note
        )
        spec = promoted_unit(settings, folder, self.site.routing(machine.name, self.unit))
        ready = self.status_port if machine.role is MachineRole.EDGE else None
        await self.site.write_files(machine.name, (served_file(folder, self.plane, ready=ready, port=self.port),))
        units = {each.name: each.state for each in await self.site.units(machine.name)}
        if units.get(self.unit) is UnitState.RUNNING:
            await self.site.reload_unit(machine.name, spec)
        else:
            await self.site.start_unit(machine.name, spec)

    async def _come_true(self, doing: str, named: Sequence[Machine]) -> None:
        try:
            async with asyncio.timeout(self.patience):
                while True:
                    if await self._answers():
                        return
                    await asyncio.sleep(_AGAIN_AFTER)
        except TimeoutError as error:
            idle = await asyncio.gather(*(why_idle(self.site, each.name, self.unit) for each in named))
            seen = "; ".join(filter(None, idle)) or f"nothing answers at {self.address}:{self.port}"
            next_step = f"check the log of unit {self.unit} there"
            raise TimedOut(doing, f"{seen} after {self.patience:g} s", next_step) from error

    async def _answers(self) -> bool:
        """Whether a connection to the address is answered now."""
        with suppress(OSError):  # TimeoutError is one
            async with asyncio.timeout(_ANSWER):
                _, writer = await asyncio.open_connection(self.address, self.port)
            writer.close()
            return True
        return False

    async def _remove(self, machine: Machine) -> None:
        if any(each.name == self.unit for each in await self.site.units(machine.name)):
            await self.site.remove_unit(machine.name, self.unit)


def _names(notified: Iterable[NotifiedMachine]) -> str:
    return " and ".join(sorted(each.machine.name for each in notified))
