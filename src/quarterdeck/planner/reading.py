"""What follows from one observation: the wanted replicas, the quorum site, and where the plane is heading."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.etcd_versions import kept_back
from quarterdeck.planner.members import acts, has_the_data, is_stale, lost_events, voters, wants_events, was_removed
from quarterdeck.planner.quorum import Voter, quorum_site
from quarterdeck.planner.revisions import as_it_is

R = TypeVar("R", bound="Reading")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One observation and what follows from it, computed once. It is about one etcd ``cluster``: members, quorum and
    data are those of that cluster.
    """

    world: World
    #: The site whose healthy voters are a quorum by themselves; None: no site, or it is unknown.
    quorum_site: str | None
    #: The site that the plane moves to: the one of the slots, or another one on a retreat.
    heading: str
    #: The replicas that fill a slot.
    wanted: tuple[Replica, ...]
    #: The slots without a replica.
    missing: tuple[Slot, ...]
    #: All other recorded replicas.
    unwanted: tuple[Replica, ...]
    #: Replicas whose data or membership is gone for good.
    lost: frozenset[str] = field(default_factory=frozenset)
    #: Replicas that must be replaced.
    outdated: frozenset[str] = field(default_factory=frozenset)
    #: The revision that replicas must run now.
    revision: str = ""
    #: Why the replacement of an outdated replica does not begin.
    held_up: tuple[Wait, ...] = ()
    #: The main cluster in the view of the ``plane``; its ``events`` view has the events' cluster.
    cluster: Cluster = Cluster.MAIN
    plane_or_none: Self | None = None
    #: The observation with the standby, where there is one; ``world`` is without it.
    observed: World | None = None

    @property
    def whole(self) -> World:
        """The whole observation, with the standby. Only rules about the standby need it."""
        return self.observed or self.world

    @property
    def plane(self) -> Self:
        """The view of the plane as a whole, which reads its main cluster."""
        return self.plane_or_none or self

    @cached_property
    def events(self) -> Self | None:
        """The view of the events' cluster; None if it neither exists nor is wanted."""
        return _of_events(self)

    @cached_property
    def wants_events(self) -> bool:
        """Whether any replica stores events separately, now or in the desired revision."""
        return wants_events(self.world, self.wanted, self.revision)

    @property
    def etcd(self) -> Component:
        """The program that is a member of the cluster."""
        return MEMBER[self.cluster]

    @property
    def door(self) -> str:
        """The site whose load balancer the name must lead to, or ``APISERVERS``."""
        return APISERVERS if self.world.led_straight else self.world.front or self.heading

    @property
    def membership(self) -> Membership:
        """The membership; only for rules that are evaluated when it is known."""
        assert self.world.membership is not None
        return self.world.membership

    @cached_property
    def _members(self) -> dict[str, MemberFact]:
        return {member.replica: member for member in self.membership.members if member.replica}

    def member(self, replica: Replica) -> MemberFact | None:
        """The member of a replica, if it is one."""
        return self._members.get(replica.name)

    def fact(self, replica: Replica) -> ReplicaFact:
        """The observed facts about a replica."""
        return self.world.replica(replica.name)

    def unit(self, replica: Replica, component: Component) -> UnitState:
        """The state of one of its units."""
        return self.fact(replica).unit(component)

    def reachable(self, replica: Replica) -> bool:
        """Whether steps can be carried out on its machine."""
        return self.fact(replica).machine is MachineState.UP

    def ready(self, replica: Replica) -> bool:
        """Whether its apiserver reported that it is ready."""
        return self.fact(replica).ready is True

    def is_healthy_voter(self, replica: Replica) -> bool:
        """Whether it counts for a quorum."""
        member = self.member(replica)
        return member is not None and not member.learner and member.health is Health.HEALTHY

    def apiserver_off(self, replica: Replica) -> bool:
        """Whether its apiserver surely does not serve: it is observed stopped, or its machine is observed off, or the
        cluster reports its member down. That this process does not reach it proves nothing.
        """
        fact = self.fact(replica)
        if fact.machine is MachineState.UP:
            return fact.unit(Component.APISERVER) in (UnitState.ABSENT, UnitState.STOPPED)
        member = self.plane.member(replica)
        return fact.machine is MachineState.DOWN or (member is not None and member.health is Health.DOWN)

    def serves_nobody(self, replica: Replica) -> bool:
        """Whether no client needs its member of the cluster: its apiserver is off, as it was when the main cluster
        removed it; or the member is down, or has lost its data, and its apiserver can only not write events.
        """
        if self.apiserver_off(replica):
            return True
        if self.plane is self:
            return False
        left = was_removed(self.plane.membership, self.plane.world.memory.replica(replica.name))
        member = self.member(replica)
        return left or replica.name in self.lost or (member is not None and member.health is Health.DOWN)

    @cached_property
    def gone(self) -> frozenset[str]:
        """Unwanted replicas that serve no client and need no drain: lost, or with a member that is down."""
        down = {
            record.name
            for record in self.unwanted
            if (member := self.member(record)) is not None and member.health is Health.DOWN
        }
        return self.lost | self.plane.lost | down

    @cached_property
    def behind(self) -> tuple[Replica, ...]:
        """The wanted replicas that reach the wanted revision by restarts of programs: those with another revision, and
        those whose files or flags were changed by hand. Cordoned ones stay as they are, and so does one that keeps its
        etcd. While the membership is unknown, any replica may have a voter: every program that starts again starts with
        the wanted revision.
        """
        memory = self.world.memory
        known = self.world.membership is not None
        records = self.wanted if known else tuple(each for each in memory.replicas if not memory.is_former(each))
        others = (each for each in records if each.revision != self.revision or self.fact(each).altered)
        stay = {*self.outdated, *self.world.cordoned, kept_back(self.world, self.revision)}
        return tuple(each for each in others if each.name not in stay)

    def is_behind(self, replica: Replica) -> bool:
        """Whether a replica is still to be restarted."""
        return any(each.name == replica.name for each in self.behind)

    def change(self, replica: Replica) -> ReplicaChange:
        """The change that a replica needs to reach the wanted revision."""
        fact = self.fact(replica)
        change = as_it_is(self.world.change(replica.revision, self.revision), fact, self.revision)
        return replace(change, restart=change.restart | fact.altered) if fact.altered else change

    def loads(self, replica: Replica) -> frozenset[Component]:
        """The programs of a replica that must reload the files of the wanted revision, and have not reported it yet."""
        taken = self.revision in (self.fact(replica).loaded or ())
        return frozenset() if replica not in self.behind or taken else self.change(replica).reload

    def runs_all(self, replica: Replica) -> bool:
        """Whether none of its programs is stopped."""
        return not any(self.unit(replica, each) in IDLE for each in self.world.programs.of(replica.revision))

    def may_run_beside(self, replica: Replica) -> bool:
        """Whether controllers of a replica may run while those of the wanted revision do."""
        return self.world.may_run_beside(replica.revision, self.revision)

    def kept_from(self, replica: Replica) -> tuple[str, ...]:
        """The other replicas whose controllers must have stopped before those of this one start."""
        others = (each for each in self.world.memory.replicas if each.name != replica.name and acts(self.world, each))
        apart = (each for each in others if not self.world.may_run_beside(each.revision, replica.revision))
        managers = self.world.programs.managers
        return tuple(each.name for each in apart if any(self.unit(each, one) not in IDLE for one in managers))

    @cached_property
    def held(self) -> frozenset[str]:
        """The sites whose load balancer a client may use; ``APISERVERS`` if it may use an apiserver's own address."""
        world, memory = self.world, self.world.memory
        named = (world.record, memory.served_site, *memory.unsettled, *world.also)
        return frozenset(site for site in named if site) | {
            site for site, since in memory.held if not self.expired(since)
        }

    def expired(self, since: float) -> bool:
        """Whether no client can still hold an address that was last returned at that time."""
        return self.world.now - since >= self.world.lifetime + self.world.settings.drain

    @property
    def farewell(self) -> float:
        """For how many seconds clients may still connect to an apiserver after the name and the load balancers stop
        leading to it: an apiserver's own address may be cached like that of a load balancer.
        """
        return self.world.settings.drain + (self.world.lifetime if APISERVERS in self.held else 0.0)

    @cached_property
    def named(self) -> frozenset[str]:
        """The replicas whose own addresses DNS servers may return; all, where that is unknown, where clients hold
        previous addresses, or where an older driver's change may still arrive.
        """
        if APISERVERS not in self.held:
            return frozenset()
        world, fact = self.world, self.world.apiservers
        here = world.record == APISERVERS == world.memory.served_site
        if here and fact.alike and world.stamped and not world.memory.unsettled:
            return fact.backends
        return frozenset(each.name for each in world.memory.replicas)

    def led_to(self, servers: set[str]) -> bool:
        """Whether the name leads to where the plane is heading, and every load balancer that a client may use is
        observed to send to all of ``servers``, and to reach one. One that does not answer may keep sending to others,
        until no client can hold its address.
        """
        world = self.world
        here = world.record == self.door and world.memory.served_site == self.door
        return here and all(_carries(world.balancer(site), servers - self._apart(site)) for site in self.held)

    def _apart(self, site: str) -> frozenset[str]:
        return self.world.elsewhere if site == APISERVERS else frozenset()

    @cached_property
    def voters(self) -> frozenset[Voter]:
        """The voters, for quorum arithmetic."""
        return voters(self.world)

    @cached_property
    def doubtful(self) -> tuple[str, ...]:
        """The voters that do not answer this process, and are not known to be down."""
        unsure = (Health.SUSPECT, Health.UNREACHABLE)
        return tuple(member.key for member in self.membership.voters if member.health in unsure)

    @cached_property
    def likely_quorum_site(self) -> str | None:
        """The quorum site if all doubtful voters are healthy."""
        return quorum_site(
            replace(voter, healthy=voter.healthy or voter.replica in self.doubtful) for voter in self.voters
        )

    @cached_property
    def up_to_date(self) -> frozenset[Voter]:
        """The voters, healthy only if they also have the data: no quorum may depend on one that lags."""
        lags = {each.key for each in self.membership.voters if not has_the_data(self.world, each)}
        return frozenset(replace(voter, healthy=voter.healthy and voter.replica not in lags) for voter in self.voters)

    def voter(self, replica: Replica) -> Voter:
        """A replica as one of ``up_to_date``."""
        return Voter(replica.name, replica.site, self.caught_up(replica))

    @cached_property
    def voting(self) -> tuple[Replica, ...]:
        """The wanted replicas that are healthy voters."""
        return tuple(replica for replica in self.wanted if self.is_healthy_voter(replica))

    def keeps_events_apart(self, replica: Replica) -> bool:
        """Whether the apiserver of a replica stores events in the events' cluster."""
        return self.world.keeps_events_apart(replica.revision)

    def can_serve(self, replica: Replica) -> bool:
        """Whether a replica can run an apiserver: it is a healthy voter of every cluster that this one needs."""
        if not self.is_healthy_voter(replica):
            return False
        if not self.keeps_events_apart(replica):
            return True
        events = self.events
        return events is not None and events.world.membership is not None and events.is_healthy_voter(replica)

    @cached_property
    def servers(self) -> tuple[Replica, ...]:
        """The wanted replicas that can run an apiserver now, and are not marked for replacement because of it."""
        return tuple(each for each in self.wanted if self.can_serve(each) and each.name not in self.mute)

    @cached_property
    def mute(self) -> frozenset[str]:
        """The replicas that are marked for replacement because of their apiserver, and are still not ready."""
        program = Component.APISERVER
        given_up = (each.replica for each in self.world.memory.condemned if each.program == program)
        return frozenset(name for name in given_up if not self.ready(self.world.memory.replica(name)))

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
        return member is not None and has_the_data(self.world, member)

    def caught_up(self, replica: Replica) -> bool:
        """Whether a member is healthy and has the data."""
        member = self.member(replica)
        return member is not None and member.health is Health.HEALTHY and self.has_the_data(replica)

    def keeps_quorum_site(self, replica: Replica) -> bool:
        """Whether the site that holds a quorum now would still do so after this learner's promotion."""
        return quorum_site(self.voters | {Voter(replica.name, replica.site, healthy=True)}) == self.quorum_site

    @cached_property
    def takeover(self) -> bool:
        """Whether the wanted replicas can carry the traffic: all that can be voters before the swap are voters, and
        each of them has a ready apiserver.
        """
        servers = self.servers
        return bool(servers) and not self.missing and self._have_come() and all(map(self.ready, servers))

    def _have_come(self) -> bool:
        """Whether all wanted replicas are members of the clusters that they need, and voters if they can be now."""
        absent = any(self.member(replica) is None for replica in self.wanted)
        if absent or any(map(self.may_be_promoted, self.learners)):
            return False
        events, apart = self.events, [each for each in self.wanted if self.keeps_events_apart(each)]
        if not apart:
            return True
        if events is None or events.world.membership is None:
            return False
        learn = {each.name for each in events.learners}
        absent = any(events.member(each) is None for each in apart if each.name not in events.lost)
        return not absent and not any(each.name in learn and events.may_be_promoted(each) for each in apart)

    def may_be_promoted(self, replica: Replica) -> bool:
        """Whether a learner, once it has the data, may become a voter before the quorum moves to another site. In the
        events' cluster the voters of the main one vote, so that the same replicas can serve.
        """
        follows = self.plane is not self and not self.plane.is_healthy_voter(replica)
        return self.quorum_site is not None and self.keeps_quorum_site(replica) and not follows


def _carries(balancer: BalancerFact, servers: set[str]) -> bool:
    return servers <= balancer.everywhere and not servers.isdisjoint(balancer.healthy)


def quorum_site_of(world: World) -> str | None:
    """The quorum site; None if there is none, or the membership is unknown."""
    return quorum_site(voters(world)) if world.membership is not None else None


def _of_events(plane: R) -> R | None:
    """The view of the events' cluster: it wants all replicas of the main one, as long as any stores events separately;
    but no replica joins it that will never use it while it is being removed.
    """
    if not plane.wants_events and not plane.world.memory.events.exists:
        return None
    world = plane.world.of(Cluster.EVENTS)
    gone = lost_events(plane.world)
    wanted = tuple(
        world.memory.replica(each.name)
        for each in plane.wanted
        if plane.wants_events and each.name not in gone and not is_stale(plane.world, each)
        if plane.world.keeps_events_apart(plane.revision) or plane.keeps_events_apart(each) or each.events is not None
    )
    return replace(
        plane,
        world=world,
        quorum_site=quorum_site_of(world),
        wanted=wanted,
        unwanted=tuple(record for record in world.memory.replicas if record not in wanted),
        lost=gone,
        cluster=Cluster.EVENTS,
        plane_or_none=plane,
    )
