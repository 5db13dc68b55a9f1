"""Who leads while members join or leave, whom learners copy from, and in which turn they start."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from model.stories import (
    about_to,
    is_done,
    joined_by,
    led_by,
    planned,
    serving,
    step_words,
    steps_until,
    until,
    whats,
    with_member,
    with_membership,
    with_memory,
)
from model.worlds import changing, empty, moving_apart, settled, wanted
from support.golden import Golden

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.steps.members import AddLearner, TransferLeadership
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def differing(world: World, *names: str) -> World:
    records = tuple(replace(each, differs=each.name in names) for each in world.memory.replicas)
    return with_memory(world, replicas=records)


@cache
def joining() -> World:
    """The fourth and the fifth replica are to join three."""
    truth = replace(settled(empty("east", 3)), slots=wanted("east", 5))
    return led_by(observe(until(truth, about_to(AddLearner))), "east-1")


@cache
def copying() -> World:
    """They have joined, and copy the data."""
    truth = replace(settled(empty("east", 3)), slots=wanted("east", 5))
    truth = until(truth, lambda now, found: now.replica("east-5").runs(Component.ETCD) and not found.now)
    return led_by(observe(truth), "east-1")


def led(world: World) -> list[str]:
    """To whom leadership goes."""
    return [step.to for step in plan(world).now if isinstance(step, TransferLeadership)]


# --- whom learners copy from ----------------------------------------------------------------------------------------


def test_before_anybody_joins_another_one_leads_than_one_whose_data_differs_or_who_is_to_be_replaced() -> None:
    world = joining()
    assert led(world) == []
    for suspect in (differing(world, "east-1"), replace(world, condemned=("east-1",))):
        assert led(replace(suspect, cordoned=("east-1",))) == ["east-2"]
        assert led(with_membership(replace(suspect, cordoned=("east-1",)), leader="east-3")) == []


def test_while_nobody_joins_any_member_may_lead() -> None:
    world = replace(led_by(serving(), "east-1"), cordoned=("east-1",))
    assert led(differing(world, "east-1")) == []
    assert led(replace(world, condemned=("east-1",))) == []


def test_one_that_has_joined_and_copies_is_reason_enough() -> None:
    assert led(copying()) == []
    assert led(replace(differing(copying(), "east-1"), cordoned=("east-1",))) == ["east-2"]


def test_leadership_goes_to_a_voter_that_is_well_and_not_to_be_replaced_itself() -> None:
    world = replace(joining(), cordoned=("east-1", "east-2"))
    assert led(replace(world, condemned=("east-1", "east-2"))) == ["east-3"]
    ill = with_member(joining(), "east-2", lambda each: replace(each, health=Health.SUSPECT))
    assert led(differing(replace(ill, cordoned=("east-1",)), "east-1")) == ["east-3"]


def test_where_all_voters_are_to_be_replaced_any_of_them_may_lead() -> None:
    names = ("east-1", "east-2", "east-3")
    for world in (joining(), copying()):
        leaving = replace(world, condemned=names, cordoned=names)
        assert led(leaving) == []
        assert not [each for each in whats(plan(leaving)) if "to lead" in each]
        assert led(differing(leaving, "east-1")) == ["east-2"], "but not one whose data differs"


def test_why_another_one_leads_and_that_one_is_waited_for_is_told(golden: Golden) -> None:
    world = replace(joining(), cordoned=("east-1",))
    for suspect in (differing(world, "east-1"), replace(world, condemned=("east-1",))):
        (step,) = planned(suspect, TransferLeadership).steps
        golden(step.why)
    for name in ("east-2", "east-3"):
        world = with_member(world, name, lambda each: replace(each, lag=5_000))
    alone = differing(world, "east-1")
    assert led(alone) == []
    (wait,) = (each for each in whats(plan(alone)) if "to lead" in each)
    golden(wait)


def test_where_a_transfer_fails_it_goes_to_another_voter() -> None:
    world = differing(replace(joining(), cordoned=("east-1",)), "east-1")
    (step,) = (each for each in plan(world).now if isinstance(each, TransferLeadership))
    assert led(replace(world, failing=(Failing(step=bare(step), error="it is busy"),))) == ["east-3"]


# --- how they join --------------------------------------------------------------------------------------------------


def test_voters_that_are_not_well_are_named_before_anybody_is_added(golden: Golden) -> None:
    world = joining()
    for name in ("east-2", "east-3"):
        world = with_member(world, name, lambda each: replace(each, health=Health.SUSPECT))
    (wait,) = (each for each in plan(world).waiting if "before learners are added" in each.what)
    assert "east-2, east-3" in wait.what
    assert "--replica east-2" in wait.then
    stray = MemberFact(id=90, replica="", learner=False, health=Health.SUSPECT, name="n")
    (wait,) = (each for each in plan(joined_by(joining(), stray)).waiting if "before learners" in each.what)
    golden(str(wait))


def test_a_start_that_fails_lets_the_next_learner_start_and_no_other() -> None:
    truth = replace(settled(empty("east", 2)), slots=wanted("east", 5))
    world = observe(until(truth, about_to(StartUnit)))
    assert of(world) == ["StartUnit etcd of east-3"]
    (step,) = plan(world).now
    assert isinstance(step, StartUnit)
    assert of(replace(world, failing=(Failing(step=bare(step), error="no room"),))) == ["StartUnit etcd of east-4"]


def test_the_volume_of_a_member_is_of_its_clusters_class() -> None:
    """The main member's was created with the replica."""
    world = replace(joining(), storage_class="fast")
    records = tuple(replace(each, storage_class="fast") for each in world.memory.replicas)
    added = planned(with_memory(world, replicas=records), AddLearner).steps
    assert [each.storage_class for each in added if isinstance(each, AddLearner)] == ["", ""]
    apart = observe(
        until(
            moving_apart(1, 1),
            lambda _, now: any(isinstance(each, AddLearner) and each.cluster is Cluster.EVENTS for each in now.now),
        )
    )
    classes = {
        each.storage_class
        for each in planned(replace(apart, events_class="slow"), AddLearner).steps
        if isinstance(each, AddLearner) and each.cluster is Cluster.EVENTS
    }
    assert classes == {"slow"}


def test_a_member_that_stopped_for_its_next_revision_stays_so_until_it_has_that() -> None:
    done = steps_until(changing(3, 3, ReplicaChange(restart=frozenset({Component.ETCD}))), is_done)
    for number in (1, 2, 3):
        stop = done.index(f"StopUnit etcd of east-{number}")
        after = [each for each in done[stop + 1 :] if f"east-{number}" in each]
        assert after[:2] == [f"AdoptRevision east-{number}", f"StartUnit etcd of east-{number}"]
