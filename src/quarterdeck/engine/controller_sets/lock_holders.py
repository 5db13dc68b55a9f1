"""Who holds a lock of controllers: a Lease names its holder by a host and a number, and programs say who leads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from typing_extensions import override

from quarterdeck.actions.addresses import server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.controllers import Manager
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.kube.address import Address
from quarterdeck.model.memory import Replica

#: Seconds within which who has just taken a lock says so, and who lost it does not any more; and between two askings.
PATIENCE = 3.0
_BETWEEN = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """A manager on a replica at a site. ``manager`` None, or ``replica`` "": that is not known."""

    manager: Manager | None = None
    replica: str = ""
    site: str = ""

    @override
    def __str__(self) -> str:
        """In words."""
        program = self.manager.value if self.manager is not None else "a program that no replica knows of"
        return f"{program} of {self.replica}" if self.replica else program


def main_lock(manager: Manager) -> str:
    """The lock that all of a manager's controllers have."""
    return CATALOGUE[manager.component].lease


def locks_of(plane: Plane) -> frozenset[str]:
    """The locks that controllers of sets run under on replicas of any revision that the plane has: the sets' own, and
    those of both managers. None where there are no sets.
    """
    sets = {each.lock for template in plane.revisions.templates.values() for each in template.controller_sets or ()}
    return frozenset((*sets, *map(main_lock, Manager))) if sets else frozenset()


def manager_of(plane: Plane, program: str) -> Manager | None:
    """The manager that a program is by the name of its file, which is what writes fields of objects."""
    clouds = (each.cloud_controller_manager for each in plane.revisions.templates.values())
    paths = (each.program for each in clouds if each is not None and each.program is not None)
    names = {each.name: Manager.CLOUD for each in paths}
    return {**names, **{CATALOGUE[each.component].program: each for each in Manager}}.get(program)


async def claims(plane: Plane, lock: str, managers: Iterable[Manager] = tuple(Manager)) -> tuple[Holder, ...]:
    """Who says itself that it holds a lock, of these managers on all replicas."""
    asked = [(each, record) for each in managers for record in plane.memory.replicas]
    said = await asyncio.gather(*(_leads(plane, record, each, lock) for each, record in asked))
    return tuple(
        Holder(each, record.name, record.site) for (each, record), leads in zip(asked, said, strict=True) if leads
    )


async def _leads(plane: Plane, record: Replica, manager: Manager, lock: str) -> bool:
    address = _reached(plane, record, manager)
    return address is not None and bool(await plane.kube.leads(address, lock))


def _reached(plane: Plane, record: Replica, manager: Manager) -> Address | None:
    (port,) = CATALOGUE[manager.component].ports
    try:
        return server_address(record, port.name)
    except (NotFound, Unavailable):
        return None  # its machine is gone, or it has no port for such a program: it runs none


async def taker(plane: Plane, lock: str, program: str, former: Holder | None) -> Holder:
    """Who has just taken a lock, by the name of the program that wrote it and by who says so. ``former`` had it before,
    and counts only when nobody else says so in a while: one that stood still has not noticed yet, and one that has just
    taken a lock says so a moment later.
    """
    said, loop = manager_of(plane, program), asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while True:
        found = await claims(plane, lock, Manager if said is None else (said,))
        sure = len(found) == 1 and found[0] != former
        if sure or loop.time() >= until:
            return found[0] if len(found) == 1 else Holder(said)
        await asyncio.sleep(_BETWEEN)
