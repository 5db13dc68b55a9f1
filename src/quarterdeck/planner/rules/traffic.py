"""How clients find the plane: load balancers, the DNS record, and addresses that clients may still hold."""

from __future__ import annotations

from collections.abc import Collection

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import Component
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.traffic import LeadTo, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.units import IDLE
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.view import View


def may_drain(view: View) -> bool:
    """Whether unwanted apiservers may lose their new connections: the wanted ones carry the traffic, and the name leads
    clients to them.
    """
    return view.takeover and view.led_to({record.name for record in view.servers})


def carries(view: View) -> Wait:
    """A wait until clients are led to the replicas that stay, before others may leave."""
    return Wait(f"site {view.heading} to carry the traffic", next_steps.status(view.world))


def drains(view: View, record: Replica) -> Wait | None:
    """What is waited for until the clients of an apiserver have left it; None once they have."""
    since = dict(view.world.memory.draining).get(record.name)
    if since is None:
        left = "load balancers to stop using" if APISERVERS not in view.held else "the name to stop leading clients to"
        return Wait(f"{left} {record.name}", next_steps.status(view.world))
    left_s = view.farewell - (view.world.now - since)
    return Wait(f"{record.name} to drain", next_steps.within(left_s)) if left_s > 0 else None


def to_leave(view: View) -> set[str]:
    """The replicas to which load balancers must send nothing."""
    leaving = {record.name for record in view.unwanted} if may_drain(view) else set(view.gone)
    rest = view.resting
    return leaving | {
        each.name for each in (rest.replicas if rest is not None else ()) if view.rests(each, Component.APISERVER)
    }


def _running(view: View) -> list[BalancerFact]:
    return [balancer for balancer in view.world.balancers if balancer.running]


def _there(view: View) -> list[BalancerFact]:
    return [balancer for balancer in view.world.balancers if balancer.there]


def _needed(view: View) -> tuple[str, ...]:
    """The sites whose load balancer must run: where the plane is heading, and every site that a client may use."""
    sites = set(view.held)
    if any(view.ready(record) for record in view.world.memory.replicas):
        sites |= {site for site in (view.door, _refuge(view)) if site}
    return tuple(sorted((sites | {balancer.site for balancer in _running(view)}) - {APISERVERS}))


def _refuge(view: View) -> str | None:
    """The quorum site, while the load balancer of the name leads to no ready apiserver (sites were cut from each
    other): the name can go back there. A fixed address cannot, and a name that leads to the apiservers themselves
    leads to any of them.
    """
    world = view.world
    if world.front is not None or world.led_straight or world.balancer(world.record or view.door).ready:
        return None
    return view.quorum_site


def backends(view: View) -> RuleOutcome:
    """Every load balancer sends new connections to every ready apiserver that stays.

    An apiserver is added only when it reports ready; one that is listed stays through a moment of unreadiness (the
    load balancer's own health check handles that), and is removed when it stops for good or must drain. An entry that
    only one edge lists may be from long ago. The name follows the same rules where it leads to the apiservers itself.
    An edge that can no longer get an address is configured once more: that restarts the program that moves it there.
    """
    steps: list[Step] = []
    waiting: list[Wait] = []
    leaving = to_leave(view)
    for site in _needed(view):
        balancer = view.world.balancer(site)
        if not balancer.reachable:
            waiting.append(next_steps.edges(view.world, site))
            continue
        chosen = tuple(
            record.name
            for record in view.world.memory.replicas
            if record.name not in leaving
            and (
                view.ready(record)
                or (record.name in balancer.listed and view.unit(record, Component.APISERVER) not in IDLE)
            )
        )
        if not chosen:
            waiting.append(Wait(f"a ready apiserver for the load balancer at {site}", next_steps.status(view.world)))
        elif set(chosen) != balancer.everywhere:
            why = f"new connections at {site} go to the apiservers that are ready and stay"
            steps.append(SetBackends(site=site, why=why, backends=chosen))
        elif balancer.unrouted:
            why = f"floating addresses can move to {' and '.join(balancer.unrouted)} again"
            steps.append(SetBackends(site=site, why=why, backends=chosen))
        elif not balancer.ready:
            what = f"the load balancer at {site} to find a healthy backend"
            waiting.append(Wait(what, next_steps.status(view.world)))
    named = follow(view, leaving)
    return RuleOutcome((*steps, *named.steps), (*waiting, *named.waiting))


def relight(view: View) -> RuleOutcome:
    """An address that a client may use and that leads to no ready apiserver is repaired first."""
    off = {record.name for record in view.world.memory.replicas if view.fact(record).ready is False}
    # A load balancer's check is a moment old: the apiservers' own answers count as well.
    dark = {site for site in view.held if view.world.balancer(site).healthy <= off}
    # The apiservers' own answers are new: a load balancer that leads nowhere is not left for the next observation.
    return RuleOutcome(tuple(step for step in backends(view).steps if step.site in dark or APISERVERS in dark))


def record(view: View) -> RuleOutcome:
    """The plane's name leads to the site it is heading for once that can carry the traffic; and away from a load
    balancer without a ready apiserver as soon as another one has one.
    """
    world = view.world
    if not world.record_known:
        return RuleOutcome(waiting=(unknown(world),))
    if world.foreign:
        return RuleOutcome(waiting=(Wait(f"its name to be free: {world.foreign}", _FREE),))
    door, target = view.door, world.balancer(view.door)
    servers = {replica.name for replica in view.servers}
    # The load balancer's check is a moment old, so the apiserver's own answer counts as well.
    able = any(view.ready(each) for each in world.memory.replicas if each.name in target.healthy)
    if world.record == door:
        if able:
            return _settled(view)
    elif door != APISERVERS and able and (world.record is None or (view.takeover and servers <= target.everywhere)):
        return RuleOutcome((SetRecord(site="", why=f"site {door} carries the traffic", to=door),))
    if world.record is not None and not world.balancer(world.record).ready:
        other = next((each for each in world.balancers if each.ready), None)
        if other is not None:
            why = f"the load balancer at {world.record} leads to no ready apiserver"
            return RuleOutcome((SetRecord(site="", why=why, to=other.site),))
    if door in (world.record, APISERVERS):
        return RuleOutcome()  # the wait for apiservers was already reported for the name
    return RuleOutcome(waiting=(Wait(f"the load balancer at {door} to carry the traffic", next_steps.status(world)),))


def _settled(view: View) -> RuleOutcome:
    """The name leads to the right place, with the right time to live. Before anything is removed, it must carry this
    driver's token (a delayed change by an older driver could lead it back), and every server must return the same.
    """
    world, door = view.world, view.door
    if world.amiss:
        return RuleOutcome((_again(view, world.amiss),))
    if world.record_ttl is not None and world.front is None and not world.torn:
        why = f"its addresses have a time to live of {world.record_ttl:g} s, not of {world.settings.ttl:g} s"
        return RuleOutcome((_again(view, why),))
    leaving = bool(view.unwanted) or any(balancer.site != door for balancer in _there(view))
    leaving = leaving or (door == APISERVERS and bool(to_leave(view)))
    if leaving and not world.stamped:
        why = "from now on, no change by an older driver can reach the record"
        return RuleOutcome((_again(view, why),))
    if world.torn and (world.also or world.memory.unsettled or world.memory.served_site != door):
        return RuleOutcome(waiting=(Wait(f"all DNS servers to answer the same: {world.torn}", _DNS),))
    return RuleOutcome()


def _again(view: View, why: str) -> Step:
    """The name is set again, to its present value."""
    if view.door == APISERVERS:
        return LeadTo(site="", why=why, backends=tuple(sorted(view.world.apiservers.backends)))
    return SetRecord(site="", why=why, to=view.door)


#: What a person does about DNS servers, and about a name that belongs to another owner.
_DNS = "make the DNS server reachable from here; quarterdeck continues once it does"
_FREE = "remove the existing record, or set spec.endpoint.takeOver to true"


def unknown(world: World) -> Wait:
    """The wait as long as it is unknown where the name leads."""
    why = f": {world.record_trouble}" if world.record_trouble else ""
    return Wait(f"the DNS server to answer{why}", _DNS)


def let_go(view: View) -> RuleOutcome:
    """A load balancer stops when no client can still hold its address: its time to live and drain have passed."""
    world = view.world
    steps: list[Step] = []
    waiting: list[Wait] = []
    held = dict(world.memory.held)
    for balancer in _there(view):
        site = balancer.site
        if site in (view.door, world.record, world.memory.served_site, _refuge(view)) or not world.record_known:
            continue
        if site in (*world.memory.unsettled, *world.also):
            continue  # the rule for the record reports the wait
        if site in held and not view.expired(held[site]):
            left_s = world.lifetime + world.settings.drain - (world.now - held[site])
            waiting.append(Wait(f"clients to drop the address of site {site}", next_steps.within(left_s)))
        elif not balancer.reachable:
            waiting.append(next_steps.edges(world, site))
        else:
            steps.append(StopBalancer(site=site, why=f"no client can still hold the address of site {site}"))
    return RuleOutcome(tuple(steps), tuple(waiting))


# Round robin: the plane's name leads to its apiservers themselves, with no load balancer between.


def follow(view: View, leaving: Collection[str]) -> RuleOutcome:
    """The name has the addresses of the apiservers that are ready and stay. It is switched to them once they can carry
    the traffic, or where it leads nowhere; and follows them from then on, also while it must lead elsewhere later.
    """
    world = view.world
    if APISERVERS not in (world.record, view.door) or not world.record_known or world.foreign:
        return RuleOutcome()
    named = chosen(view, leaving)
    if not named:
        return RuleOutcome(waiting=(Wait("a ready apiserver for the name to lead to", next_steps.status(world)),))
    if world.record == APISERVERS:
        if set(named) == world.apiservers.backends:
            return RuleOutcome()
        why = "the name leads to the apiservers that are ready and stay"
    elif world.record is None or view.takeover or not world.balancer(world.record).ready:
        why = "the apiservers carry the traffic themselves"
    else:
        return RuleOutcome(waiting=(Wait("the apiservers to carry the traffic", next_steps.status(world)),))
    return RuleOutcome((LeadTo(site="", why=why, backends=named),))


def chosen(view: View, leaving: Collection[str]) -> tuple[str, ...]:
    """The replicas whose addresses the name must have; empty where none is ready: then it stays as it is."""
    stay = [each for each in view.world.memory.replicas if each.name not in {*leaving, *view.world.elsewhere}]
    if view.world.promoted:
        stay = _of_one(view, stay)
    if not any(map(view.ready, stay)):
        return ()
    return tuple(each.name for each in stay if view.ready(each) or _may_be_ready(view, each))


def _of_one(view: View, stay: list[Replica]) -> list[Replica]:
    """A promoted address, which only one replica can have, goes to a wanted one; while it moves to a load balancer, it
    stays where it is as long as that replica serves.
    """
    has, straight = view.world.apiservers.backends, view.door == APISERVERS
    chosen = [each for each in stay if (each in view.wanted if straight else each.name in has)]
    return chosen if any(map(view.ready, chosen)) else stay


def _may_be_ready(view: View, record: Replica) -> bool:
    """Whether the name keeps an apiserver that does not answer this process: clients may still reach it, until the
    cluster does not reach its member either.
    """
    there = record.name in view.world.apiservers.backends
    return there and view.fact(record).ready is None and not view.apiserver_off(record)
