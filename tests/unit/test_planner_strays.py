"""Voters that belong to no replica: every rule counts them, and nothing that stops a voter begins beside one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.observations import left, seen, voters_at
from model.stories import joined_by, whats, with_member
from model.worlds import changing, empty, moving, settled
from support.golden import Golden

from quarterdeck.engine.notices.events import happenings
from quarterdeck.metrics import catalogue
from quarterdeck.metrics.samples import samples
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.world import World
from quarterdeck.planner.members import can_spare, voters
from quarterdeck.planner.planner import plan
from quarterdeck.planner.quorum import margin
from quarterdeck.planner.rules.membership import removable
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.dry_run import dry_run
from quarterdeck.planner.view import view


def beside(world: World, *, count: int = 1, name: str = "", health: Health = Health.DOWN) -> World:
    """The same world, in which etcd lists so many more voters."""
    strays = tuple(
        MemberFact(id=0x90 + number, replica="", name=name, learner=False, health=health) for number in range(count)
    )
    return joined_by(world, *strays)


def restarting(replicas: int, component: Component = Component.ETCD) -> World:
    return observe(changing(replicas, replicas, ReplicaChange(restart=frozenset({component}))))


@pytest.mark.parametrize("name", ["", "east-1"])
def test_no_member_rests_beside_one_without_which_the_others_are_no_quorum(name: str, golden: Golden) -> None:
    world = restarting(3)
    assert view(world).resting is not None
    held = beside(world, name=name)
    assert view(held).resting is None
    assert not plan(held).now
    golden(whats(plan(held))[0])
    assert not [each for each in whats(plan(held)) if "all others to be well" in each], "they are"


def test_where_the_others_are_a_quorum_of_all_it_does() -> None:
    assert view(beside(restarting(5))).resting is not None, "4 of 6 are a quorum"
    assert view(beside(restarting(5), count=2)).resting is not None, "4 of 7 are a quorum"
    assert view(beside(restarting(5), count=3)).resting is None, "4 of 8 are none"


def test_what_leaves_the_members_alone_goes_on() -> None:
    assert view(beside(restarting(3, Component.SCHEDULER))).resting is not None


def test_a_stray_of_the_events_cluster_holds_only_what_stops_its_members() -> None:
    for component, rests in ((Component.EVENTS_ETCD, False), (Component.ETCD, True)):
        truth = changing(3, 3, ReplicaChange(restart=frozenset({component})), apart=frozenset({"one", "two"}))
        world = observe(truth)
        assert view(world).resting is not None
        stray = MemberFact(id=0x90, replica="", learner=False, health=Health.DOWN)
        held = joined_by(world, stray, cluster=Cluster.EVENTS)
        assert (view(held).resting is not None) is rests


def test_two_strays_without_a_name_are_two_voters() -> None:
    world = beside(observe(settled(empty("east", 3))), count=2)
    assert len(voters(world)) == 5
    assert margin(voters(world)) == 0
    values = {each.metric: each.value for each in samples(world, plan(world)) if each.labels == ("main",)}
    assert values[catalogue.MARGIN] == 0
    assert values[catalogue.UNKNOWN_MEMBERS] == 2


def test_a_member_without_a_vote_can_always_be_spared() -> None:
    world = beside(seen(*voters_at("east", 3), to="east", count=3))
    records = world.memory.replicas
    assert not any(can_spare(world, each) for each in records)
    learns = with_member(world, "east-1", lambda member: replace(member, learner=True))
    assert can_spare(learns, records[0])
    assert all(can_spare(seen(*voters_at("east", 3), to="east", count=3), each) for each in records)


def test_no_voter_is_removed_beside_strays_that_cost_the_quorum() -> None:
    """One of four voters leaves: three are a quorum of the three that are left, and none of six."""
    replicas = (left(voters_at("east", 1)[0]), *voters_at("west", 3))
    world = seen(*replicas, to="west", count=3, leader="west-1")
    first = world.memory.replicas[0]
    assert removable(view(world), first)
    assert not removable(view(beside(world, count=3)), first)


def test_a_plan_counts_every_voter_that_etcd_lists(golden: Golden) -> None:
    forecast = dry_run(beside(restarting(3, Component.SCHEDULER)))
    assert {(each.voters, each.margin) for each in forecast.steps} == {(4, 0)}
    golden(forecast.stuck_on[0].what)
    stuck = dry_run(replace(beside(restarting(3)), plane_name="demo"))
    assert not stuck.steps
    golden(stuck.stuck_on[0].what)
    golden(stuck.stuck_on[0].then)


def test_a_move_beside_a_stray_is_not_taken_for_one_between_three_sites() -> None:
    assert view(beside(observe(moving(3, 3)))).heading == "west"


@pytest.mark.parametrize("cluster", Cluster)
def test_an_event_names_it_by_id_name_and_url_and_says_how_to_remove_it(cluster: Cluster, golden: Golden) -> None:
    world = replace(beside(observe(settled(empty("east", 3))), name="east-1"), plane_name="demo")
    if cluster is Cluster.EVENTS:
        memory = replace(
            world.memory, events=replace(world.memory.events, epoch=1, bootstrap=("east-1",), created=True)
        )
        world = replace(world, events_membership=world.membership, memory=memory)
    messages = [each.message for each in happenings(world) if each.reason == "UnknownMember"]
    golden(sorted(messages))
    assert not [each for each in happenings(world) if each.reason == "MemberDown"]
