"""From what is wanted in the end to what is wanted now.

Across sites all comes at once: the replicas of the target join together, and the plane goes over as a whole. Inside a
site one replica is exchanged at a time: a new one joins before the old one leaves, so that there is at most one member
more than wanted, and the leader goes last.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.slots import Slot
from quarterdeck.model.units import IDLE, MachineState
from quarterdeck.model.world import Health, World
from quarterdeck.planner.machines import busy, is_there, machine_for, no_machine
from quarterdeck.planner.match import fits, match
from quarterdeck.planner.members import listed, serves, voters
from quarterdeck.planner.quorum import home
from quarterdeck.planner.slots import lent


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is wanted now: where the plane is heading, the replicas that are to be there, and the places that are to get
    one. ``waiting``: why an exchange does not begin.
    """

    heading: str
    wanted: tuple[Replica, ...]
    missing: tuple[Slot, ...] = ()
    waiting: tuple[str, ...] = ()


def stage(world: World, at: str | None, lost: frozenset[str], old: frozenset[str], revision: str) -> Stage:
    """What is wanted now, of ``revision``. ``at``: the site that holds a quorum by itself; ``lost``: replicas that can
    never be used again; ``old``: those in whose place others are wanted.
    """
    goal = world.slots[0].site
    if world.membership is not None:
        back = _retreat(world, goal, at)
        if back is not None:
            return Stage(heading=back, wanted=_members_at(world, back, lost))
    lends = _lends(world, at, goal) or _lends_for_events(world, goal)
    extra = (lent(world.slots[0]),) if lends else ()
    return _filled(world, (*world.slots, *extra), at, lost, old, revision)


def _filled(
    world: World, slots: tuple[Slot, ...], at: str | None, lost: frozenset[str], old: frozenset[str], revision: str
) -> Stage:
    """Slots are filled by the replicas that fit; those of the site that do not fit stand in where there is none."""
    goal = slots[0].site
    order = {record.name: index for index, record in enumerate(world.memory.replicas)}

    def cost(record: Replica) -> tuple[int, ...]:
        return (*_cost(world, record, revision), order[record.name])

    here = [record for record in world.memory.replicas if record.site == goal and record.name not in lost]
    chosen = match(slots, (each for each in here if each.name not in old), cost)

    def dearest_last(record: Replica) -> tuple[int, ...]:
        place = any(fits(record, slot) for slot in chosen.empty)
        return not place, record.name in old, *cost(record)

    left = (each for each in here if each not in chosen.filled and _stands_in(world, each))
    spare = tuple(sorted(left, key=dearest_last))
    if spare and len(chosen.filled) + len(spare) == len(slots) and at == goal:
        return _exchanging(world, goal, chosen.filled, spare, slots)
    acting = spare[: len(chosen.empty)]
    return Stage(heading=goal, wanted=(*chosen.filled, *acting), missing=_uncovered(chosen.empty, acting))


def _exchanging(
    world: World, site: str, kept: tuple[Replica, ...], spare: tuple[Replica, ...], slots: tuple[Slot, ...]
) -> Stage:
    """As many as wanted are there, but ``spare`` ones, the dearest last, only stand in. One of them is exchanged when
    all others are well and nobody leaves any more.
    """
    *stay, last = spare
    now = Stage(heading=site, wanted=(*kept, *spare))
    leaving = [each for each in world.memory.replicas if each not in now.wanted and is_there(world, each)]
    others = (*kept, *stay)
    if leaving or not all(serves(world, each) and _is_backend(world, each) for each in others):
        return now
    empty = _uncovered(slots, others)
    slot = next((each for each in empty if fits(last, each)), empty[0])
    taken = {each.machine for each in world.memory.replicas if busy(world, each)}
    if machine_for(world, slot, taken, (last,)) is None:
        return Stage(heading=site, wanted=now.wanted, waiting=(f"{no_machine(slot)}, to exchange {last.name}",))
    return Stage(heading=site, wanted=others, missing=(slot,))


def _is_backend(world: World, record: Replica) -> bool:
    """Whether every load balancer that runs sends to a replica."""
    return all(record.name in each.backends for each in world.balancers if each.running)


def _uncovered(empty: tuple[Slot, ...], acting: tuple[Replica, ...]) -> tuple[Slot, ...]:
    """The slots that nobody stands in for: each does where it is, if it can, or else anywhere."""
    left = match(empty, acting, lambda _: ()).empty
    return left[: max(0, len(empty) - len(acting))]


def _stands_in(world: World, record: Replica) -> bool:
    """Whether a replica that does not fit serves until another one does: only one that is, or will be, a member."""
    if world.membership is None or (record.name in world.memory.bootstrap and not world.memory.created):
        return True
    return listed(world.membership, record)


def _cost(world: World, record: Replica, revision: str) -> tuple[int, ...]:
    """What speaks against keeping a replica, the weightiest first. A leader goes last."""
    member = world.member(record.name)
    fact = world.replica(record.name)
    down = fact.machine is MachineState.DOWN or (member is not None and member.health is Health.DOWN)
    votes = member is not None and not member.learner
    leaves = record.name in dict(world.memory.draining) or fact.unit(Component.APISERVER) in IDLE
    leads = world.membership is not None and world.membership.leader == record.name
    return down, not votes, record.revision != revision, votes and leaves, not leads


def _goal_site_is_down(world: World, site: str) -> bool:
    assert world.membership is not None
    there = [
        world.membership.of(record.name) for record in world.memory.replicas if record.site == site and record.started
    ]
    known = [member for member in there if member is not None]
    return bool(known) and all(member.health is Health.DOWN for member in known)


def _retreat(world: World, goal: str, at: str | None) -> str | None:
    """The site that a plane goes back to before it goes to its goal: when the goal died under it, or when the
    target was changed while voters were already at the former one. None: it goes straight to its goal.
    """
    if at == goal:
        return None
    if at is not None and _goal_site_is_down(world, goal):
        return at
    healthy = Counter(voter.site for voter in voters(world) if voter.site != goal and voter.healthy)
    if len({voter.site for voter in voters(world)} - {goal}) < 2:
        return None
    # One that holds a quorum by itself has the most.
    return min(healthy, key=lambda site: (-healthy[site], site != world.memory.served_site, site), default=None)


def _lends(world: World, at: str | None, goal: str) -> bool:
    if len(world.slots) != 1 or world.membership is None or at == goal:
        return False
    outside = [voter for voter in voters(world) if voter.site != goal]
    begun = sum(record.site == goal for record in world.memory.replicas) > 1
    return len(outside) == 1 and (at is not None or begun)


def _lends_for_events(world: World, goal: str) -> bool:
    """Their cluster follows the main one, and needs what that one was lent until it has followed."""
    if world.membership_of(Cluster.EVENTS) is None or len(world.slots) != 1:
        return False
    events = world.of(Cluster.EVENTS)
    return _lends(events, home(voters(events)), goal)


def _members_at(world: World, site: str, lost: frozenset[str]) -> tuple[Replica, ...]:
    assert world.membership is not None
    here = [record for record in world.memory.replicas if record.site == site and record.name not in lost]
    return tuple(record for record in here if listed(world.membership, record))
