"""The manager that runs each controller set now: the holder of its lock, and the problems with that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from typing_extensions import override

from quarterdeck.actions.addresses import apiservers, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.api.plane.controllers import ControllerProgram, ControllerSetSpec
from quarterdeck.api.revision import Guard
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.controller import sets as controller_sets
from quarterdeck.engine.observation.queries import or_none, ready_apiserver
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.kube.port import Address, SeenLease
from quarterdeck.model.capabilities import ClockOffset
from quarterdeck.model.memory import Replica

# The holder of a lock: a Lease names it by a host and a number, and programs report whether they lead.

#: Seconds within which a new holder reports its lock, and a former one no longer does; and between two queries.
PATIENCE = 3.0
_BETWEEN = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """A manager on a replica at a site. ``manager`` None, or ``replica`` "": unknown."""

    manager: ControllerProgram | None = None
    replica: str = ""
    site: str = ""

    @override
    def __str__(self) -> str:
        """For people."""
        program = self.manager.value if self.manager is not None else "an unknown program"
        return f"{program} of {self.replica}" if self.replica else program


def main_lock(manager: ControllerProgram) -> str:
    """The main lock of a manager, for all its controllers outside of sets."""
    return CATALOGUE[manager.component].lease


def locks_of(plane: Plane) -> frozenset[str]:
    """The locks of controller sets in all revisions of the plane: the sets' own, and the main locks of both managers.
    Empty where there are no sets.
    """
    sets = {each.lock for template in plane.revisions.templates.values() for each in template.controller_sets or ()}
    return frozenset((*sets, *map(main_lock, ControllerProgram))) if sets else frozenset()


def manager_of(plane: Plane, program: str) -> ControllerProgram | None:
    """The manager of a program, by the name of its file, which it also uses as its field manager."""
    clouds = (each.cloud_controller_manager for each in plane.revisions.templates.values())
    paths = (each.program for each in clouds if each is not None and each.program is not None)
    names = {each.name: ControllerProgram.CLOUD for each in paths}
    return {**names, **{CATALOGUE[each.component].program: each for each in ControllerProgram}}.get(program)


async def claims(
    plane: Plane, lock: str, managers: Iterable[ControllerProgram] = tuple(ControllerProgram)
) -> tuple[Holder, ...]:
    """The managers among these, on all replicas, that report to hold a lock."""
    asked = [(each, record) for each in managers for record in plane.memory.replicas]
    answers = await asyncio.gather(*(_leads(plane, record, each, lock) for each, record in asked))
    return tuple(
        Holder(each, record.name, record.site) for (each, record), leads in zip(asked, answers, strict=True) if leads
    )


async def _leads(plane: Plane, record: Replica, manager: ControllerProgram, lock: str) -> bool:
    address = _reached(plane, record, manager)
    return address is not None and bool(await plane.kube.leads(address, lock))


def _reached(plane: Plane, record: Replica, manager: ControllerProgram) -> Address | None:
    (port,) = CATALOGUE[manager.component].ports
    try:
        return server_address(record, port.name)
    except (NotFound, Unavailable):
        return None  # its machine is gone, or it has no port for the program: it does not run


async def taker(plane: Plane, lock: str, program: str, former: Holder | None) -> Holder:
    """The new holder of a lock, by the name of the program that wrote it and by the programs' own reports. ``former``
    is the previous holder, and counts only when no other program reports the lock within ``PATIENCE``: a frozen one has
    not noticed yet, and a new one reports it a moment later.
    """
    named, loop = manager_of(plane, program), asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while True:
        found = await claims(plane, lock, ControllerProgram if named is None else (named,))
        sure = len(found) == 1 and found[0] != former
        if sure or loop.time() >= until:
            return found[0] if len(found) == 1 else Holder(named)
        await asyncio.sleep(_BETWEEN)


#: Seconds by which the clock of a holder may differ from the apiserver's: as often as it renews.
MOST_APART = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSet:
    """A declared set, and the holder of its lock."""

    declared: ControllerSetSpec
    #: The name of the lock under which it runs now, or must run.
    guard: str
    #: None: unknown.
    manager: ControllerProgram | None = None
    #: "": no replica reports the lock.
    replica: str = ""
    #: The holder identity; "": no holder.
    identity: str = ""
    #: Seconds since the epoch, by the holder's clock.
    since: float | None = None
    #: Seconds since the last renewal.
    renewed_ago: float | None = None
    #: Counts the holders.
    token: int = 0
    #: Problems, in words.
    why: tuple[str, ...] = ()
    #: Its owner runs it.
    well: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A lock: its Lease, its holder as far as reported, and how many programs report it. ``ago``: seconds since it was
    renewed; ``ahead``: seconds by which the holder's clock is ahead of the apiserver's (None: unknown).
    """

    lease: SeenLease
    holder: Holder = field(default_factory=Holder)
    claimed: int = 0
    ago: float | None = None
    ahead: float | None = None

    @property
    def over(self) -> bool:
        """Whether it has expired."""
        return self.ago is not None and self.ago > self.lease.duration

    @property
    def free(self) -> bool:
        """Whether it has no valid holder."""
        return not self.lease.holder or self.over


async def sets_held(plane: Plane) -> tuple[HeldSet, ...]:
    """All declared sets. Raises Unavailable when no apiserver is ready."""
    sets = plane.resource.spec.controller_sets
    if not sets:
        return ()
    apiserver, server = await _server(plane)
    locks = [*dict.fromkeys((*(each.lock for each in sets), *map(main_lock, ControllerProgram)))]
    found = await asyncio.gather(*(_held(plane, apiserver, server, lock) for lock in locks))
    held = dict(zip(locks, found, strict=True))
    return tuple([await _of(plane, apiserver, each, held) for each in sets])


async def _server(plane: Plane) -> tuple[Address, Holder]:
    """A ready apiserver, and its replica."""
    address = await ready_apiserver(plane, f"reading the locks of plane {plane.name}")
    name = next(name for name, where in apiservers(plane).items() if where == address)
    return address, Holder(None, name, plane.memory.replica(name).site)


async def _held(plane: Plane, apiserver: Address, server: Holder, lock: str) -> _Held:
    lease = await plane.kube.leader_lease(apiserver, lock)
    if lease is None or not lease.holder:
        return _Held(lease=lease or SeenLease(name=lock, holder="", renewed=None, duration=0.0, resource_version=""))
    named = manager_of(plane, lease.manager)
    found = await claims(plane, lock, ControllerProgram if named is None else (named,))
    holder = found[0] if len(found) == 1 else Holder(named)
    mine, theirs = await asyncio.gather(_offset(plane, holder), _offset(plane, server))
    ago = plane.clock() + (mine or 0.0) - lease.renewed if lease.renewed is not None else None
    ahead = mine - theirs if mine is not None and theirs is not None else None
    return _Held(lease=lease, holder=holder, claimed=len(found), ago=ago, ahead=ahead)


async def _offset(plane: Plane, holder: Holder) -> float | None:
    """Seconds by which the clock of a replica's machine is ahead of this host's; None if unknown."""
    if not holder.replica:
        return None
    record = plane.memory.replica(holder.replica)
    try:
        return await or_none(plane.site(record.site).measure(record.machine, ClockOffset()))
    except NotFound:
        return None  # the site is gone, or the machine is


async def _of(plane: Plane, apiserver: Address, one: ControllerSetSpec, held: Mapping[str, _Held]) -> HeldSet:
    guard = _guard(plane, one, held)
    found = held[guard]
    lease, holder = found.lease, found.holder
    runs = not found.free and _runs(plane, one, found)
    against = [*_against(one, found, runs=runs)]
    # The permission that counts is that for its wanted lock.
    user, wanted = f"system:{one.owner.value}", _wanted(plane, one)
    if await or_none(plane.kube.may_hold(apiserver, user, wanted)) is False:
        against.append(f"{user} may not write lease {wanted}: see the add-ons in 'status {plane.name}'")
    return HeldSet(
        declared=one,
        guard=guard,
        manager=None if found.free else holder.manager,
        replica="" if found.free else holder.replica,
        identity="" if found.free else lease.holder,
        since=None if found.free else lease.acquired,
        renewed_ago=found.ago,
        token=lease.transitions,
        why=tuple(against),
        well=runs and holder.manager is one.owner,
    )


def _guard(plane: Plane, one: ControllerSetSpec, held: Mapping[str, _Held]) -> str:
    """The lock whose holder runs a set according to its replica's revision; else the wanted lock."""
    locks = (one.lock, *map(main_lock, ControllerProgram))
    return next((each for each in locks if not held[each].free and _runs(plane, one, held[each])), _wanted(plane, one))


def _runs(plane: Plane, one: ControllerSetSpec, held: _Held) -> bool:
    """Whether the holder of a lock runs a set under it, according to its replica's revision."""
    holder = held.holder
    if holder.manager is None or not holder.replica:
        return False
    template = plane.revisions.template(plane.memory.replica(holder.replica).revision)
    return all(controller_sets.lock_of(template, holder.manager, each) == held.lease.name for each in one.controllers)


def _wanted(plane: Plane, one: ControllerSetSpec) -> str:
    """The lock under which a set must run."""
    sets = controller_sets.at_rest(plane.resource.spec.controller_sets, plane.resource.spec.kubernetes_version)
    guard = next(each.guard for each in sets if each.name == one.name)
    return one.lock if guard is Guard.SET else main_lock(one.owner)


def _against(one: ControllerSetSpec, held: _Held, *, runs: bool) -> Iterator[str]:
    """The problems with the holder of a set's lock."""
    lease, holder = held.lease, held.holder
    if not lease.holder:
        yield f"lock {lease.name} has no holder"
        return
    if held.over:
        yield f"lock {lease.name} is not renewed: its holder {lease.holder} has not renewed it for {held.ago:.0f} s"
        return
    if held.claimed > 1:
        yield f"{held.claimed} programs report that they hold lock {lease.name}: one of them was frozen"
    elif not held.claimed:
        yield f"{lease.holder} holds lock {lease.name}, and no manager of this plane reports it"
    elif holder.manager is not one.owner:
        then = "a migration is in progress, or is being undone"
        yield f"{holder} holds lock {lease.name}, which belongs to the {one.owner.value}: {then}"
    elif not runs:
        yield f"{holder} holds lock {lease.name}, and is not yet configured to run the set"
    ahead = held.ahead if held.ahead is not None else -(held.ago or 0.0) if (held.ago or 0.0) < 0 else 0.0
    if abs(ahead) > MOST_APART:
        word = "ahead of" if ahead > 0 else "behind"
        yield f"the clock of {holder} is {abs(ahead):.0f} s {word} the apiserver's: set it, and run NTP there"
