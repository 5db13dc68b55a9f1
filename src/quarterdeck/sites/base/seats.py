"""Seats of replicas on machines: each machine has a ledger, which each driver stores in its own way."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from typing_extensions import override

from quarterdeck.components.ports import LAST_BLOCK, ports_of, seat_with
from quarterdeck.errors import Conflict, Corrupt, LeaseLost, PreconditionFailed
from quarterdeck.model.seats import HostPort, Seat, SeatPort, TakenSeat
from quarterdeck.model.units import Fence
from quarterdeck.sites.base.site import BaseSite, C, M

T = TypeVar("T")


class SeatingSite(BaseSite[M, C]):
    """Allocates seats from the ledgers of its machines."""

    @override
    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        await self._admitted(machine)
        hosts = await self._addresses(machine)
        listening = await self._listening(machine, hosts)

        def allocated(ledger: SeatLedger) -> tuple[SeatLedger, Seat]:
            return ledger.allocated(
                machine=machine, hosts=hosts, plane=plane, replica=replica, ports=ports, listening=listening
            )

        return await self._changed(machine, f"allocating a seat for replica {replica} on machine {machine}", allocated)

    @override
    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        await self._admitted(machine)
        doing = f"recording the seat of replica {taken.replica} on machine {machine}"
        await self._changed(machine, doing, lambda ledger: (ledger.occupied(taken), None))

    @override
    async def release(self, machine: str, plane: str, replica: str) -> None:
        await self._admitted(machine)
        doing = f"releasing the seat of replica {replica} on machine {machine}"
        await self._changed(machine, doing, lambda ledger: (ledger.released(plane, replica), None))

    @override
    async def seats(self, machine: str) -> tuple[TakenSeat, ...]:
        await self._reached(machine)
        return (await self._ledger(machine)).taken

    @override
    async def ports_in_use(self, machine: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        await self._reached(machine)
        address = self._address(machine)
        taken = await self._listening(machine, (address,))
        return tuple(port for port in ports if HostPort(address, port) in taken)

    @abstractmethod
    def _address(self, machine: str) -> str:
        """The machine's own address. No IO."""

    async def _addresses(self, machine: str) -> tuple[str, ...]:
        """The addresses that a seat can have, the machine's own first."""
        return (self._address(machine),)

    @abstractmethod
    async def _listening(self, machine: str, hosts: tuple[str, ...]) -> frozenset[HostPort]:
        """The listening sockets at these addresses of the machine."""

    @abstractmethod
    async def _ledger(self, machine: str) -> SeatLedger:
        """The machine's ledger, an empty one before its first seat. Raises Corrupt."""

    @abstractmethod
    async def _changed(self, machine: str, doing: str, change: Callable[[SeatLedger], tuple[SeatLedger, T]]) -> T:
        """Change the machine's current ledger, with the site's fence admitted, and store it before this returns. Raises
        what ``change`` and ``_ledger`` do, LeaseLost, TimedOut while others change it.
        """


# The ledger of a machine: its allocated seats. Pure; each site stores it in its own way.


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatLedger:
    """The seats of a machine."""

    #: The seats of replicas, in the order of their allocation.
    taken: tuple[TakenSeat, ...] = ()
    #: The highest fencing token of each plane's drivers; lower ones are refused.
    fences: Mapping[str, int] = field(default_factory=dict)

    def admitting(self, fence: Fence | None) -> SeatLedger:
        """The ledger once a driver with this fence has come. Raises LeaseLost if a newer one did."""
        if fence is None:
            return self
        newest = self.fences.get(fence.plane, 0)
        if fence.token < newest:
            raise LeaseLost("changing the seats of a machine", f"a driver with token {newest} has been there")
        return replace(self, fences={**self.fences, fence.plane: fence.token})

    def of(self, plane: str, replica: str) -> TakenSeat | None:
        """A replica's entry."""
        return next((each for each in self.taken if (each.plane, each.replica) == (plane, replica)), None)

    def allocated(
        self,
        *,
        machine: str,
        hosts: Sequence[str],
        plane: str,
        replica: str,
        ports: Mapping[str, int],
        listening: Collection[HostPort],
    ) -> tuple[SeatLedger, Seat]:
        """The ledger with a seat for a replica, and that seat: the existing one, else one with these ports at one of
        ``hosts`` (the machine's address first), or with those of a block, whose ports are neither allocated nor in use.
        Blocks are allocated from the last one down: planes request the first ones. See ``SitePort.allocate`` for its
        errors.
        """
        doing = f"allocating a seat for replica {replica} on machine {machine}"
        has = self.of(plane, replica)
        if has is not None:
            if {each.name for each in has.seat.ports} != set(ports):
                names = ", ".join(each.name for each in has.seat.ports)
                raise Conflict(doing, f"it has one with other ports ({names})")
            return self, has.seat
        used = {each.listen for taken in self.taken for each in taken.seat.ports} | {*listening}
        blocks = (seat_with(machine, hosts[0], ports_of(block, ports)) for block in range(LAST_BLOCK, -1, -1))
        for seat in (*(seat_with(machine, host, ports) for host in hosts), *blocks):
            if used.isdisjoint(each.listen for each in seat.ports):
                return self.occupied(TakenSeat(plane=plane, replica=replica, seat=seat)), seat
        seen = f"none of {LAST_BLOCK + 1} blocks of ports is free"
        raise PreconditionFailed(doing, seen, "delete planes, or stop what listens there")

    def occupied(self, taken: TakenSeat) -> SeatLedger:
        """The ledger with a replica on that seat, even if another one has it."""
        others = self.released(taken.plane, taken.replica)
        return replace(others, taken=(*others.taken, taken))

    def released(self, plane: str, replica: str) -> SeatLedger:
        """The ledger without a replica."""
        kept = tuple(each for each in self.taken if (each.plane, each.replica) != (plane, replica))
        return replace(self, taken=kept)


def ledger_text(ledger: SeatLedger) -> bytes:
    """A ledger in stored form."""
    content = {
        "taken": [
            {
                "plane": each.plane,
                "replica": each.replica,
                "ports": [
                    {
                        "name": port.name,
                        "listen": [port.listen.host, port.listen.port],
                        "advertised": [port.advertised.host, port.advertised.port],
                    }
                    for port in each.seat.ports
                ],
            }
            for each in ledger.taken
        ],
        "fences": dict(ledger.fences),
    }
    return json.dumps(content, indent=1).encode()


def ledger_of(doing: str, machine: str, text: bytes) -> SeatLedger:
    """The ledger of a machine from its stored form. Raises Corrupt."""
    try:
        content = json.loads(text)
        return SeatLedger(
            taken=tuple(
                TakenSeat(
                    plane=str(each["plane"]),
                    replica=str(each["replica"]),
                    seat=Seat(machine=machine, ports=tuple(map(_port, each["ports"]))),
                )
                for each in content["taken"]
            ),
            fences={str(plane): int(token) for plane, token in content["fences"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        next_step = "remove it: it is created again from the recorded state of planes"
        raise Corrupt(doing, f"not a ledger of seats ({error!r})", next_step) from error


def _port(content: dict[str, Any]) -> SeatPort:
    return SeatPort(name=str(content["name"]), listen=_end(*content["listen"]), advertised=_end(*content["advertised"]))


def _end(host: object, port: int) -> HostPort:
    return HostPort(str(host), int(port))
