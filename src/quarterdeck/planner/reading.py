"""What follows from one observation: who is wanted, which site holds the quorum, and where the plane is heading."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self, TypeVar

from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import Health, MemberFact, Membership
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import BalancerFact, ReplicaFact, World
from quarterdeck.planner.members import acts, has_the_data, is_stale, lost_events, voters, wants_events, was_removed
from quarterdeck.planner.quorum import Voter, quorum_site
from quarterdeck.planner.revisions import as_it_is

R = TypeVar("R", bound="Reading")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One observation and what follows from it, worked out once.

    ``quorum_site``: the site that holds a quorum by itself now (None: no site does, or it is not known).
    ``heading``: the site that the plane is being brought to: the one of the slots, or another one on a retreat.
    ``wanted``: the replicas that fill a slot; ``missing``: the slots that no replica fills;
    ``unwanted``: all other recorded replicas; ``lost``: those whose data or membership is gone for good.
    ``outdated``: those in whose place other replicas are wanted; ``revision``: what replicas are to run now;
    ``held_up``: why the exchange of one does not begin.

    One etcd ``cluster`` is read at a time, and what is said of members, a quorum and data is said of that one. That of
    the ``plane`` is the main one; the one of its ``events`` follows it.
    """

    world: World
    quorum_site: str | None
    heading: str
    wanted: tuple[Replica, ...]
    missing: tuple[Slot, ...]
    unwanted: tuple[Replica, ...]
    lost: frozenset[str] = field(default_factory=frozenset)
    outdated: frozenset[str] = field(default_factory=frozenset)
    revision: str = ""
    held_up: tuple[Wait, ...] = ()
    cluster: Cluster = Cluster.MAIN
    plane_or_none: Self | None = None

    @property
    def plane(self) -> Self:
        """The view of the plane as a whole, in which its main cluster is read."""
        return self.plane_or_none or self

    @cached_property
    def events(self) -> Self | None:
        """The view of the events' cluster; None if there is none, and none is wanted."""
        return _of_events(self)

    @cached_property
    def wants_events(self) -> bool:
        """Whether anybody is to keep events apart."""
        return wants_events(self.world, self.wanted, self.revision)

    @property
    def etcd(self) -> Component:
        """The program that is a member of the cluster."""
        return MEMBER[self.cluster]

    @property
    def door(self) -> str:
        """The site whose load balancer clients are to be led to, or ``APISERVERS``."""
        return APISERVERS if self.world.led_straight else self.world.front or self.heading

    @property
    def membership(self) -> Membership:
        """The membership; only for rules that run when it is known."""
        assert self.world.membership is not None
        return self.world.membership

    @cached_property
    def _members(self) -> dict[str, MemberFact]:
        return {member.replica: member for member in self.membership.members if member.replica}

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
        member = self.plane.member(replica)
        return fact.machine is MachineState.DOWN or (member is not None and member.health is Health.DOWN)

    def serves_nobody(self, replica: Replica) -> bool:
        """Whether nobody misses its member of the cluster: its apiserver is off, as it was when the main cluster let go
        of it; or the member is down, or has lost its data, and it is only events that its apiserver cannot write.
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
        """Unwanted replicas that serve nobody and need no farewell: lost, or with a member that is down."""
        down = {
            record.name
            for record in self.unwanted
            if (member := self.member(record)) is not None and member.health is Health.DOWN
        }
        return self.lost | self.plane.lost | down

    @cached_property
    def behind(self) -> tuple[Replica, ...]:
        """The wanted replicas that become what the wanted revision says by starting programs anew: those of another
        one, and those of which somebody else has changed a program's files or flags. Who is cordoned stays as it is.
        Any replica may have a voter while the membership is not known: whatever starts again does so as it is wanted.
        """
        memory = self.world.memory
        known = self.world.membership is not None
        records = self.wanted if known else tuple(each for each in memory.replicas if not memory.is_former(each))
        others = (each for each in records if each.revision != self.revision or self.fact(each).altered)
        return tuple(each for each in others if each.name not in self.outdated and each.name not in self.world.cordoned)

    def change(self, replica: Replica) -> ReplicaChange:
        """What a replica needs to be of the wanted revision."""
        fact = self.fact(replica)
        change = as_it_is(self.world.change(replica.revision, self.revision), fact, self.revision)
        return replace(change, restart=change.restart | fact.altered) if fact.altered else change

    def loads(self, replica: Replica) -> frozenset[Component]:
        """The programs of a replica that are to take up the files of the wanted revision, and have not said so yet."""
        taken = self.revision in (self.fact(replica).loaded or ())
        return frozenset() if replica not in self.behind or taken else self.change(replica).reload

    def runs_all(self, replica: Replica) -> bool:
        """Whether none of its programs was stopped."""
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
        """The sites whose load balancer a client may use; ``APISERVERS`` if it may use one by its own address."""
        world, memory = self.world, self.world.memory
        named = (world.record, memory.served_site, *memory.unsettled, *world.also)
        return frozenset(site for site in named if site) | {
            site for site, since in memory.held if not self.expired(since)
        }

    def expired(self, since: float) -> bool:
        """Whether nobody can hold an address any more that was last handed out then."""
        return self.world.now - since >= self.world.lifetime + self.world.settings.drain

    @property
    def farewell(self) -> float:
        """For how many seconds clients may go on coming to an apiserver that nobody is led to any more: an address of
        its own may be held as that of a load balancer may.
        """
        return self.world.settings.drain + (self.world.lifetime if APISERVERS in self.held else 0.0)

    @cached_property
    def named(self) -> frozenset[str]:
        """The replicas whose own addresses DNS servers hand out; all, where that is not known, where clients hold
        addresses from before, or where an older driver's change may still come.
        """
        if APISERVERS not in self.held:
            return frozenset()
        world, fact = self.world, self.world.apiservers
        here = world.record == APISERVERS == world.memory.served_site
        if here and fact.alike and world.stamped and not world.memory.unsettled:
            return fact.backends
        return frozenset(each.name for each in world.memory.replicas)

    def led_to(self, servers: set[str]) -> bool:
        """Whether the name leads to where the plane is heading, and every load balancer that a client may use is seen
        to send to all of ``servers``, and to reach one. One that does not answer may go on sending to others, until no
        client can hold its address.
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
        """The voters that do not answer us, and of which nothing says that they are down."""
        unsure = (Health.SUSPECT, Health.UNREACHABLE)
        return tuple(member.key for member in self.membership.voters if member.health in unsure)

    @cached_property
    def likely_quorum_site(self) -> str | None:
        """The site that holds a quorum by itself if all those are well."""
        return quorum_site(
            replace(voter, healthy=voter.healthy or voter.replica in self.doubtful) for voter in self.voters
        )

    @cached_property
    def up_to_date(self) -> frozenset[Voter]:
        """The voters, healthy only if they have the data besides: no quorum is to hang on one that lags."""
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
        """Whether the apiserver of a replica has the events' cluster for them."""
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
        """The wanted replicas that can run an apiserver now, and are not given up for theirs."""
        return tuple(each for each in self.wanted if self.can_serve(each) and each.name not in self.mute)

    @cached_property
    def mute(self) -> frozenset[str]:
        """The replicas that were given up since their apiserver does not get well, and that still are not ready."""
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
        """Whether a member may be counted on: healthy, and it has the data."""
        member = self.member(replica)
        return member is not None and member.health is Health.HEALTHY and self.has_the_data(replica)

    def keeps_quorum_site(self, replica: Replica) -> bool:
        """Whether the site that holds a quorum now would still do so after this learner's promotion."""
        return quorum_site(self.voters | {Voter(replica.name, replica.site, healthy=True)}) == self.quorum_site

    @cached_property
    def takeover(self) -> bool:
        """Whether the wanted replicas can carry the traffic: all of those that can be voters before the swap are,
        and every one of them has a ready apiserver.
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
        """Whether a learner, once it has the data, may become a voter before the quorum goes to another site. In the
        events' cluster those vote that do in the main one, so that the same replicas can serve.
        """
        follows = self.plane is not self and not self.plane.is_healthy_voter(replica)
        return self.quorum_site is not None and self.keeps_quorum_site(replica) and not follows


def _carries(balancer: BalancerFact, servers: set[str]) -> bool:
    return servers <= balancer.everywhere and not servers.isdisjoint(balancer.healthy)


def quorum_site_of(world: World) -> str | None:
    """The site that holds a quorum by itself; None if no site does, or the membership is not known."""
    return quorum_site(voters(world)) if world.membership is not None else None


def _of_events(plane: R) -> R | None:
    """Who is wanted in the events' cluster: all that are in the main one, as long as anybody keeps events apart; but
    nobody joins it who never will, while it is on its way out.
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
