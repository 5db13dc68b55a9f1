"""The DNS port for an address that is led to machines: its "record" is which of them have it, or are to have it.

On each of these runs a small process (``endpoint/floating``), which goes by orders that this writes. The newest count,
wherever older ones are: so whoever had the address need not be told, and may be silent. As with DNS servers, what
was ordered is one thing, and that it has come true another: until then the processes do not "answer the same".
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from typing_extensions import override

from quarterdeck.components.etcd import WRITE_AHEAD_LOG
from quarterdeck.components.traffic.floating import LedSettings, led_hold, led_orders, led_unit
from quarterdeck.endpoint.dns.claims import require_own
from quarterdeck.endpoint.dns.records import record_of
from quarterdeck.endpoint.port import HoldsClients
from quarterdeck.errors import PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.endpoints import Claim, Ownership, PersonMust, Record, Sighting
from quarterdeck.model.site_facts import MachineFacts
from quarterdeck.model.units import Machine, MachineRole, UnitState
from quarterdeck.sites.endings import why_idle
from quarterdeck.sites.port import Site

#: Seconds for a process to say what is so, and for an address to be where it was led.
_ANSWER = 0.5
_PATIENCE = 20.0
#: Seconds for clients to be held: a process looks several times a second whether it is to.
_HELD = 1.0
_LARGEST = 65_536
_QUESTION = b'{"ask": true}'
_RUNS = frozenset({UnitState.RUNNING, UnitState.STOPPING})


@dataclass(frozen=True, slots=True)
class Heard:
    """What the process on a machine says. ``leads``: the machines (by their own addresses) which the newest orders that
    it knows of name, and ``number`` how new these are. ``held``: clients are held there.
    """

    machine: str
    holds: bool
    held: bool
    number: tuple[int, int]
    leads: tuple[str, ...]
    ownership: Ownership


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedAddress(HoldsClients):
    """``address`` of a plane at ``site``, any of whose ``machines`` can have it. ``talk`` is the UDP port of the
    processes, ``port`` where clients connect. ``admin``: the socket of the load balancer on an edge. ``ttl`` is said of
    every record; ``steady`` are seconds that never go back (as ``clocks.steady``).
    """

    address: str
    site: Site
    machines: Sequence[Machine]
    unit: str
    port: int
    talk: int
    ttl: int
    admin: Callable[[str], PurePosixPath]
    python: PurePosixPath
    search_path: str
    steady: Callable[[], float]
    patience: float = _PATIENCE

    async def check(self, name: str) -> None:
        """See ``Dns.check``: the address must be one."""
        record_of((self.address,), 0)

    async def set(
        self, name: str, addresses: tuple[str, ...], ttl: int, claim: Claim | None = None
    ) -> PersonMust | None:
        """See ``Dns.set``. Returns once one of these machines has the address, and nobody else."""
        doing = f"leading {self.address} to {' '.join(addresses)}"
        wanted = record_of(addresses, self.ttl)
        require_own(doing, await self.look(name), claim)
        there = {each.address: each for each in self.machines}
        strange = [each for each in addresses if each not in there]
        if strange:
            seen = f"site {self.site.name} has no machine {' '.join(strange)}"
            raise PreconditionFailed(doing, seen, "keep the load balancer in front")
        token = claim.token if claim is not None else 0
        number = (token, int(self.steady() * 1000))
        order = [there[each] for each in addresses]
        await asyncio.gather(*(self._order(each, order, number, claim) for each in order))
        await self._come_true(doing, wanted, order)
        return None

    async def observe(self, name: str) -> Record | None:
        """See ``Dns.observe``."""
        return (await self.look(name)).record

    async def look(self, name: str) -> Sighting:
        """See ``Dns.look``. Where no machine that answers knows of orders there is no record, unless an edge is silent:
        it may have the address.
        """
        facts = await self.site.facts(WRITE_AHEAD_LOG)  # the look that observers share
        seen = [each for each in facts.machines if each.machine.name in {one.name for one in self.machines}]
        runs = [each.machine for each in seen if each.units is not None and each.unit(self.unit).state in _RUNS]
        said = [each for each in await asyncio.gather(*map(self._asked, runs)) if each is not None]
        newest = max(said, key=lambda each: each.number, default=None)
        if newest is None or not newest.leads:
            silent = {each.machine.name for each in seen if each.units is None}
            silent |= {each.name for each in runs} - {each.machine for each in said}
            edges = sorted(silent & {each.name for each in self.machines if each.role is MachineRole.EDGE})
            if edges:
                raise Unavailable(f"asking where {self.address} is", f"{', '.join(edges)} does not answer")
            return self._left(seen)
        return self._sighting(newest, frozenset(each.machine for each in said if each.holds))

    def _left(self, seen: Sequence[MachineFacts]) -> Sighting:
        """What is so where no process that answers knows of orders. One that its machine knows of, and that does not
        run, may have the address as soon as it does: so it counts until it is removed.
        Nobody starts one of which only files are there but by new orders.
        """
        units = [(each.machine, each.unit(self.unit)) for each in seen]
        idle = [(machine, unit) for machine, unit in units if unit.state not in (UnitState.ABSENT, *_RUNS)]
        left = [machine for machine, unit in idle if not unit.files_only]
        if not left:
            return Sighting(record=None, servers=0)
        names = " and ".join(sorted(each.name for each in left))
        record = record_of(tuple(each.address for each in left), self.ttl)
        return Sighting(record=record, torn=f"{self.unit} does not run on {names}", servers=0)

    def _sighting(self, newest: Heard, holders: frozenset[str]) -> Sighting:
        names = {each.address: each.name for each in self.machines}
        wanted = {names.get(each, each) for each in newest.leads}
        others = {name: address for address, name in names.items() if name in holders - wanted}
        torn = ""
        if others:
            torn = f"{self.address} is at {' and '.join(sorted(others))} still"
        elif not holders:
            torn = f"{self.address} is not at {' or '.join(sorted(wanted))} yet"
        return Sighting(
            record=record_of(newest.leads, self.ttl),
            ownership=newest.ownership,
            others=tuple(record_of((each,), self.ttl) for each in others.values()),
            torn=torn,
            servers=0,
        )

    async def remove(self, name: str, claim: Claim | None = None) -> PersonMust | None:
        """See ``Dns.remove``: no machine has the address any more. Those that do not answer are waited for."""
        require_own(f"taking {self.address} away", await self.look(name), claim)
        await asyncio.gather(*(self._remove(each) for each in self.machines))
        return None

    async def hold(self, seconds: float) -> None:
        """See ``HoldsClients``: their packets are lost for that long, and sent again."""
        there = [each for each in await self._running() if each.role is not MachineRole.EDGE]
        await self._tell(there, seconds)
        try:
            async with asyncio.timeout(_HELD):
                while True:
                    said = await asyncio.gather(*map(self._asked, there))
                    if all(each is not None and each.held for each in said):
                        return
                    await asyncio.sleep(0.01)
        except TimeoutError as error:
            raise Unavailable(f"holding clients of {self.address}", "they are not held in time") from error

    @override
    async def let_go(self) -> None:
        await self._tell([each for each in await self._running() if each.role is not MachineRole.EDGE], 0.0)

    async def _tell(self, machines: Sequence[Machine], seconds: float) -> None:
        files = ((each.name, led_hold(self._settings(each), seconds)) for each in machines)
        await asyncio.gather(*(self.site.write_files(name, (file,)) for name, file in files))

    async def _running(self) -> list[Machine]:
        """The machines on which a process runs."""
        facts = await self.site.facts(WRITE_AHEAD_LOG)
        return [each.machine for each in facts.machines if each.units and each.unit(self.unit).state in _RUNS]

    async def _order(
        self, machine: Machine, order: Sequence[Machine], number: tuple[int, int], claim: Claim | None
    ) -> None:
        settings = self._settings(machine)
        orders = led_orders(
            settings,
            order=tuple(each.name for each in order),
            leads=tuple(each.address for each in order),
            number=number,
            ownership=claim.ownership if claim is not None else Ownership("", 0),
        )
        await self.site.write_files(machine.name, (orders,))
        await self.site.start_unit(machine.name, led_unit(settings))

    async def _come_true(self, doing: str, wanted: Record, order: Sequence[Machine]) -> None:
        seen = "no answer"
        try:
            async with asyncio.timeout(self.patience):
                while True:
                    with suppress(Unavailable):
                        now = await self.look("")
                        seen = now.torn or " ".join(now.record.addresses if now.record else ("nowhere",))
                        if now.record == wanted and not now.torn:
                            return
                    await asyncio.sleep(0.03)
        except TimeoutError as error:
            idle = await asyncio.gather(*(why_idle(self.site, each.name, self.unit) for each in order))
            seen = "; ".join(filter(None, idle)) or seen
            next_step = f"look at the log of unit {self.unit} there"
            raise TimedOut(doing, f"{seen} after {self.patience:g} s", next_step) from error

    async def _remove(self, machine: Machine) -> None:
        if any(each.name == self.unit for each in await self.site.units(machine.name)):
            await self.site.remove_unit(machine.name, self.unit)

    async def _asked(self, machine: Machine) -> Heard | None:
        """What the process on a machine says; None if it says nothing."""
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as asking:
            try:
                asking.connect((machine.address, self.talk))
                async with asyncio.timeout(_ANSWER):
                    await loop.sock_sendall(asking, _QUESTION)
                    return self._read(machine.name, json.loads(await loop.sock_recv(asking, _LARGEST)))
            except (OSError, ValueError, KeyError, TypeError):  # TimeoutError is an OSError
                return None

    def _read(self, machine: str, said: Mapping[str, object]) -> Heard:
        number, leads, holds = said["number"], said["leads"], said["holds"]
        assert isinstance(number, list)
        assert isinstance(leads, list)
        assert isinstance(holds, list)
        return Heard(
            machine=machine,
            holds=self.address in holds,
            held=said.get("held") is True,
            number=(int(number[0]), int(number[1])),
            leads=tuple(map(str, leads)),
            ownership=Ownership(str(said["owner"]), int(str(said["token"]))),
        )

    def _settings(self, machine: Machine) -> LedSettings:
        return LedSettings(
            unit=self.unit,
            folder=self.site.folder(machine.name, self.unit),
            machine=machine.name,
            address=self.address,
            port=self.port,
            talk=self.talk,
            admin=self.admin(machine.name) if machine.role is MachineRole.EDGE else None,
            python=self.python,
            search_path=self.search_path,
        )
