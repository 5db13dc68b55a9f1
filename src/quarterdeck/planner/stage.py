"""The stage: from what is wanted in the end to what is wanted now.

Across sites all replicas move at once: those of the target join together, and the plane moves as a whole. Inside a site
one replica is replaced at a time: a new one joins before the old one leaves, so there is at most one member too many,
and the leader is replaced last.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import IDLE, MachineState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.machines import busy, is_there, machine_for, no_machine
from quarterdeck.planner.members import listed, serves, voters, was_removed
from quarterdeck.planner.quorum import quorum_site
from quarterdeck.planner.slots import fits, lent, match


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is wanted now: where the plane is heading, the wanted replicas, and the slots that need one. ``waiting``:
    why a replacement does not begin.
    """

    heading: str
    wanted: tuple[Replica, ...]
    missing: tuple[Slot, ...] = ()
    waiting: tuple[Wait, ...] = ()


def stage(world: World, at: str | None, lost: frozenset[str], old: frozenset[str], revision: str) -> Stage:
    """What is wanted now, with ``revision``. ``at``: the quorum site; ``lost``: replicas that can never be used again;
    ``old``: replicas that must be replaced.
    """
    goal = world.goal
    if world.membership is not None:
        back = _retreat(world, goal, at)
        if back is not None:
            return Stage(heading=back, wanted=_members_at(world, back, lost))
    lends = _lends(world, at, goal) or _lends_for_events(world, goal)
    extra = (lent(goal),) if lends else ()
    return _filled(world, (*world.slots, *extra), at, lost, old, revision)


def _filled(
    world: World, slots: tuple[Slot, ...], at: str | None, lost: frozenset[str], old: frozenset[str], revision: str
) -> Stage:
    """Slots are filled by replicas that fit; others of the site fill the remaining ones as substitutes."""
    goal = world.goal
    order = {record.name: index for index, record in enumerate(world.memory.replicas)}

    def cost(record: Replica) -> tuple[int, ...]:
        return (*_cost(world, record, revision), order[record.name])

    useless = (lost | world.memory.given_up) - _left_alone(world)
    here = [record for record in world.memory.replicas if record.site == goal and record.name not in useless]
    fitting = [each for each in here if each.name not in old]
    slots = _loosened(world, slots, match(slots, fitting, cost).empty)
    chosen = match(slots, fitting, cost)

    def dearest_last(record: Replica) -> tuple[int, ...]:
        place = any(fits(record, slot) for slot in chosen.empty)
        # A working replica is kept rather than a broken one: all others must serve during a replacement.
        of_use = record.name not in world.memory.leaving, serves(world, record)
        kept = (record.name in world.cordoned, *of_use, place, record.name not in old)
        return *(not each for each in kept), *cost(record)

    left = (each for each in here if each not in chosen.filled and _stands_in(world, each))
    spare = tuple(sorted(left, key=dearest_last))
    if spare and len(chosen.filled) + len(spare) == len(slots) and at == goal:
        return _exchanging(world, goal, chosen.filled, spare, slots)
    acting = spare[: len(chosen.empty)]
    return Stage(heading=goal, wanted=(*chosen.filled, *acting), missing=_uncovered(chosen.empty, acting))


def _left_alone(world: World) -> frozenset[str]:
    """The cordoned replicas that are members, healthy or not: only a person changes them."""
    return frozenset(each for each in world.cordoned if world.member(each) is not None)


def _loosened(world: World, slots: tuple[Slot, ...], empty: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """The slots; those that lost their replica for good may be filled in any zone as long as their own zone has no free
    machine.
    """
    condemned = world.memory.given_up | world.memory.leaving
    bereft = {(each.site, each.slot.zone) for each in world.memory.replicas if each.name in condemned}
    if not world.settings.healing.other_zones:
        return slots
    taken = {each.machine for each in world.memory.replicas if busy(world, each)}
    anywhere = list(slots)
    for slot in empty:
        if (slot.site, slot.zone) in bereft and machine_for(world, slot, taken) is None:
            anywhere[anywhere.index(slot)] = replace(slot, zone="")
    return tuple(anywhere)


def _exchanging(
    world: World, site: str, kept: tuple[Replica, ...], spare: tuple[Replica, ...], slots: tuple[Slot, ...]
) -> Stage:
    """The number of replicas is right, but the ``spare`` ones, the most valuable first, are substitutes. The last one
    is replaced when all others are healthy and none is leaving.
    """
    *stay, last = spare
    now = Stage(heading=site, wanted=(*kept, *spare))
    if last.name in world.cordoned:  # and so are all other substitutes
        return replace(now, waiting=tuple(_uncordoned(world, each) for each in spare))
    unwanted = (each for each in world.memory.replicas if each not in now.wanted)
    leaving = [each for each in unwanted if is_there(world, each) and not _is_left_behind(world, each)]
    others = (*kept, *stay)
    if leaving or not _spare_one(world, others):
        return now
    empty = _uncovered(slots, others)
    slot = next((each for each in empty if fits(last, each)), empty[0])
    taken = {each.machine for each in world.memory.replicas if busy(world, each)}
    if machine_for(world, slot, taken, (last,)) is None:
        return Stage(heading=site, wanted=now.wanted, waiting=(no_machine(world, slot, f" to replace {last.name}"),))
    return Stage(heading=site, wanted=others, missing=(slot,))


def _uncordoned(world: World, record: Replica) -> Wait:
    return Wait(f"{record.name} to be uncordoned, to be replaced", next_steps.uncordon(world, record.name))


def _spare_one(world: World, others: tuple[Replica, ...]) -> bool:
    """Whether all others serve, so that one can be replaced. Of those that are marked for replacement as well, only
    the vote counts.
    """
    stay = [each for each in others if each.name not in world.memory.leaving]
    votes = frozenset(voter.replica for voter in voters(world) if voter.healthy)
    serving = all(serves(world, each) and _is_backend(world, each) for each in stay)
    return serving and (bool(stay) or not others) and votes.issuperset(each.name for each in others)


def _is_left_behind(world: World, record: Replica) -> bool:
    """Whether a replica is no longer a member, or never will be, and its machine does not answer, maybe for ever."""
    assert world.membership is not None, "the membership is known"
    member = any(each.of(record.name) is not None for each in world.memberships)
    deaf = world.replica(record.name).machine is not MachineState.UP
    given_up = record.name in world.memory.given_up
    return deaf and not member and (given_up or was_removed(world.membership, record))


def _is_backend(world: World, record: Replica) -> bool:
    """Whether every load balancer that runs sends to a replica, and the name leads to it, if it does so by itself."""
    doors = [each for each in world.balancers if each.running]
    if world.apiservers.running and record.name not in world.elsewhere:
        doors.append(world.apiservers)
    return all(record.name in each.everywhere for each in doors)


def _uncovered(empty: tuple[Slot, ...], acting: tuple[Replica, ...]) -> tuple[Slot, ...]:
    """The slots without a substitute: each substitute covers a slot of its own place if possible, or else any."""
    left = match(empty, acting, lambda _: ()).empty
    return left[: max(0, len(empty) - len(acting))]


def _stands_in(world: World, record: Replica) -> bool:
    """Whether a replica that fits no slot is a substitute: only one that is, or will be, a member."""
    if world.membership is None or (record.name in world.memory.bootstrap and not world.memory.created):
        return True
    return listed(world.membership, record)


def _cost(world: World, record: Replica, revision: str) -> tuple[int, ...]:
    """The reasons against keeping a replica, the strongest first. A cordoned one is kept; a leader is replaced last."""
    member = world.member(record.name)
    fact = world.replica(record.name)
    down = fact.machine is MachineState.DOWN or (member is not None and member.health is Health.DOWN)
    votes = member is not None and not member.learner
    leaves = record.name in dict(world.memory.draining) or fact.unit(Component.APISERVER) in IDLE
    leads = world.membership is not None and world.membership.leader == record.name
    cordoned = record.name in world.cordoned
    return not cordoned, down, not votes, record.revision != revision, votes and leaves, not leads


def _goal_site_is_down(world: World, site: str) -> bool:
    assert world.membership is not None
    there = [
        world.membership.of(record.name) for record in world.memory.replicas if record.site == site and record.started
    ]
    known = [member for member in there if member is not None]
    return bool(known) and all(member.health is Health.DOWN for member in known)


def _retreat(world: World, goal: str, at: str | None) -> str | None:
    """The site that a plane goes back to before it moves to its goal: when the goal has failed, or when the target was
    changed while voters were already at the previous one. None: it moves straight to its goal.
    """
    if at == goal:
        return None
    if at is not None and _goal_site_is_down(world, goal):
        return at
    elsewhere = [voter for voter in voters(world) if voter.site not in (goal, "")]
    healthy = Counter(voter.site for voter in elsewhere if voter.healthy)
    if len({voter.site for voter in elsewhere}) < 2:
        return None
    # The quorum site has the most.
    return min(healthy, key=lambda site: (-healthy[site], site != world.memory.served_site, site), default=None)


def _lends(world: World, at: str | None, goal: str) -> bool:
    if len(world.slots) != 1 or world.membership is None or at == goal:
        return False
    outside = [voter for voter in voters(world) if voter.site != goal]
    begun = sum(record.site == goal for record in world.memory.replicas) > 1
    return len(outside) == 1 and (at is not None or begun)


def _lends_for_events(world: World, goal: str) -> bool:
    """The events' cluster follows the main one, and needs the surge slot until it has followed."""
    if world.membership_of(Cluster.EVENTS) is None or len(world.slots) != 1:
        return False
    events = world.of(Cluster.EVENTS)
    return _lends(events, quorum_site(voters(events)), goal)


def _members_at(world: World, site: str, lost: frozenset[str]) -> tuple[Replica, ...]:
    assert world.membership is not None
    here = [record for record in world.memory.replicas if record.site == site and record.name not in lost]
    return tuple(record for record in here if listed(world.membership, record))
