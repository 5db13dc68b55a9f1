"""The load balancer of a simulated site that has two edges, as it is seen, and what the name makes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.edges import EdgeSeen, amiss, in_use, joined
from quarterdeck.model.endpoints import BalancerStatus, NameFact
from quarterdeck.planner.simulated.parts import DNS, edge, second

if TYPE_CHECKING:
    from model.faulty_truth import FaultyTruth


def seen_edges(truth: FaultyTruth, site: str) -> tuple[EdgeSeen, EdgeSeen]:
    """What a manager sees of both. One that is silent is given up at once, if the other leads somewhere."""
    first, other = _status(truth, site, truth.edge_answers(site)), None
    address = edge(site) if site in truth.shared else second(site)
    if truth.second_answers(site):
        names = dict(truth.seconds).get(site)
        other = BalancerStatus(
            running=names is not None,
            backends=names or frozenset(),
            healthy=truth.behind(second(site)),
            at_home=truth.holder(address) == second(site),
            unrouted=_unrouted(truth, second(site)) if names is not None else "",
        )
    others_lead = any(each is not None and each.healthy for each in (first, other))

    def edge_seen(name: str, address: str, status: BalancerStatus | None) -> EdgeSeen:
        floats, given_up = site in truth.floating, status is None and others_lead
        return EdgeSeen(name=name, address=address, status=status, floats=floats, given_up=given_up)

    seen = edge_seen(edge(site), edge(site), first), edge_seen(second(site), address, other)
    held = {each for each in truth.addresses(site) if truth.may_hand_out(site, each) or truth.is_mute(DNS)}
    one, two = (replace(each, may_be_used=each.name in in_use(seen, held)) for each in seen)
    return one, two


def _status(truth: FaultyTruth, site: str, answers: bool) -> BalancerStatus | None:
    if not answers:
        return None
    names = dict(truth.balancers).get(site)
    checked = dict(truth.checked).get(site, frozenset())
    home = truth.holder(edge(site)) == edge(site)
    return BalancerStatus(
        running=names is not None,
        backends=names or frozenset(),
        healthy=checked,
        at_home=home,
        unrouted=_unrouted(truth, edge(site)) if names is not None else "",
    )


def _unrouted(truth: FaultyTruth, name: str) -> str:
    return "what has addresses there does not run" if name in truth.unrouted else ""


def joined_fact(truth: FaultyTruth, site: str) -> BalancerFact:
    """Both as the planner goes by them."""
    return joined(site, seen_edges(truth, site), truth.record_addresses(site))


def record_amiss(truth: FaultyTruth) -> str:
    """Why the name is to be set once more."""
    site = truth.record
    if site is None or site not in truth.twins or truth.fixed or truth.is_mute(DNS):
        return ""
    name = NameFact(site=site, addresses=truth.record_addresses(site))
    return amiss(name, seen_edges(truth, site), joined_fact(truth, site))


def named(truth: FaultyTruth, site: str) -> FaultyTruth:
    """The name has the addresses of those edges of a site that it should, and not those of the others any more. Where
    by now neither would be, whoever changes it had seen both.
    """
    if site not in truth.twins:
        return truth
    since, edges = dict(truth.unnamed), {each.name for each in joined_fact(truth, site).edges if each.named}
    wanted = {each.address for each in seen_edges(truth, site) if each.name in edges}
    for each in truth.addresses(site):
        if each in wanted or not wanted:
            since.pop(each, None)
        else:
            since.setdefault(each, truth.now)
    return replace(truth, unnamed=tuple(sorted(since.items())))
