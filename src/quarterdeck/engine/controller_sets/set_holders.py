"""Who runs each set of controllers now: who holds the lock that guards it, and what is to be said against that."""

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

# Who holds a lock of controllers: a Lease names its holder by a host and a number, and programs say who leads.

#: Seconds within which who has just taken a lock says so, and who lost it does not any more; and between two askings.
PATIENCE = 3.0
_BETWEEN = 0.1


@dataclass(frozen=True, slots=True)
class Holder:
    """A manager on a replica at a site. ``manager`` None, or ``replica`` "": that is not known."""

    manager: ControllerProgram | None = None
    replica: str = ""
    site: str = ""

    @override
    def __str__(self) -> str:
        """In words."""
        program = self.manager.value if self.manager is not None else "a program that no replica knows of"
        return f"{program} of {self.replica}" if self.replica else program


def main_lock(manager: ControllerProgram) -> str:
    """The lock that all of a manager's controllers have."""
    return CATALOGUE[manager.component].lease


def locks_of(plane: Plane) -> frozenset[str]:
    """The locks that controllers of sets run under on replicas of any revision that the plane has: the sets' own, and
    those of both managers. None where there are no sets.
    """
    sets = {each.lock for template in plane.revisions.templates.values() for each in template.controller_sets or ()}
    return frozenset((*sets, *map(main_lock, ControllerProgram))) if sets else frozenset()


def manager_of(plane: Plane, program: str) -> ControllerProgram | None:
    """The manager that a program is by the name of its file, which is what writes fields of objects."""
    clouds = (each.cloud_controller_manager for each in plane.revisions.templates.values())
    paths = (each.program for each in clouds if each is not None and each.program is not None)
    names = {each.name: ControllerProgram.CLOUD for each in paths}
    return {**names, **{CATALOGUE[each.component].program: each for each in ControllerProgram}}.get(program)


async def claims(
    plane: Plane, lock: str, managers: Iterable[ControllerProgram] = tuple(ControllerProgram)
) -> tuple[Holder, ...]:
    """Who says itself that it holds a lock, of these managers on all replicas."""
    asked = [(each, record) for each in managers for record in plane.memory.replicas]
    said = await asyncio.gather(*(_leads(plane, record, each, lock) for each, record in asked))
    return tuple(
        Holder(each, record.name, record.site) for (each, record), leads in zip(asked, said, strict=True) if leads
    )


async def _leads(plane: Plane, record: Replica, manager: ControllerProgram, lock: str) -> bool:
    address = _reached(plane, record, manager)
    return address is not None and bool(await plane.kube.leads(address, lock))


def _reached(plane: Plane, record: Replica, manager: ControllerProgram) -> Address | None:
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
        found = await claims(plane, lock, ControllerProgram if said is None else (said,))
        sure = len(found) == 1 and found[0] != former
        if sure or loop.time() >= until:
            return found[0] if len(found) == 1 else Holder(said)
        await asyncio.sleep(_BETWEEN)


#: Seconds by which the clock of a holder may differ from the apiserver's: as often as it renews.
MOST_APART = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSet:
    """A set as it is declared, the ``guard`` (the name of the lock under which it runs now, or is to run) and who holds
    that: a manager (None: not known) of a replica ("": none says so), which calls itself ``identity`` ("": nobody holds
    it), since a time (seconds since the epoch, by its own clock), renewed so many seconds ago. ``token`` counts the
    holders. ``why``: what is to be said against it, in words. ``well``: its owner runs it.
    """

    declared: ControllerSetSpec
    guard: str
    manager: ControllerProgram | None = None
    replica: str = ""
    identity: str = ""
    since: float | None = None
    renewed_ago: float | None = None
    token: int = 0
    why: tuple[str, ...] = ()
    well: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A lock: its Lease, who holds it as far as anybody says so, and how many say so. ``ago``: seconds since it was
    renewed; ``ahead``: by how many the holder's clock is ahead of the apiserver's (None: not known).
    """

    lease: SeenLease
    who: Holder = field(default_factory=Holder)
    claimed: int = 0
    ago: float | None = None
    ahead: float | None = None

    @property
    def over(self) -> bool:
        """Whether it was not renewed for as long as it counts."""
        return self.ago is not None and self.ago > self.lease.duration

    @property
    def free(self) -> bool:
        """Whether nobody holds it."""
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
    """An apiserver that is ready, and the replica that it is of."""
    address = await ready_apiserver(plane, f"looking at the locks of plane {plane.name}")
    name = next(name for name, where in apiservers(plane).items() if where == address)
    return address, Holder(None, name, plane.memory.replica(name).site)


async def _held(plane: Plane, apiserver: Address, server: Holder, lock: str) -> _Held:
    lease = await plane.kube.leader_lease(apiserver, lock)
    if lease is None or not lease.holder:
        return _Held(lease=lease or SeenLease(name=lock, holder="", renewed=None, duration=0.0, resource_version=""))
    said = manager_of(plane, lease.manager)
    found = await claims(plane, lock, ControllerProgram if said is None else (said,))
    who = found[0] if len(found) == 1 else Holder(said)
    mine, theirs = await asyncio.gather(_offset(plane, who), _offset(plane, server))
    ago = plane.clock() + (mine or 0.0) - lease.renewed if lease.renewed is not None else None
    ahead = mine - theirs if mine is not None and theirs is not None else None
    return _Held(lease=lease, who=who, claimed=len(found), ago=ago, ahead=ahead)


async def _offset(plane: Plane, who: Holder) -> float | None:
    """By how many seconds the clock of a replica's machine is ahead of this host's; None if that is not known."""
    if not who.replica:
        return None
    record = plane.memory.replica(who.replica)
    try:
        return await or_none(plane.site(record.site).measure(record.machine, ClockOffset()))
    except NotFound:
        return None  # the site is gone, or the machine is


async def _of(plane: Plane, apiserver: Address, one: ControllerSetSpec, held: Mapping[str, _Held]) -> HeldSet:
    guard = _guard(plane, one, held)
    found = held[guard]
    lease, who = found.lease, found.who
    runs = not found.free and _runs(plane, one, found)
    against = [*_against(one, found, runs=runs)]
    # The rights that count are those for the lock that it is to have.
    user, wanted = f"system:{one.owner.value}", _wanted(plane, one)
    if await or_none(plane.kube.may_hold(apiserver, user, wanted)) is False:
        against.append(f"{user} may not write lease {wanted}: see the add-ons in 'status {plane.name}'")
    return HeldSet(
        declared=one,
        guard=guard,
        manager=None if found.free else who.manager,
        replica="" if found.free else who.replica,
        identity="" if found.free else lease.holder,
        since=None if found.free else lease.acquired,
        renewed_ago=found.ago,
        token=lease.transitions,
        why=tuple(against),
        well=runs and who.manager is one.owner,
    )


def _guard(plane: Plane, one: ControllerSetSpec, held: Mapping[str, _Held]) -> str:
    """The lock whose holder runs a set by what its replica is told; where there is none, the one that it is to have."""
    locks = (one.lock, *map(main_lock, ControllerProgram))
    return next((each for each in locks if not held[each].free and _runs(plane, one, held[each])), _wanted(plane, one))


def _runs(plane: Plane, one: ControllerSetSpec, held: _Held) -> bool:
    """Whether the holder of a lock runs a set under it, as its replica's revision says."""
    who = held.who
    if who.manager is None or not who.replica:
        return False
    template = plane.revisions.template(plane.memory.replica(who.replica).revision)
    return all(controller_sets.lock_of(template, who.manager, each) == held.lease.name for each in one.controllers)


def _wanted(plane: Plane, one: ControllerSetSpec) -> str:
    """The lock under which a set is to run."""
    sets = controller_sets.at_rest(plane.resource.spec.controller_sets, plane.resource.spec.kubernetes_version)
    guard = next(each.guard for each in sets if each.name == one.name)
    return one.lock if guard is Guard.SET else main_lock(one.owner)


def _against(one: ControllerSetSpec, held: _Held, *, runs: bool) -> Iterator[str]:
    """What is to be said against how a set's lock is held."""
    lease, who = held.lease, held.who
    if not lease.holder:
        yield f"nobody holds lock {lease.name}"
        return
    if held.over:
        yield f"nobody renews lock {lease.name}: {lease.holder} had it, and has not for {held.ago:.0f} s"
        return
    if held.claimed > 1:
        yield f"{held.claimed} programs say that they hold lock {lease.name}: one of them stood still"
    elif not held.claimed:
        yield f"{lease.holder} holds lock {lease.name}, and no manager of this plane says that it does"
    elif who.manager is not one.owner:
        yield f"{who} holds lock {lease.name}, and the {one.owner.value} is to: a hand-over is under way, or goes back"
    elif not runs:
        yield f"{who} holds lock {lease.name}, and is not yet told to run the set"
    ahead = held.ahead if held.ahead is not None else -(held.ago or 0.0) if (held.ago or 0.0) < 0 else 0.0
    if abs(ahead) > MOST_APART:
        word = "ahead of" if ahead > 0 else "behind"
        yield f"the clock of {who} is {abs(ahead):.0f} s {word} the apiserver's: set it, and run NTP there"
