"""The world as the rules read it: who is wanted, which site holds the quorum, and where the plane is heading."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.slots import Slot
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Health, MemberFact, Membership, ReplicaFact, World
from quarterdeck.planner.quorum import Voter, home
from quarterdeck.planner.slots import lent


@dataclass(frozen=True, kw_only=True)
class View:
    """One observation and what follows from it, worked out once.

    ``home``: the site that holds a quorum by itself now (None: no site does, or it is not known).
    ``heading``: the site that the plane is being brought to: the one of the slots, or another one on a retreat.
    ``wanted``: the replicas that fill a slot; ``missing``: the slots that no replica fills;
    ``unwanted``: all other recorded replicas; ``lost``: those whose data or membership is gone for good.
    """

    world: World
    home: str | None
    heading: str
    wanted: tuple[Replica, ...]
    missing: tuple[Slot, ...]
    unwanted: tuple[Replica, ...]
    lost: frozenset[str] = field(default_factory=frozenset)

    @property
    def door(self) -> str:
        """The site whose load balancer clients are to be led to."""
        return self.world.front or self.heading

    @property
    def membership(self) -> Membership:
        """The membership; only for rules that run when it is known."""
        assert self.world.membership is not None
        return self.world.membership

    @cached_property
    def _members(self) -> dict[str, MemberFact]:
        return {member.replica: member for member in self.membership.members}

    def member(self, replica: Replica) -> MemberFact | None:
        """The member of a replica, if it is one."""
        return self._members.get(replica.name)

    def fact(self, replica: Replica) -> ReplicaFact:
        """What was seen of a replica."""
        return self.world.replica(replica.name)

    def unit(self, replica: Replica, component: Component) -> UnitState:
        """The state of one of its units."""
        return self.fact(replica).unit(component)

    def reachable(self, replica: Replica) -> bool:
        """Whether steps can be carried out on its machine."""
        return self.fact(replica).machine is MachineState.UP

    def ready(self, replica: Replica) -> bool:
        """Whether its apiserver said that it is ready."""
        return self.fact(replica).ready is True

    def is_healthy_voter(self, replica: Replica) -> bool:
        """Whether it counts for a quorum."""
        member = self.member(replica)
        return member is not None and not member.learner and member.health is Health.HEALTHY

    def apiserver_off(self, replica: Replica) -> bool:
        """Whether its apiserver surely serves nobody: seen stopped, or on a machine that is seen to be off, or with a
        member that is down in the cluster's own eyes. That we do not see it says nothing.
        """
        fact = self.fact(replica)
        if fact.machine is MachineState.UP:
            return fact.unit(Component.APISERVER) in (UnitState.ABSENT, UnitState.STOPPED)
        member = self.member(replica)
        return fact.machine is MachineState.DOWN or (member is not None and member.health is Health.DOWN)

    @cached_property
    def gone(self) -> frozenset[str]:
        """Unwanted replicas that serve nobody and need no farewell: lost, or with a member that is down."""
        down = {
            record.name
            for record in self.unwanted
            if (member := self.member(record)) is not None and member.health is Health.DOWN
        }
        return self.lost | down

    @cached_property
    def voters(self) -> frozenset[Voter]:
        """The voters, for quorum arithmetic."""
        return voters(self.world)

    @cached_property
    def doubtful(self) -> tuple[str, ...]:
        """The voters that do not answer us, and of which nothing says that they are down."""
        unsure = (Health.SUSPECT, Health.UNREACHABLE)
        return tuple(member.replica for member in self.membership.voters if member.health in unsure)

    @cached_property
    def likely_home(self) -> str | None:
        """The site that holds a quorum by itself if all those are well."""
        return home(replace(voter, healthy=voter.healthy or voter.replica in self.doubtful) for voter in self.voters)

    @cached_property
    def up_to_date(self) -> frozenset[Voter]:
        """The voters, healthy only if they have the data besides: no quorum is to hang on one that lags."""
        lags = {each.replica for each in self.membership.voters if not _has_the_data(self.world, each)}
        return frozenset(replace(voter, healthy=voter.healthy and voter.replica not in lags) for voter in self.voters)

    def voter(self, replica: Replica) -> Voter:
        """A replica as one of ``up_to_date``."""
        return Voter(replica.name, replica.site, self.caught_up(replica))

    @cached_property
    def servers(self) -> tuple[Replica, ...]:
        """The wanted replicas that can run an apiserver now."""
        return tuple(replica for replica in self.wanted if self.is_healthy_voter(replica))

    @cached_property
    def learners(self) -> tuple[Replica, ...]:
        """The wanted replicas that are learners."""
        found = ((replica, self.member(replica)) for replica in self.wanted)
        return tuple(replica for replica, member in found if member is not None and member.learner)

    def has_the_data(self, replica: Replica) -> bool:
        """Whether a member's absolute lag is known and below the bound (etcd's own check compares 90 % of the leader's
        index, which at a large index lets a learner far behind pass).
        """
        member = self.member(replica)
        return member is not None and _has_the_data(self.world, member)

    def caught_up(self, replica: Replica) -> bool:
        """Whether a member may be counted on: healthy, and it has the data."""
        member = self.member(replica)
        return member is not None and member.health is Health.HEALTHY and self.has_the_data(replica)

    def keeps_home(self, replica: Replica) -> bool:
        """Whether the site that holds a quorum now would still do so after this learner's promotion."""
        return home(self.voters | {Voter(replica.name, replica.site, healthy=True)}) == self.home

    @cached_property
    def takeover(self) -> bool:
        """Whether the wanted replicas can carry the traffic: all of those that can be voters before the swap are,
        and every one of them has a ready apiserver.
        """
        absent = [replica for replica in self.wanted if self.member(replica) is None]
        coming = [replica for replica in self.learners if self.home is not None and self.keeps_home(replica)]
        servers = self.servers
        return bool(servers) and not (self.missing or absent or coming) and all(map(self.ready, servers))


def _has_the_data(world: World, member: MemberFact) -> bool:
    return member.lag is not None and member.lag <= world.settings.lag_bound


def voters(world: World) -> frozenset[Voter]:
    """The voters of a world whose membership is known. A member that no record names counts, as at no site."""
    assert world.membership is not None
    sites = {record.name: record.site for record in world.memory.replicas}
    return frozenset(
        Voter(member.replica, sites.get(member.replica, ""), member.health is Health.HEALTHY)
        for member in world.membership.voters
    )


def listed(membership: Membership, record: Replica) -> bool:
    """Whether etcd lists the replica as a member now."""
    return membership.of(record.name) is not None


def is_lost(world: World, record: Replica) -> bool:
    """Whether a replica can never be used again: it was a member and is none now, or its data is gone."""
    if world.membership is None:
        return False
    gone = record.listed and not listed(world.membership, record)
    return gone or (record.started and world.replica(record.name).has_data is False)


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
    begun = any(record.slot.temporary and record.site == goal for record in world.memory.replicas)
    return len(outside) == 1 and (at is not None or begun)


def _fill(world: World, wanted: tuple[Slot, ...], lost: frozenset[str]) -> tuple[tuple[Replica, ...], tuple[Slot, ...]]:
    """The replicas that fill slots, and the slots left. A replica that was lent is as good as any where it is, and its
    machine may be the last one there.
    """
    usable = [record for record in world.memory.replicas if record.name not in lost]
    filled: dict[Slot, Replica] = {}
    for fits in (_exactly, _as_lent):
        for slot in wanted:
            found = (each for each in usable if fits(world, each, slot) and each not in filled.values())
            if slot not in filled and (record := next(found, None)) is not None:
                filled[slot] = record
    return tuple(filled[slot] for slot in wanted if slot in filled), tuple(s for s in wanted if s not in filled)


def _exactly(_: World, record: Replica, slot: Slot) -> bool:
    return record.slot == slot


def _as_lent(world: World, record: Replica, slot: Slot) -> bool:
    """Whether it was lent, and sits where a replica of the slot would (no machine is in a temporary one's zone)."""
    here = (record.site, record.machine, slot.zone)
    return (
        record.slot.temporary
        and (record.site, record.slot.storage_class) == (slot.site, slot.storage_class)
        and any((each.site, each.name, each.zone) == here for each in world.machines)
    )


def _members_at(world: World, site: str, lost: frozenset[str]) -> tuple[Replica, ...]:
    assert world.membership is not None
    here = [record for record in world.memory.replicas if record.site == site and record.name not in lost]
    return tuple(record for record in here if listed(world.membership, record))


def view(world: World) -> View:
    """Read a world that has at least one slot."""
    goal = world.slots[0].site
    lost = frozenset(record.name for record in world.memory.replicas if is_lost(world, record))
    at = home(voters(world)) if world.membership is not None else None
    back = _retreat(world, goal, at) if world.membership is not None else None
    missing: tuple[Slot, ...] = ()
    if back is not None:
        heading, wanted = back, _members_at(world, back, lost)
    else:
        heading = goal
        extra = (lent(world.slots[0]),) if _lends(world, at, goal) else ()
        wanted, missing = _fill(world, (*world.slots, *extra), lost)
    return View(
        world=world,
        home=at,
        heading=heading,
        wanted=wanted,
        missing=missing,
        unwanted=tuple(record for record in world.memory.replicas if record not in wanted),
        lost=lost,
    )
