"""One observer's view is not everybody's: what only we do not see is waited for and named, and never taken away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.faults import BEHIND
from model.stories import about_to, doing, is_done, joined_by, told, until, whats, with_fact, with_member
from model.worlds import empty, moving, settled
from support.golden import Golden

from quarterdeck.model.components import NAMED
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.members import AddLearner, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.steps.placing import ReleaseReplica
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import SetBackends, SetRecord, StopBalancer
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.things import all_of, edge
from quarterdeck.planner.simulated.truth import Truth

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


def lagging(truth: Truth, name: str) -> Truth:
    member = truth.members[name]
    return truth.with_replica(name, replace(truth.replica(name), member=replace(member, behind=BEHIND)))


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


def test_an_unwanted_member_is_dead_only_in_the_clusters_own_eyes(golden: Golden) -> None:
    world = observe(until(moving(3, 3), about_to(AddLearner)))
    assert "east-3" in removed(plan(unseen(world, "east-3", Health.DOWN)))
    assert not removed(plan(unseen(world, "east-3")))
    golden(whats(plan(unseen(world, "east-3"))))


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


def test_a_voter_that_we_do_not_see_makes_no_swap() -> None:
    """Without it no site seems to hold a quorum, as amid a swap that was broken off; but in truth one does."""
    truth = until(moving(3, 3), lambda now, _: now.home == "west")
    blind = plan(unseen(observe(truth), "west-6"))
    assert not any(isinstance(step, Swap) for step in blind.now)
    assert any(
        "member west-6 to answer, or to be down in the cluster's own eyes: machine" in each for each in whats(blind)
    )


def test_leadership_goes_to_a_voter_that_has_the_data(golden: Golden) -> None:
    """One that lags could not take it, and until the leader gives up it drops all writes."""
    truth = until(moving(3, 3), about_to(TransferLeadership))
    assert "TransferLeadership west-4" in doing(truth)
    assert "TransferLeadership west-5" in doing(lagging(truth, "west-4"))
    neither = plan(observe(lagging(lagging(truth, "west-4"), "west-5")))
    assert not any(isinstance(step, TransferLeadership) for step in neither.now)
    golden(whats(neither))


def test_no_quorum_is_to_hang_on_a_voter_that_lags(golden: Golden) -> None:
    truth = until(moving(3, 3), about_to(Swap))
    late = plan(observe(lagging(truth, "west-5")))
    assert not any(isinstance(step, Swap) for step in late.now)
    golden(whats(late))


def test_a_dead_voter_stays_while_the_rest_lags() -> None:
    world = unseen(observe(until(moving(3, 3), about_to(AddLearner))), "east-3", Health.DOWN)
    assert removed(plan(world)) == {"east-3"}
    late = with_member(world, "east-2", lambda member: replace(member, lag=world.settings.lag_bound + 1))
    assert not removed(plan(late))


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
    assert [(step.member, told(step)) for step in plan(world).now if isinstance(step, RemoveMember)] == [
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


def test_an_address_that_leads_nowhere_comes_before_whatever_can_wait() -> None:
    """Before members join, too: each of those steps is quick, but together they are seconds without service."""
    truth = until(moving(3, 3), about_to(AddLearner))
    dark = replace(truth, balancers=(("east", frozenset({"east-9"})),), checked=(("east", frozenset()),))
    assert doing(dark) == ["SetBackends east"]
    unready = with_fact(observe(truth), "east-1", lambda fact: replace(fact, ready=False))
    assert not any(isinstance(step, SetBackends) for step in plan(unready).now)


def test_what_an_apiserver_itself_says_counts_before_a_load_balancers_check() -> None:
    """That is a moment old: who it holds for healthy may just have ended."""
    truth = until(moving(3, 3), about_to(AddLearner))
    alone = (("east", frozenset({"east-1"})),)
    world = observe(replace(truth, balancers=alone, checked=alone))
    assert all(told(step).startswith("AddLearner") for step in plan(world).now)
    ended = with_fact(world, "east-1", lambda fact: replace(fact, ready=False))
    assert [told(step) for step in plan(ended).now] == ["SetBackends east"]


def test_what_load_balancers_wait_for_is_said(golden: Golden) -> None:
    settled_one = settled(empty("east", 1))
    dark = replace(settled_one, dead_edges=frozenset({"east"}))
    golden(whats(plan(observe(dark))))
    world = with_fact(observe(replace(settled_one, balancers=(), checked=())), "east-1", starting)
    golden(whats(plan(world)))


def starting(fact: ReplicaFact) -> ReplicaFact:
    return replace(fact, ready=False)


def test_the_name_is_given_only_when_an_apiserver_itself_says_that_it_is_ready() -> None:
    """The load balancer's check is a moment old."""
    world = observe(until(empty("east", 1), about_to(SetRecord)))
    starting = with_fact(world, "east-1", lambda fact: replace(fact, ready=False))
    assert not any(isinstance(step, SetRecord) for step in plan(starting).now)


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
