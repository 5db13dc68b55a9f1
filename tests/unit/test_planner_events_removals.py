"""Members of the events' cluster whose replica has left the main one: when they go, and who leads then."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from model.stories import (
    joined_by,
    led_by,
    planned,
    whats,
    with_fact,
    with_member,
    with_membership,
    with_unit,
    without_member,
)
from model.worlds import FORMER, NEW, changing, wanted
from support.golden import Golden

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.steps.members import RemoveMember, TransferLeadership
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

GONE = "east-3"


@cache
def whole() -> World:
    """Three replicas that keep events apart."""
    return observe(changing(3, 3, ReplicaChange(), apart=frozenset({FORMER, NEW})))


def left() -> World:
    """Two are wanted, and the other one is no member of the main cluster any more."""
    return replace(led_by(without_member(whole(), GONE), "east-1"), slots=wanted("east", 2))


def strangers(world: World, count: int) -> World:
    """The events' cluster has more voters, which belong to no replica."""
    known = world.events_membership
    assert known is not None
    more = tuple(
        MemberFact(id=number, replica="", learner=False, health=Health.HEALTHY, lag=0)
        for number in range(90, 90 + count)
    )
    return with_membership(world, Cluster.EVENTS, members=(*known.members, *more))


def test_what_is_waited_for_of_both_clusters_is_said_of_each(golden: Golden) -> None:
    stray = MemberFact(id=80, replica="", learner=False, health=Health.HEALTHY, lag=0)
    golden(each for each in whats(planned(strangers(joined_by(whole(), stray), 1))) if "belongs to no replica" in each)


def led(world: World, name: str) -> World:
    return with_membership(world, Cluster.EVENTS, leader=name)


def goes(world: World) -> bool:
    """Whether its member of the events' cluster is removed now."""
    steps = planned(world, RemoveMember).steps
    return any(isinstance(each, RemoveMember) and each.cluster is Cluster.EVENTS for each in steps)


def down(member: MemberFact) -> MemberFact:
    return replace(member, health=Health.DOWN, lag=None)


def without_data(world: World) -> World:
    return with_fact(world, GONE, lambda fact: replace(fact, events=replace(fact.events, has_data=False)))


def test_its_member_goes_as_long_as_the_site_keeps_the_quorum_of_events() -> None:
    assert goes(led(left(), "east-1"))


def test_where_no_site_has_that_only_one_that_is_down_or_has_lost_its_data_goes() -> None:
    world = led(strangers(left(), 3), "east-1")
    assert not goes(world)
    assert goes(with_member(world, GONE, down, Cluster.EVENTS))
    assert goes(without_data(world))


def test_nobody_needs_the_member_of_one_that_has_left_the_main_cluster_or_whose_member_is_down_or_lost() -> None:
    def needed(world: World) -> bool:
        events = view(world).events
        assert events is not None
        return not events.serves_nobody(world.memory.replica(GONE))

    assert needed(whole())
    assert not needed(left())
    assert not needed(with_member(whole(), GONE, down, Cluster.EVENTS))
    assert not needed(without_data(whole()))


def test_who_is_lost_in_either_cluster_needs_no_farewell_there() -> None:
    first = with_fact(left(), "east-1", lambda fact: replace(fact, events=replace(fact.events, has_data=False)))
    events = view(first).events
    assert events is not None
    assert events.gone == {"east-1", GONE}


def hands_over(world: World) -> bool:
    steps = planned(world, TransferLeadership).steps
    return any(isinstance(each, TransferLeadership) and each.cluster is Cluster.EVENTS for each in steps)


def test_one_that_leads_the_events_hands_over_before_it_goes() -> None:
    assert hands_over(led(left(), GONE))
    assert not goes(led(left(), GONE))
    assert not hands_over(led(left(), "east-1"))


def test_one_that_is_only_not_wanted_leads_until_its_member_of_the_main_cluster_is_gone() -> None:
    world = replace(led(whole(), GONE), slots=wanted("east", 2))
    stopped = with_unit(world, GONE, Component.APISERVER, UnitState.STOPPED)
    assert not hands_over(world)
    assert not goes(with_fact(stopped, GONE, lambda fact: replace(fact, ready=False)))
