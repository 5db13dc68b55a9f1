"""A simulated world in which anything can go wrong: what ``Truth`` has not, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from typing_extensions import override

from model import two_edges
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.simulated.parts import Power, SimReplica, all_of, apiserver_of, edge, other, second
from quarterdeck.planner.simulated.traffic import by_site
from quarterdeck.planner.simulated.truth import Truth


@dataclass(frozen=True, kw_only=True)
class FaultyTruth(Truth):
    """All that is true, with faults that no observation tells as such.

    ``cuts`` are pairs of sites (from, to) that packets do not pass: all talk needs both ways, but who only hears does
    not know that at once. ``dead_edges`` are sites whose load balancer's machine is off, ``looping`` those where a load
    balancer ends as often as it is started.
    ``mute`` is what works but does not answer the manager: machines, members (``etcd_of``), apiservers
    (``apiserver_of``), load balancers (``edge``), whole sites (``all_of``), the DNS server, etcd's membership.
    ``broken``: programs that end again and again as this revision would have them, ``hanging``: those that run and are
    never ready. ``corrupt``: etcd has raised CORRUPT, ``authenticates``: it asks for a user; in the main cluster alone.
    ``roomy``: the revisions with a larger quota. ``sick``: machines, each with a program that hangs there
    whenever it is started; ``lame``: the same, of members that never catch up there. ``twins`` are sites whose load
    balancer is on two edges: all else tells of the first, ``seconds`` are the backends of the other one where it runs,
    and ``dead_seconds`` the sites where its machine is off. ``unnamed``: the edges (``edge``, ``second``) whose address
    the name lacks, since when. ``floating`` are those of these sites whose edges take over each other's addresses,
    ``away`` the edges whose address the other one has now, ``unrouted`` those to which none can come; at those that are
    ``shared`` both edges have one address, which is called by the first.
    ``former``: who voted in each epoch of the main cluster that is over. ``haunted``: machines, each with a replica
    whose volume was taken from there, and which still has it open for writing.
    """

    cuts: frozenset[tuple[str, str]] = frozenset()
    dead_edges: frozenset[str] = frozenset()
    looping: frozenset[str] = frozenset()
    mute: frozenset[str] = frozenset()
    broken: frozenset[tuple[str, Component]] = frozenset()
    hanging: frozenset[tuple[str, Component]] = frozenset()
    corrupt: bool = False
    authenticates: bool = False
    roomy: frozenset[str] = frozenset()
    sick: frozenset[tuple[str, Component]] = frozenset()
    lame: frozenset[tuple[str, Component]] = frozenset()
    twins: frozenset[str] = frozenset()
    seconds: tuple[tuple[str, frozenset[str]], ...] = ()
    dead_seconds: frozenset[str] = frozenset()
    unnamed: tuple[tuple[str, float], ...] = ()
    floating: frozenset[str] = frozenset()
    away: frozenset[str] = frozenset()
    unrouted: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    former: tuple[frozenset[str], ...] = ()
    haunted: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    @override
    def _events(self) -> Self:
        return replace(super()._events, corrupt=False, authenticates=False, hanging=frozenset())

    # What does not answer

    @cached_property
    @override
    def unreachable(self) -> frozenset[str]:
        if not self.mute:
            return frozenset()
        return frozenset(
            each.name
            for each in self.machines
            if all_of(each.site) in self.mute or (each.power is Power.ON and each.name in self.mute)
        )

    @override
    def is_mute(self, thing: str, site: str = "") -> bool:
        return bool(self.mute) and not self.mute.isdisjoint((thing, all_of(site)))

    @override
    def edge_answers(self, site: str) -> bool:
        return site not in self.dead_edges and super().edge_answers(site)

    def second_answers(self, site: str) -> bool:
        """Whether there is another edge at a site, whose machine answers the manager."""
        return site in self.twins and site not in self.dead_seconds and not self.is_mute(second(site), site)

    # Links

    def passes(self, one: str, other: str) -> bool:
        """Whether packets of one site get to another one."""
        return one == other or (one, other) not in self.cuts

    @override
    def connected(self, one: str, other: str) -> bool:
        return one == other or not self.cuts or (self.passes(one, other) and self.passes(other, one))

    @override
    def _followers(self, leader: str) -> frozenset[str]:
        if not self.cuts:
            return self._live
        site = self.site_of(leader)
        return frozenset(name for name in self._live if self.connected(site, self.site_of(name)))

    @cached_property
    @override
    def deceived(self) -> frozenset[str]:
        if self.elected is None or not self.cuts:
            return frozenset()
        here = self.site_of(self.elected)
        return frozenset(
            name
            for name in self._live - self.following
            if self.passes(here, self.site_of(name)) and not self.members[name].silent
        )

    # Programs

    @override
    def breaks(self, revision: str, component: Component) -> bool:
        return (revision, component) in self.broken

    @override
    def ended(self, replica: SimReplica) -> frozenset[Component]:
        if not self.broken:
            return frozenset()
        return frozenset(component for component, shape in replica.shapes if self.breaks(shape, component))

    @override
    def hangs(self, replica: SimReplica, component: Component) -> bool:
        if component in replica.hung:
            return True
        return bool(self.hanging) and (dict(replica.shapes).get(component, ""), component) in self.hanging

    @override
    def quiet(self, replica: SimReplica) -> tuple[Component, ...]:
        if not self.hanging:
            return ()
        there = (component for component, shape in replica.shapes if (shape, component) in self.hanging)
        return tuple(component for component in there if replica.runs(component))

    @override
    def hanging_on(self, machine: str) -> frozenset[Component]:
        return frozenset(component for where, component in self.sick if where == machine)

    @override
    def lagging_on(self, machine: str) -> frozenset[Component]:
        return frozenset(component for where, component in self.lame if where == machine)

    # etcd

    @property
    @override
    def alarms(self) -> tuple[str, ...]:
        return ("alarm:CORRUPT",) * self.corrupt + super().alarms

    @property
    @override
    def asks_for_a_user(self) -> bool:
        return self.authenticates

    @override
    def is_roomy(self, name: str) -> bool:
        return bool(self.roomy) and dict(self.replica(name).shapes).get(Component.ETCD, "") in self.roomy

    @cached_property
    @override
    def serving(self) -> frozenset[str]:
        """None may read keys while etcd asks for a user, or holds its data for corrupt."""
        return frozenset() if self.authenticates or self.corrupt else super().serving

    @override
    def with_former_voters(self) -> Self:
        voters = frozenset(name for name, member in self.members.items() if not member.learner)
        return replace(self, former=(*self.former, voters))

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
    def taking_events(self) -> frozenset[str]:
        """The replicas that serve, and whose apiserver gets its events written where it keeps them. (A member answers
        for a write when it has applied it itself: one that never catches up does not.)
        """
        if not self.separate:
            return self.serving
        events = self.of(Cluster.EVENTS)
        well = {voter.replica for voter in events.voters if voter.healthy and not events.lags(voter.replica)}
        return frozenset(name for name in self.serving if name in well or not self.keeps_events_apart(name))

    def working(self, component: Component) -> frozenset[str]:
        """The replicas whose controllers of a kind work: they run, and their apiserver serves."""
        replicas = ((name, self.replica(name)) for name in self.serving)
        return frozenset(name for name, each in replicas if each.runs(component) and component not in each.hung)

    # Load balancers, their edges, and the name

    @property
    def door(self) -> str:
        """Where the name is to lead once all is as wanted: to a site, or to ``APISERVERS``."""
        site = self.slots[0].site
        alone = len(self.slots) == 1 and site == self.front
        straight = alone if self.promoted else self.direct
        return APISERVERS if straight else self.front or site

    @override
    def balances(self, site: str) -> bool:
        return site not in self.dead_edges | self.looping

    @override
    def balancer_facts(self) -> tuple[BalancerFact, ...]:
        unseen = {machine.site for machine in self.machines if all_of(machine.site) in self.mute}
        twins = {site for site in self.twins if site in dict((*self.balancers, *self.seconds)) or site in unseen}
        twins |= (self.dead_edges | self.dead_seconds) & self.twins
        sites = ({site for site, _ in self.balancers} | self.dead_edges | unseen) - self.twins
        dark = tuple(
            BalancerFact(site=site, running=False, reachable=False)
            for site in sorted(sites)
            if not self.edge_answers(site)
        )
        lit = tuple(
            each if each.site not in self.looping else BalancerFact(site=each.site, running=False, left=True)
            for each in super().balancer_facts()
            if each.site in sites and self.edge_answers(each.site)
        )
        return (*lit, *dark, *(two_edges.joined_fact(self, site) for site in sorted(twins)))

    @override
    def with_second_notified(self, site: str, backends: frozenset[str] | None) -> tuple[Self, bool]:
        asked = {edge(site)} if self.edge_answers(site) else set[str]()
        seconds, answers = dict(self.seconds), self.second_answers(site)
        if answers:
            asked.add(second(site))
            seconds.pop(site, None)
            if backends is not None:
                seconds[site] = backends
        # What is given backends has what brings addresses to it run.
        unrouted = self.unrouted - asked if backends is not None else self.unrouted
        if not answers and unrouted == self.unrouted:
            return self, False
        return replace(self, seconds=by_site(seconds), unrouted=unrouted), answers

    @override
    def with_edges_named(self, site: str) -> Self:
        return two_edges.named(self, site)

    @property
    @override
    def record_amiss(self) -> str:
        return two_edges.record_amiss(self)

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
