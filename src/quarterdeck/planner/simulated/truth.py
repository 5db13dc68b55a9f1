"""What is true in a simulated world: machines, members, units, load balancers, and what follows from them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from quarterdeck.model.bounds import Healing, Settings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, Programs
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.memory import Memory
from quarterdeck.model.revisions import Change
from quarterdeck.model.slots import Slot
from quarterdeck.model.world import Consent
from quarterdeck.planner.quorum import Voter, home, quorum
from quarterdeck.planner.simulated.parts import NOTHING, Power, SimMachine, SimMember, SimReplica
from quarterdeck.planner.simulated.things import ETCD, all_of, apiserver_of, edge, etcd_of, other, second


@dataclass(frozen=True, kw_only=True)
class Truth:
    """All that is true; what follows from it is worked out once, when it is first asked for.

    ``balancers`` are the backends that each site's load balancer sends to, ``checked`` those of them that it holds for
    healthy as of its last check. ``cuts`` are pairs of sites (from, to) that packets do not pass: all talk needs both
    ways, but who only hears does not know that at once. ``dead_edges`` are sites whose load balancer's machine is off,
    ``looping`` those where a load balancer ends as often as it is started.
    ``mute`` is what works but does not answer the manager: machines, members (``etcd_of``), apiservers
    (``apiserver_of``), load balancers (``edge``), whole sites (``all_of``), the DNS server, etcd's membership.
    ``revision``, ``via``, ``apart``, ``changes``, ``condemned`` and ``cordoned`` are as in ``World``; ``broken``:
    programs that end again and again as this revision would have them, ``hanging``: those that run and are never ready.
    ``front`` is the site of a fixed address: then there is no name, and ``record`` is that site always, unless it is
    ``promoted``. ``direct``, ``promoted``: as in ``World``;
    ``named`` are the replicas whose own addresses the name has while ``record`` is ``APISERVERS``. ``programs``: as in
    ``World``, ``events_leader`` who leads the events' cluster. ``full``: etcd has raised NOSPACE, and takes no writes;
    ``events_full``: so has the events' cluster. ``corrupt``: etcd has raised CORRUPT, ``authenticates``: it asks for a
    user; in the main cluster alone.
    ``roomy``: the revisions with a larger quota. ``sick``: machines, each with a program that hangs there
    whenever it is started; ``lame``: the same, of members that never catch up there. ``twins`` are sites whose load
    balancer is on two edges: all else tells of the first, ``seconds`` are the backends of the other one where it runs,
    and ``dead_seconds`` the sites where its machine is off. ``unnamed``: the edges (``edge``, ``second``) whose address
    the name lacks, since when. ``floating`` are those of these sites whose edges take over each other's addresses,
    ``away`` the edges whose address the other one has now, ``unrouted`` those to which none can come; at those that are
    ``shared`` both edges have one address, which is called by the first.
    ``former``: who voted in each epoch of the main cluster that is over.
    ``reattachable``: volumes can go to other machines. ``haunted``: machines, each with a replica whose volume
    was taken from there, and which still has it open for writing. ``consent``: as in ``World``.
    """

    slots: tuple[Slot, ...]
    memory: Memory
    machines: tuple[SimMachine, ...]
    replicas: tuple[tuple[str, SimReplica], ...] = ()
    balancers: tuple[tuple[str, frozenset[str]], ...] = ()
    checked: tuple[tuple[str, frozenset[str]], ...] = ()
    dead_edges: frozenset[str] = frozenset()
    looping: frozenset[str] = frozenset()
    record: str | None = None
    front: str | None = None
    direct: bool = False
    promoted: bool = False
    named: frozenset[str] = frozenset()
    leader: str | None = None
    cuts: frozenset[tuple[str, str]] = frozenset()
    mute: frozenset[str] = frozenset()
    next_member: int = 1
    now: float = 0.0
    deleting: bool = False
    revision: str = ""
    via: tuple[str, ...] = ()
    apart: frozenset[frozenset[str]] = frozenset()
    changes: tuple[tuple[str, str, Change], ...] = ()
    broken: frozenset[tuple[str, Component]] = frozenset()
    hanging: frozenset[tuple[str, Component]] = frozenset()
    condemned: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    corrupt: bool = False
    authenticates: bool = False
    sick: frozenset[tuple[str, Component]] = frozenset()
    lame: frozenset[tuple[str, Component]] = frozenset()
    programs: Programs = field(default_factory=Programs)
    events_leader: str | None = None
    full: bool = False
    events_full: bool = False
    roomy: frozenset[str] = frozenset()
    twins: frozenset[str] = frozenset()
    seconds: tuple[tuple[str, frozenset[str]], ...] = ()
    dead_seconds: frozenset[str] = frozenset()
    unnamed: tuple[tuple[str, float], ...] = ()
    floating: frozenset[str] = frozenset()
    away: frozenset[str] = frozenset()
    unrouted: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    former: tuple[frozenset[str], ...] = ()
    reattachable: bool = False
    haunted: frozenset[tuple[str, str]] = frozenset()
    consent: Consent = field(default_factory=Consent)
    settings: Settings = field(
        default_factory=lambda: Settings(
            ttl=2.0, drain=1.0, start=3.0, first_start=2.0, first_ready=3.0, history=1.0, healing=Healing(budget=0)
        )
    )

    @property
    def fixed(self) -> bool:
        """As in ``World``."""
        return self.front is not None and not self.promoted

    @property
    def door(self) -> str:
        """Where the name is to lead once all is as wanted: to a site, or to ``APISERVERS``."""
        site = self.slots[0].site
        alone = len(self.slots) == 1 and site == self.front
        straight = alone if self.promoted else self.direct
        return APISERVERS if straight else self.front or site

    def of(self, cluster: Cluster) -> Truth:
        """The same truth, with that cluster where the main one is."""
        return self if cluster is Cluster.MAIN else self._events

    @cached_property
    def _events(self) -> Truth:
        return replace(
            self,
            memory=self.memory.of(Cluster.EVENTS),
            replicas=tuple((name, each.of_events()) for name, each in self.replicas),
            leader=self.events_leader,
            full=self.events_full,
            corrupt=False,
            authenticates=False,
            hanging=frozenset(),
        )

    def with_events(self, changed: Truth) -> Truth:
        """This truth, with the members, their data and the leader of the events' cluster as in ``changed``, which came
        of ``of``.
        """
        replicas = {
            name: replace(self.replica(name), events=each.member, events_data=each.data)
            for name, each in changed.replicas
        }
        # A member that no record names is all that there is of it.
        rest = {name: each for name, each in self.replicas if name not in replicas and each.member is not None}
        return replace(
            self,
            replicas=tuple(sorted((replicas | rest).items(), key=lambda entry: entry[0])),
            events_leader=changed.leader,
            events_full=changed.full,
            next_member=changed.next_member,
        )

    @cached_property
    def _by_name(self) -> dict[str, SimReplica]:
        return dict(self.replicas)

    @cached_property
    def _sites(self) -> dict[str, str]:
        return {record.name: record.site for record in self.memory.replicas}

    @cached_property
    def _machines(self) -> dict[str, SimMachine]:
        by_name = {machine.name: machine for machine in self.machines}
        return {record.name: by_name[record.machine] for record in self.memory.replicas}

    @property
    def recorded(self) -> Collection[str]:
        """The names of the replicas that the memory has."""
        return self._sites.keys()

    @cached_property
    def reloads(self) -> bool:
        """Whether there are revisions that differ in files which programs take up while they run."""
        return any(change.reload for _, _, change in self.changes)

    def replica(self, name: str) -> SimReplica:
        """What is on the machine of a replica."""
        return self._by_name.get(name, NOTHING)

    def with_replica(self, name: str, replica: SimReplica | None) -> Truth:
        """The same truth with one replica changed, or gone."""
        changed = dict(self.replicas)
        changed.pop(name, None)
        if replica is not None:
            changed[name] = replica
        return replace(self, replicas=tuple(sorted(changed.items(), key=lambda entry: entry[0])))

    def machine_of(self, name: str) -> SimMachine:
        """The machine of a recorded replica."""
        return self._machines[name]

    def site_of(self, name: str) -> str:
        """The site of a recorded replica; "" for a member that no record names."""
        return self._sites.get(name, "")

    def up(self, name: str) -> bool:
        """Whether the machine of a replica runs; False for a member that no record names."""
        return name in self._machines and self._machines[name].power is Power.ON

    def answers(self, name: str) -> bool:
        """Whether its machine also answers the manager."""
        return self.up(name) and not {self._machines[name].name, all_of(self._sites[name])} & self.mute

    def etcd_answers(self, name: str) -> bool:
        """Whether the manager gets an answer from its member, be that well or not."""
        if name not in self._sites or name not in self._live:
            return False  # nobody asks a member that no record names
        return not (self.mute and {etcd_of(name), all_of(self._sites[name])} & self.mute)

    @cached_property
    def tells_members(self) -> bool:
        """Whether the manager can read who is a member: who leads answers it; or somebody who follows, where a member
        leads that no record names.
        """
        if self.elected is None or ETCD in self.mute:
            return False
        asked = {self.elected} if self.elected in self._sites else self.following
        return any(map(self.etcd_answers, asked))

    def apiserver_answers(self, name: str) -> bool:
        """Whether nothing keeps the manager from asking its apiserver."""
        return not (self.mute and {apiserver_of(name), all_of(self.site_of(name))} & self.mute)

    def edge_answers(self, site: str) -> bool:
        """Whether the machine of a site's load balancer answers the manager."""
        return site not in self.dead_edges and not (self.mute and {edge(site), all_of(site)} & self.mute)

    def second_answers(self, site: str) -> bool:
        """Whether there is another edge at a site, whose machine answers the manager."""
        there = site in self.twins and site not in self.dead_seconds
        return there and not (self.mute and {second(site), all_of(site)} & self.mute)

    def holder(self, name: str) -> str:
        """The edge that has the address of an edge: the other one of the site where that alone serves, and can have it.
        "" where none can.
        """
        holder = other(name) if name in self.away else name
        if name.removeprefix(second("")).removeprefix(edge("")) not in self.floating:
            return holder
        able = [each for each in (holder, other(holder)) if each not in self.unrouted]
        return next(filter(self._lit, able), able[0] if able else "")

    def _lit(self, name: str) -> bool:
        """Whether a load balancer takes connections on an edge: it does once it has checked its backends."""
        site = name.removeprefix(second(""))
        if site != name:
            return site in dict(self.seconds) and site not in self.dead_seconds
        site = name.removeprefix(edge(""))
        return bool(dict(self.checked).get(site)) and site not in self.dead_edges

    def addresses(self, site: str) -> tuple[str, ...]:
        """The addresses of a site, by the edges that they are of."""
        return (edge(site), second(site)) if site in self.twins - self.shared else (edge(site),)

    def record_addresses(self, site: str) -> tuple[str, ...]:
        """Those addresses of a site that the name leads to."""
        there = self.addresses(site)
        return tuple(each for each in there if each not in dict(self.unnamed)) if self.record == site else ()

    def may_hand_out(self, site: str, name: str) -> bool:
        """Whether a client may still hold the address of a site's edge, as far as it is remembered of the site."""
        lifetime, since = self.settings.ttl + self.settings.drain, dict(self.unnamed).get(name)
        at = self.now if self.record == site else dict(self.memory.held).get(site)
        last = [each for each in (at, since) if each is not None]
        return at is not None and self.now - min(last) < lifetime

    @cached_property
    def members(self) -> dict[str, SimMember]:
        """The members by replica."""
        return {name: replica.member for name, replica in self.replicas if replica.member is not None}

    def taken_for(self, name: str) -> str:
        """The replica that the manager takes a member for ("": none): that of which its id was noted; before that, the
        one whose peer URL it has, or, if it has begun, whose name.
        """
        if name not in self._sites:
            return ""
        record, member = self.memory.replica(name), self.members[name]
        if record.member_id:
            return name if record.member_id == member.id else ""
        return name if not member.found_at or record.started or name in self.memory.bootstrap else ""

    @cached_property
    def displacing(self) -> dict[str, int]:
        """By replica, the id of the member of another one that the others look for at its peer URL."""
        return {each.found_at: each.id for each in self.members.values() if each.found_at}

    def with_id(self, number: int) -> str | None:
        """The replica whose member has this id."""
        return next((name for name, member in self.members.items() if member.id == number), None)

    @cached_property
    def _live(self) -> frozenset[str]:
        """The members whose etcd runs on its data. One that no record names does so on a machine of somebody's."""
        return frozenset(
            name
            for name, replica in self.replicas
            if replica.member is not None and replica.data and replica.runs(Component.ETCD)
            if self.up(name) or name not in self._sites
            if not self.hangs(replica, Component.ETCD)
        )

    def hangs(self, replica: SimReplica, component: Component) -> bool:
        """Whether a program runs without ever being ready, or any more."""
        if component in replica.hung:
            return True
        return bool(self.hanging) and (dict(replica.shapes).get(component, ""), component) in self.hanging

    def passes(self, one: str, other: str) -> bool:
        """Whether packets of one site get to another one."""
        return one == other or (one, other) not in self.cuts

    def connected(self, one: str, other: str) -> bool:
        """Whether two sites can talk: packets pass both ways."""
        return one == other or not self.cuts or (self.passes(one, other) and self.passes(other, one))

    def _followers(self, leader: str) -> frozenset[str]:
        """The live members that talk with the would-be leader, itself included."""
        if not self.cuts:
            return self._live
        site = self.site_of(leader)
        return frozenset(name for name in self._live if self.connected(site, self.site_of(name)))

    @cached_property
    def electable(self) -> tuple[str, ...]:
        """The voters that a quorum can follow; one that lags only where no other can (raft: a vote is given to none
        whose log is older).
        """
        votes = sorted(name for name, member in self.members.items() if not member.learner)
        able = tuple(
            name
            for name in votes
            if name in self._live and len(self._followers(name).intersection(votes)) >= quorum(len(votes))
        )
        return tuple(name for name in able if not self.members[name].behind) or able

    @cached_property
    def elected(self) -> str | None:
        """Who leads: the leader of before if it can, else the first that can be elected."""
        return self.leader if self.leader in self.electable else next(iter(self.electable), None)

    @cached_property
    def following(self) -> frozenset[str]:
        """The members that follow a leader which a quorum follows."""
        return self._followers(self.elected) if self.elected is not None else frozenset()

    @cached_property
    def deceived(self) -> frozenset[str]:
        """The members that still hear the leader, which no longer hears them, and do not know it yet."""
        if self.elected is None or not self.cuts:
            return frozenset()
        here = self.site_of(self.elected)
        return frozenset(
            name
            for name in self._live - self.following
            if self.passes(here, self.site_of(name)) and not self.members[name].silent
        )

    def lags(self, name: str) -> bool:
        """Whether a member is behind a leader that it hears, and never catches up."""
        slow = Component.ETCD in self.replica(name).slow
        return slow and bool(self.members[name].behind) and name in self.following and name != self.elected

    @cached_property
    def healthy(self) -> frozenset[str]:
        """Those that follow, and serve clients."""
        return frozenset(name for name in self.following if not self.members[name].unserved)

    @cached_property
    def voters(self) -> frozenset[Voter]:
        """The voters, for quorum arithmetic."""
        return frozenset(
            Voter(name, self.site_of(name), name in self.healthy)
            for name, member in self.members.items()
            if not member.learner
        )

    @cached_property
    def home(self) -> str | None:
        """The site that holds a quorum by itself."""
        return home(self.voters)

    @cached_property
    def separate(self) -> frozenset[str]:
        """The revisions whose apiservers keep events in a cluster of their own."""
        return self.programs.having(Component.EVENTS_ETCD)

    def keeps_events_apart(self, name: str) -> bool:
        """Whether the apiserver that is started for a replica has the events' cluster for them."""
        return dict(self.replica(name).shapes).get(Component.APISERVER, "") in self.separate

    @cached_property
    def taking_events(self) -> frozenset[str]:
        """The replicas that serve, and whose apiserver gets its events written where it keeps them. (A member answers
        for a write when it has applied it itself: one that never catches up does not.)
        """
        if not self.separate:
            return self.serving
        events = self.of(Cluster.EVENTS)
        well = {voter.replica for voter in events.voters if voter.healthy and not events.lags(voter.replica)}
        return frozenset(name for name in self.serving if name in well or not self.keeps_events_apart(name))

    @cached_property
    def serving(self) -> frozenset[str]:
        """The replicas whose apiserver answers clients with 200 on /readyz. None may read keys while etcd asks for a
        user, or holds its data for corrupt.
        """
        if self.authenticates or self.corrupt:
            return frozenset()
        return frozenset(
            name
            for name, replica in self.replicas
            if replica.warm
            and replica.runs(Component.APISERVER)
            and Component.APISERVER not in replica.hung
            and name in self.healthy
            and replica.member is not None
            and not replica.member.learner
        )

    def working(self, component: Component) -> frozenset[str]:
        """The replicas whose controllers of a kind work: they run, and their apiserver serves."""
        replicas = ((name, self.replica(name)) for name in self.serving)
        return frozenset(name for name, each in replicas if each.runs(component) and component not in each.hung)

    @cached_property
    def serving_the_past(self) -> frozenset[str]:
        """The replicas whose apiserver may take writes of an epoch that is over: a quorum of its voters runs."""
        there = [
            frozenset(name for name in voters if self._runs_with_data(name))
            for voters in self.former
            if sum(self._runs_with_data(name) for name in voters) >= quorum(len(voters))
        ]
        return frozenset(name for live in there for name in live if self.replica(name).runs(Component.APISERVER))

    def _runs_with_data(self, name: str) -> bool:
        replica = self.replica(name)
        return self.up(name) and replica.data and replica.runs(Component.ETCD)

    @cached_property
    def well_behind(self) -> dict[str, frozenset[str]]:
        """Per load balancer that runs, its backends that serve and that it can talk with."""
        return {
            site: frozenset(name for name in names & self.serving if self.connected(site, self._sites[name]))
            for site, names in self.balancers
            if site not in self.dead_edges | self.looping
        }

    def reached_from(self, site: str) -> frozenset[str]:
        """The ready apiservers that the load balancer of a site leads to: those that it holds for healthy, and are."""
        well = self.well_behind.get(site)
        return well & dict(self.checked).get(site, frozenset()) if well else frozenset()

    def reached_by(self, name: str) -> frozenset[str]:
        """The same of the address of any edge, by its name, or of an apiserver by its own."""
        if name.startswith(apiserver_of("")):
            return frozenset({name.removeprefix(apiserver_of(""))}) & self.serving
        return self.behind(self.holder(name))

    def behind(self, name: str) -> frozenset[str]:
        """The same of any edge. Those that are second know at once how their backends are."""
        for site, backends in self.seconds:
            if name == second(site) and site not in self.dead_seconds:
                return frozenset(each for each in backends & self.serving if self.connected(site, self._sites[each]))
        return self.reached_from(name.removeprefix(edge("")))
