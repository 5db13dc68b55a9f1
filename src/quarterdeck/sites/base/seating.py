"""Seats of replicas on machines: each machine has a ledger, which each driver keeps in its own place."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from typing_extensions import override

from quarterdeck.model.seats import Endpoint, Seat, TakenSeat
from quarterdeck.sites.base.site import BaseSite, C, M
from quarterdeck.sites.ledger import Ledger

T = TypeVar("T")


class SeatingSite(BaseSite[M, C]):
    """Gives seats from the ledgers of its machines."""

    @override
    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        await self._admitted(machine)
        hosts = await self._addresses(machine)
        listening = await self._listening(machine, hosts)

        def allocated(ledger: Ledger) -> tuple[Ledger, Seat]:
            return ledger.allocated(
                machine=machine, hosts=hosts, plane=plane, replica=replica, ports=ports, listening=listening
            )

        return await self._changed(machine, f"giving replica {replica} a seat on machine {machine}", allocated)

    @override
    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        await self._admitted(machine)
        doing = f"noting the seat of replica {taken.replica} on machine {machine}"
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
        return tuple(port for port in ports if Endpoint(address, port) in taken)

    @abstractmethod
    def _address(self, machine: str) -> str:
        """The machine's own address. No IO."""

    async def _addresses(self, machine: str) -> tuple[str, ...]:
        """The addresses that a seat can have, the machine's own first."""
        return (self._address(machine),)

    @abstractmethod
    async def _listening(self, machine: str, hosts: tuple[str, ...]) -> frozenset[Endpoint]:
        """Where something listens at these addresses of the machine."""

    @abstractmethod
    async def _ledger(self, machine: str) -> Ledger:
        """The machine's ledger, an empty one before its first seat. Raises Corrupt."""

    @abstractmethod
    async def _changed(self, machine: str, doing: str, change: Callable[[Ledger], tuple[Ledger, T]]) -> T:
        """Change the machine's ledger as it is then, with the site's fence admitted, and keep it before this returns.
        Raises what ``change`` and ``_ledger`` do, LeaseLost, TimedOut while others change it.
        """
