"""All certificates have expired, so that no members talk with each other: with the user's consent their replicas are
restarted for new ones without a quorum, whatever comes between; without it, nothing is stopped.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.tiers import smoke

from model.explorer import Explorer
from model.faulty_truth import FaultyTruth
from model.invariants import Broken
from model.kinds import Kind
from model.walk import Planner, State, Walker
from model.worlds import FORMER, changing
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe, tick
from quarterdeck.planner.simulated.dry_run import dry_run

pytestmark = pytest.mark.timeout(600)

#: What may come between.
BETWEEN = frozenset(
    {
        Kind.TAKEOVER,
        Kind.SOME_STEPS,
        Kind.REPLY_LOST,
        Kind.LATE,
        Kind.SLOW,
        Kind.CRASH,
        Kind.UNSEEN_SUPERVISOR,
        Kind.MACHINE_DIES,
    }
)


def expired(replicas: int, *, left: int = 0, offline: bool = True, apart: bool = False) -> FaultyTruth:
    """A plane whose certificates have expired, but those of ``left`` replicas, and of which new ones are asked for."""
    members = {Component.ETCD, Component.EVENTS_ETCD} if apart else {Component.ETCD}
    restart = ReplicaChange(restart=frozenset(members))
    events = frozenset({FORMER, "two"}) if apart else frozenset[str]()
    truth = changing(replicas, replicas, restart, apart=events)
    old = frozenset((each.name, FORMER) for each in truth.memory.replicas[left:])
    return tick(replace(truth, expired=old, settings=replace(truth.settings, offline=offline)))


def searched(truth: FaultyTruth, *, faults: int, planner: Planner = plan) -> Explorer:
    """Everything that can follow. The explorer claims that each way ends with a plane that is as wanted."""
    explorer = Explorer(Walker(planner=planner, kinds=BETWEEN))
    explorer.explore(State(truth, faults=faults, calm=False))
    print(f"{explorer.states:,} states, {explorer.walker.steps:,} steps")
    return explorer


@pytest.mark.parametrize("faults", [*smoke(0), 1])
@pytest.mark.parametrize("replicas", [1, 3])
def test_all_are_restarted_without_a_quorum_whatever_comes_between(replicas: int, faults: int) -> None:
    assert searched(expired(replicas), faults=faults).states > 5


@pytest.mark.parametrize(("replicas", "left"), [(3, 1), (5, 0), (5, 1), (5, 2), (5, 3)])
def test_some_have_certificates_that_are_valid(replicas: int, left: int) -> None:
    assert searched(expired(replicas, left=left), faults=0).states > 5


@pytest.mark.parametrize(("replicas", "left"), [(3, 2), (5, 3), (5, 4)])
def test_beside_a_quorum_nobody_needs_to_consent(replicas: int, left: int) -> None:
    assert searched(expired(replicas, left=left, offline=False), faults=0).states > 5


def test_a_plane_whose_events_are_apart_gets_new_certificates() -> None:
    assert searched(expired(3, apart=True), faults=0).states > 5


def test_nothing_is_stopped_without_consent_and_the_command_is_named() -> None:
    now = plan(replace(observe(expired(3, offline=False)), plane_name="demo"))
    assert not now.now
    (wait,) = now.waiting
    assert "'quarterdeck certs renew demo --offline'" in wait.then


def test_the_forecast_has_every_step() -> None:
    forecast = dry_run(observe(expired(3)))
    assert not forecast.stuck_on
    assert len(forecast.steps) > 20
    assert forecast.steps[-1].margin == 1


def without_consent(world: World) -> Plan:
    return plan(replace(world, settings=replace(world.settings, offline=True)))


def test_a_planner_that_asks_nobody_is_found() -> None:
    with pytest.raises(Broken, match=r"^8: "):
        searched(expired(3, offline=False), faults=0, planner=without_consent)


def of_all(world: World) -> Plan:
    """It takes all certificates for expired."""
    every = frozenset(each.name for each in world.memory.replicas)
    return plan(replace(world, expired=every))


def test_a_planner_that_stops_members_whose_certificates_are_valid_is_found() -> None:
    with pytest.raises(Broken):
        searched(expired(3, left=1), faults=0, planner=of_all)
