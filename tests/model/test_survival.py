"""Which failures a plane is said to survive, against the truth: each failure is made to happen in it, and what is then
left is looked at. In every state of moves and changes, with any one thing that has gone wrong before, and at any time
after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from model.faults import data_loss, faults
from model.faulty_truth import FaultyTruth
from model.searches import APART, INSIDE, Search
from model.stories import after_round
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.planner.planner import plan
from quarterdeck.planner.quorum import Voter, has_quorum
from quarterdeck.planner.simulated import observe, tick
from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.survival import FailureDomain, Survivability, Survival, survivals
from quarterdeck.planner.view import view

#: How long ago the thing went wrong, in ticks: members come to count as down, load balancers check again.
LATER = (0, 1, 3)
#: Of the states of a story, and of what can go wrong in each, one of so many.
ONE_OF = 25
STORIES = (
    Search(replicas=3, to=3),
    Search(replicas=5, to=3),
    Search(replicas=1, to=3),
    Search(replicas=3, to=None),
    Search(replicas=3, to=3, front="north"),
    Search(replicas=3, to=3, direct=True),
    INSIDE[1],
    INSIDE[-2],
    APART[5],
)


def states(search: Search) -> Iterator[FaultyTruth]:
    """Every state of a story in which nothing goes wrong."""
    truth = search.start().truth
    while not (now := plan(observe(truth))).done:
        yield truth
        truth = after_round(truth, now)
    yield truth


def situations(search: Search) -> Iterator[FaultyTruth]:
    """The same, and some of those after one thing went wrong in them, now and a while later."""
    count = 0
    for truth in states(search):
        yield truth
        for fault in (*faults(truth), *data_loss(truth)):
            count += 1
            if count % ONE_OF == 0 and not fault.truth.cuts:  # who is cut off from whom is not seen at once
                yield from after(fault.truth)


def after(truth: FaultyTruth) -> Iterator[FaultyTruth]:
    for ticks in range(max(LATER) + 1):
        if ticks in LATER:
            yield truth
        truth = tick(truth)


def serves(truth: FaultyTruth) -> bool:
    """Whether clients are served without waiting for anybody: every address that they may hold leads to an apiserver,
    and a quorum of each cluster has the data.
    """
    memory, settings = truth.memory, truth.settings
    held = {site for site, since in memory.held if truth.now - since < settings.ttl + settings.drain}
    held |= {truth.record, memory.served_site, *memory.unsettled} - {None}
    clusters = [each for each in truth.memory.clusters if truth.memory.of(each).created or each is Cluster.MAIN]
    well = all(has_quorum(up_to_date(truth.of(each))) for each in clusters)
    return well and truth.record is not None and all(with_data(truth, led(truth, site)) for site in held if site)


def led(truth: FaultyTruth, site: str) -> frozenset[str]:
    """The apiservers that clients get to by a site's load balancer, or by any of the addresses that the name has."""
    return truth.named & truth.serving if site == APISERVERS else truth.reached_from(site)


def up_to_date(truth: FaultyTruth) -> Iterator[Voter]:
    """The voters; one that lags is not healthy: whoever needs it waits until it has caught up."""
    return (replace(each, healthy=each.healthy and bool(with_data(truth, {each.replica}))) for each in truth.voters)


def with_data(truth: FaultyTruth, names: Iterable[str]) -> list[str]:
    return [name for name in names if not truth.members[name].behind]


def off(truth: FaultyTruth, names: set[str], edges: set[str]) -> FaultyTruth:
    machines = tuple(replace(each, power=Power.OFF) if each.name in names else each for each in truth.machines)
    return replace(truth, machines=machines, dead_edges=truth.dead_edges | edges)


def happened(truth: FaultyTruth, failure: FailureDomain) -> Iterator[FaultyTruth]:
    """The truth after each failure of that kind."""
    used = {record.machine for record in truth.memory.replicas}
    sites = {site for site, _ in truth.balancers} | {each.site for each in truth.machines if each.name in used}
    match failure:
        case FailureDomain.MACHINE | FailureDomain.HOST:  # each machine is a host of its own
            yield from (off(truth, {name}, set()) for name in used)
        case FailureDomain.ZONE:
            for place in {(each.site, each.zone) for each in truth.machines}:
                yield off(truth, {each.name for each in truth.machines if (each.site, each.zone) == place}, set())
        case FailureDomain.EDGE:
            yield from (off(truth, set(), {site}) for site in sites)
        case FailureDomain.SITE:
            yield from (
                off(truth, {each.name for each in truth.machines if each.site == site}, {site}) for site in sites
            )
        case FailureDomain.DNS:
            yield replace(truth, record=truth.front)


def check(truth: FaultyTruth, survival: Survival) -> None:
    survives = serves(truth) and all(serves(each) for each in happened(truth, survival.failure))
    if survival.answer is Survivability.UNKNOWN:
        assert truth.mute or not serves(truth) or not whole(truth), f"nothing is hidden, but {survival}"
    else:
        assert survives is (survival.answer is Survivability.YES), f"{survival}, but in truth it is {survives}"


def whole(truth: FaultyTruth) -> bool:
    """Whether all members of all clusters are well, so that there is nothing to be unsure of. One that belongs to no
    replica is not asked how it is.
    """
    known = {record.name for record in truth.memory.replicas}
    voters = (each for cluster in truth.memory.clusters for each in truth.of(cluster).voters)
    return all(each.healthy and each.replica in known for each in voters)


@pytest.mark.parametrize("search", STORIES, ids=str)
def test_what_is_said_to_be_survived_is_survived_in_truth_and_nothing_else(search: Search) -> None:
    counts: Counter[Survivability] = Counter()
    count = 0
    for truth in situations(search):
        count += 1
        for survival in survivals(view(observe(truth))):
            check(truth, survival)
            counts[survival.answer] += 1
    print(f"\n{search}: {count} situations, {dict(counts)}")
    assert all(counts[answer] for answer in Survivability)
