"""Replicas whose certificates have expired: who stops for new ones, and when nobody does."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import step_words, with_member
from model.worlds import FORMER, changing
from support.golden import Golden

from quarterdeck.engine.notices.events import warnings
from quarterdeck.model.components import NAMED, Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.revisions import may_stop, restarts_expired
from quarterdeck.planner.rules.rollout import roll
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

EVERY = frozenset(NAMED)


@cache
def asked(replicas: int = 3) -> World:
    """A plane that is well, of which new certificates have just been asked for."""
    truth = changing(replicas, replicas, ReplicaChange(restart=frozenset({Component.ETCD})))
    return replace(observe(truth), plane_name="demo")


@cache
def expired(*, offline: bool) -> World:
    """All certificates have expired, and no member answers."""
    truth = changing(3, 3, ReplicaChange(restart=frozenset({Component.ETCD})))
    old = frozenset((each.name, FORMER) for each in truth.memory.replicas)
    settings = replace(truth.settings, offline=offline)
    return replace(observe(replace(truth, expired=old, settings=settings)), plane_name="demo")


def down(member: MemberFact) -> MemberFact:
    return replace(member, health=Health.DOWN)


def stops(world: World, name: str) -> bool:
    return restarts_expired(world, world.memory.replica(name))


def test_nothing_is_done_without_consent_and_people_are_told_what_to_do(golden: Golden) -> None:
    world = expired(offline=False)
    now = plan(world)
    assert not now.now
    golden([str(each) for each in now.waiting])
    golden([each for each in warnings(world) if "certificates" in each])


def test_with_consent_one_replica_after_the_other_stops(golden: Golden) -> None:
    world = expired(offline=True)
    steps = roll(view(world)).steps
    assert {step_words(each) for each in steps} == {
        "StopUnit kube-controller-manager of east-1",
        "StopUnit kube-scheduler of east-1",
    }
    golden(steps[0].why)
    golden([each for each in warnings(world) if "certificates" in each])


def test_who_has_valid_certificates_never_stops_for_them() -> None:
    world = replace(expired(offline=True), expired=frozenset({"east-2"}))
    assert [stops(world, each.name) for each in world.memory.replicas] == [False, True, False]
    assert may_stop(world, world.memory.replica("east-2"), EVERY)


@pytest.mark.parametrize(
    ("health", "expected"), [(Health.HEALTHY, False), (Health.SUSPECT, False), (Health.DOWN, True)]
)
def test_beside_a_quorum_a_member_stops_that_nobody_hears_of(health: Health, *, expected: bool) -> None:
    world = with_member(asked(), "east-2", lambda each: replace(each, health=health))
    assert stops(replace(world, expired=frozenset({"east-2"})), "east-2") is expected


def test_the_quorum_that_answers_is_kept() -> None:
    world = with_member(replace(asked(5), expired=frozenset({"east-4"})), "east-4", down)
    assert stops(world, "east-4")
    for name in ("east-3", "east-5"):
        world = with_member(world, name, down)
    assert not stops(world, "east-4"), "two of five are seen healthy"


def test_a_quorum_that_answers_renews_in_the_ordinary_way(golden: Golden) -> None:
    world = replace(with_member(asked(), "east-2", down), expired=frozenset({"east-2"}))
    golden([each for each in warnings(world) if "certificates" in each])
