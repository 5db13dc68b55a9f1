"""A step that fails again and again holds up no other, but those that would touch the same thing after it."""

from __future__ import annotations

from dataclasses import replace

from model.stories import about_to, serving, step_words, until, whats, with_unit
from model.worlds import empty, moving, settled

from quarterdeck.model.components import Component
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import Promote, TransferLeadership
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.traffic import SetBackends, StopBalancer
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import BlockedClaims, bare
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe


def failing(world: World, *steps: Step) -> World:
    """The world in which these steps are put aside."""
    return replace(
        world, failing=tuple(Failing(step=bare(step), error=f"{step_words(step)} to succeed") for step in steps)
    )


def now(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def first(world: World) -> Step:
    return plan(world).now[0]


def stopped(world: World, *units: tuple[str, Component]) -> World:
    for name, component in units:
        world = with_unit(world, name, component, UnitState.STOPPED)
    return world


def test_a_start_that_fails_holds_up_no_later_rule() -> None:
    world = stopped(serving(), ("east-1", Component.ETCD), ("east-2", Component.SCHEDULER))
    assert now(world) == ["StartUnit etcd of east-1"]
    world = failing(world, first(world))
    assert now(world) == ["StartUnit kube-scheduler of east-2"]
    assert "StartUnit etcd of east-1 to succeed" in whats(plan(world))


def test_of_two_starts_of_one_rule_the_other_one_is_taken() -> None:
    world = stopped(serving(), ("east-1", Component.ETCD), ("east-2", Component.ETCD))
    assert now(failing(world, first(world))) == ["StartUnit etcd of east-2"]


def test_a_learner_that_cannot_be_started_does_not_keep_the_next_one_from_starting() -> None:
    world = observe(until(moving(3, 3), about_to(StartUnit)))
    assert now(world) == ["StartUnit etcd of west-4"]
    world = failing(world, first(world))
    assert now(world) == ["StartUnit etcd of west-5"]
    assert now(failing(world, *(each.step for each in world.failing), first(world))) == ["StartUnit etcd of west-6"]


def test_a_voter_to_whom_leadership_cannot_be_handed_is_passed_over() -> None:
    world = observe(until(moving(3, 3), about_to(TransferLeadership)))
    assert now(world) == ["TransferLeadership west-4"]
    assert now(failing(world, first(world))) == ["TransferLeadership west-5"]


def test_the_membership_is_changed_by_no_later_rule_while_a_change_of_it_is_put_aside() -> None:
    world = observe(until(moving(3, 3), about_to(Promote)))
    assert now(world) == ["Promote west-4"]
    assert now(failing(world, first(world))) == []


def test_what_is_held_back_for_one_rule_is_held_back_until_the_last_one() -> None:
    one, two = (StartUnit(site="east", why="", replica=name, component=Component.ETCD) for name in ("east-1", "east-2"))
    _, aside = BlockedClaims(tuple(Failing(step=each, error="no") for each in (one, two))).sort(RuleOutcome((one,)))
    _, aside = aside.sort(RuleOutcome((two,)))
    stops = tuple(StopUnit(site="east", why="", replica=each.replica, component=each.component) for each in (one, two))
    assert aside.sort(RuleOutcome(stops))[0].steps == ()


def test_the_apiserver_of_a_replica_stops_although_its_etcd_cannot_be_started() -> None:
    start = StartUnit(site="east", why="", replica="east-1", component=Component.ETCD)
    stop = StopUnit(site="east", why="", replica="east-1", component=Component.APISERVER)
    _, aside = BlockedClaims((Failing(step=start, error="no"),)).sort(RuleOutcome((start,)))
    assert aside.sort(RuleOutcome((stop,)))[0].steps == (stop,)
    assert aside.sort(RuleOutcome((replace(stop, component=Component.ETCD),)))[0].steps == ()


def test_a_load_balancer_that_takes_no_files_can_be_let_go() -> None:
    send = SetBackends(site="east", why="", backends=("west-4",))
    go = StopBalancer(site="east", why="")
    _, aside = BlockedClaims((Failing(step=send, error="no"),)).sort(RuleOutcome((send,)))
    assert aside.sort(RuleOutcome((go,)))[0].steps == (go,)
    assert aside.sort(RuleOutcome((replace(send, backends=("west-5",)),)))[0].steps == ()


def test_a_plane_is_not_done_while_a_replica_cannot_be_released() -> None:
    world = observe(until(moving(1, 1), about_to(ReleaseReplica)))
    released = plan(world).now
    world = failing(world, *released)
    assert not plan(world).now
    assert whats(plan(world)) == tuple(f"{step_words(step)} to succeed" for step in released)


def test_a_plane_goes_but_for_the_replica_whose_machine_refuses() -> None:
    truth = until(replace(settled(empty("east", 3)), deleting=True), about_to(StopUnit))
    world = observe(truth)
    assert now(failing(world, first(world))) == now(world)[1:]
