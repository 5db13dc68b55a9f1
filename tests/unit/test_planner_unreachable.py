"""One observer's view is not everybody's: what only we do not see is waited for and named, and never taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import about_to, is_done, joined_by, step_words, until, whats, with_fact, with_member
from model.worlds import empty, moving, settled
from support.golden import Golden

from quarterdeck.model.components import NAMED
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.members import RemoveMember, Swap
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import StopBalancer
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.parts import all_of, edge

UNKNOWN = tuple((component, UnitState.UNKNOWN) for component in NAMED)


def unseen(world: World, name: str, health: Health = Health.UNREACHABLE) -> World:
    """Nothing of a replica's machine answers us."""
    world = with_member(world, name, lambda member: replace(member, health=health, lag=None))
    return with_fact(
        world,
        name,
        lambda fact: replace(fact, machine=MachineState.UNREACHABLE, units=UNKNOWN, ready=None, has_data=None),
    )


def removed(now: Plan) -> set[str]:
    changes = [change for step in now.now for change in (step.changes if isinstance(step, Swap) else (step,))]
    return {change.replica for change in changes if isinstance(change, RemoveMember)}


def test_a_member_that_only_we_do_not_see_is_not_removed_but_named(golden: Golden) -> None:
    """Clients may use its apiserver all the time."""
    world = observe(until(moving(3, 3), lambda _, now: any(isinstance(step, RemoveMember) for step in now.now)))
    assert removed(plan(world)) == {"east-2"}
    for health in (Health.SUSPECT, Health.UNREACHABLE):
        blind = plan(unseen(unseen(world, "east-2", health), "east-3", health))
        assert not removed(blind)
        golden(whats(blind))
    down = unseen(world, "east-2", Health.DOWN)
    noted = replace(down, memory=remember(down.memory, plan(down).now[0], down.now))
    assert removed(plan(noted)) == {"east-2"}


def test_a_site_of_which_we_see_nothing_is_not_given_up() -> None:
    """The plane neither retreats from its target nor removes what it has there."""
    truth = until(moving(3, 3), lambda now, _: len(now.voters) == 5)
    blind = replace(truth, mute=frozenset({all_of("west")}))
    for _ in range(6):
        now = plan(observe(blind))
        assert not any(isinstance(step, RemoveMember | StopBalancer | ReleaseReplica) for step in now.now)
        assert not now.done
        blind = tick(blind)
    assert len(blind.voters) == 5


def test_the_member_that_goes_is_not_counted_with_the_rest() -> None:
    """Of the four that would remain, two are well: one is not seen, and one lags."""
    world = observe(until(moving(3, 3), lambda _, now: any(isinstance(step, RemoveMember) for step in now.now)))
    assert removed(plan(world)) == {"east-2"}
    rest = unseen(world, "east-3")
    assert removed(plan(rest)) == {"east-2"}
    assert not removed(plan(with_member(rest, "west-6", lambda member: replace(member, lag=50_000))))


def with_stray(world: World, *, learner: bool) -> World:
    stray = MemberFact(id=99, replica="", learner=learner, health=Health.SUSPECT)
    return joined_by(world, stray)


def test_a_learner_that_no_record_names_is_removed() -> None:
    """A driver that was frozen just before it added one, and replaced, may do so when all is long over."""
    world = with_stray(observe(settled(empty("east", 3))), learner=True)
    assert [(step.member, step_words(step)) for step in plan(world).now if isinstance(step, RemoveMember)] == [
        (99, "RemoveMember")
    ]
    assert not any(
        "belongs to no replica" in each
        for each in whats(plan(with_stray(observe(settled(empty("east", 3))), learner=True)))
    )


def test_a_voter_that_no_record_names_is_left_to_people(golden: Golden) -> None:
    seen = plan(with_stray(observe(settled(empty("east", 3))), learner=False))
    assert not seen.now
    golden([*map(str, seen.waiting)])


@pytest.mark.parametrize("site", [edge("east"), all_of("east")])
def test_a_load_balancer_that_does_not_answer_is_left_over_and_named(site: str, golden: Golden) -> None:
    """And looked for again, so that it goes when it answers."""
    truth = until(moving(3, 3), about_to(StopBalancer))
    blind = until(replace(truth, mute=frozenset({site})), is_done)
    now = plan(observe(blind))
    golden(now.leftovers)
    end = until(replace(blind, mute=frozenset()), is_done)
    assert ({record.site for record in end.memory.replicas}, set(dict(end.balancers))) == ({"west"}, {"west"})


def test_a_step_goes_to_the_member_whose_id_it_names() -> None:
    truth = until(moving(3, 3), lambda _, now: any(isinstance(step, RemoveMember) for step in now.now))
    step = next(step for step in plan(observe(truth)).now if isinstance(step, RemoveMember))
    wrong = replace(step, member=truth.members["west-4"].id)
    assert set(truth.members) - set(apply(truth, wrong).members) == {"west-4"}
