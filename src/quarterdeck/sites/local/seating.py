"""Who sits where on a local machine: its ledger, and what listens there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from quarterdeck.model.seats import Endpoint, Seat, TakenSeat
from quarterdeck.model.units import Fence
from quarterdeck.sites.ledger import Ledger
from quarterdeck.sites.listening import TABLES, listening_ends
from quarterdeck.sites.local.disk import on_disk
from quarterdeck.sites.local.kept_ledger import change_ledger, read_ledger
from quarterdeck.sites.local.machine import LocalMachine

T = TypeVar("T")


async def allocate(
    where: LocalMachine, fence: Fence | None, plane: str, replica: str, ports: Mapping[str, int]
) -> Seat:
    """See Site.allocate."""
    await where.admit(fence)
    hosts = await where.addresses()
    taken = await listening(where, hosts)

    def allocated(ledger: Ledger) -> tuple[Ledger, Seat]:
        return ledger.allocated(
            machine=where.name, hosts=hosts, plane=plane, replica=replica, ports=ports, listening=taken
        )

    return await _changed(where, fence, allocated)


async def occupy(where: LocalMachine, fence: Fence | None, taken: TakenSeat) -> None:
    """See Site.occupy."""
    await where.admit(fence)
    await _changed(where, fence, lambda ledger: (ledger.occupied(taken), None))


async def release(where: LocalMachine, fence: Fence | None, plane: str, replica: str) -> None:
    """See Site.release."""
    await where.admit(fence)
    await _changed(where, fence, lambda ledger: (ledger.released(plane, replica), None))


async def seats(where: LocalMachine) -> tuple[TakenSeat, ...]:
    """Who has which, as is written there."""
    return (await on_disk(where.name, read_ledger, where.folder)).taken


async def listening(where: LocalMachine, hosts: tuple[str, ...]) -> frozenset[Endpoint]:
    """Where something listens at these addresses of the machine."""
    return listening_ends((await where.inside("/bin/cat", *TABLES)).decode(), hosts)


async def _changed(where: LocalMachine, fence: Fence | None, change: Callable[[Ledger], tuple[Ledger, T]]) -> T:
    """The ledger knows the fences as well: two processes may be at it at once, and no supervisor need run."""
    return await on_disk(where.name, change_ledger, where.folder, lambda ledger: change(ledger.admitting(fence)))
