"""Programs that are restarted inside a site: who rests, in which order, and what is given up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from model.stories import (
    ROLLING_STEPS,
    led_by,
    planned,
    step_words,
    until,
    whats,
    with_balancers,
    with_fact,
    with_member,
    with_membership,
    with_memory,
    with_unit,
)
from model.worlds import FORMER, NEW, changing
from support.components import CONTROLLERS
from support.golden import Golden

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import NAMED, Component, ReplicaChange, ReplicaPrograms
from quarterdeck.model.membership import Health
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.units import AdoptRevision, RejectRevision, StartUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.revisions import costs_nothing, outdated, wanted_revision
from quarterdeck.planner.rules.replica_programs import control, serve
from quarterdeck.planner.rules.rollout import reject, roll
from quarterdeck.planner.rules.traffic import backends, record
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

ETCD, APISERVER = Component.ETCD, Component.APISERVER
STOPPED, FAILED = UnitState.STOPPED, UnitState.FAILED


@cache
def asked(*restart: Component, replicas: int = 3) -> World:
    """A plane that is well, of which another revision has just been asked for."""
    return observe(changing(replicas, replicas, ReplicaChange(restart=frozenset(restart))))


def does(world: World) -> list[str]:
    return [step_words(step) for step in roll(view(world)).steps]


def rests(world: World) -> str | None:
    rest = view(world).resting
    return rest.words if rest is not None else None


def stopped(world: World, name: str, *components: Component) -> World:
    for component in components:
        world = with_unit(world, name, component, STOPPED)
    if APISERVER in components:
        world = with_fact(world, name, lambda fact: replace(fact, ready=False))
    return world


def drained(world: World, name: str, ago: float = 100.0) -> World:
    """No load balancer sends to a replica."""
    balancer = world.balancer("east")
    without = replace(balancer, backends=balancer.backends - {name}, healthy=balancer.healthy - {name})
    memory = replace(world.memory, draining=((name, world.now - ago),))
    return with_balancers(replace(world, memory=memory), without)


def ending(world: World, name: str, component: Component) -> World:
    """A program of a replica exits repeatedly."""
    world = with_unit(world, name, component, FAILED)
    return with_fact(
        world,
        name,
        lambda fact: replace(
            fact,
            crash_looping=fact.crash_looping | {component},
            ready=fact.ready if component in CONTROLLERS else False,
        ),
    )


# --- what stops, and when -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("restart", "stops"),
    [
        ((ETCD,), set(NAMED) - {Component.EVENTS_ETCD}),
        ((Component.EVENTS_ETCD,), set(NAMED) - {ETCD}),
        ((APISERVER,), {APISERVER, *CONTROLLERS, Component.CLOUD_CONTROLLER_MANAGER}),
        ((Component.SCHEDULER,), {Component.SCHEDULER}),
        ((), set()),
    ],
)
def test_what_depends_on_a_program_stops_with_it(restart: tuple[Component, ...], stops: set[Component]) -> None:
    assert ReplicaPrograms().with_dependents(ReplicaChange(restart=frozenset(restart)).restart) == stops


def test_a_change_that_no_program_is_made_from_is_adopted_as_it_is() -> None:
    (step,) = planned(asked(), *ROLLING_STEPS).steps
    assert isinstance(step, AdoptRevision)
    assert step.revision == NEW


def test_controllers_stop_first_then_the_apiserver_then_etcd_and_then_the_revision_is_adopted(golden: Golden) -> None:
    world = led_by(asked(ETCD), "east-3")
    name = rests(world)
    assert name == "east-1"
    assert does(world) == ["StopUnit kube-scheduler of east-1", "StopUnit kube-controller-manager of east-1"]
    world = stopped(world, name, *CONTROLLERS)
    assert does(world) == []
    golden(whats(roll(view(world))))
    golden(whats(roll(view(drained(world, name, 0.0)))))
    world = drained(world, name)
    assert does(world) == ["StopUnit kube-apiserver of east-1"]
    world = stopped(world, name, APISERVER)
    assert does(world) == ["StopUnit etcd of east-1"]
    assert does(stopped(world, name, ETCD)) == ["AdoptRevision east-1"]


def test_what_has_stopped_for_another_revision_does_not_start_before_it_has_that() -> None:
    world = stopped(asked(ETCD), "east-1", *CONTROLLERS)
    assert planned(world, StartUnit).steps == ()
    world = stopped(drained(world, "east-1"), "east-1", APISERVER)
    assert planned(world, StartUnit).steps == ()
    assert serve(view(world)).steps == ()
    assert rests(stopped(world, "east-1", ETCD)) == "east-1"
    assert planned(stopped(world, "east-1", ETCD), StartUnit).steps == ()


def test_a_program_that_the_change_does_not_stop_starts_meanwhile() -> None:
    world = asked(Component.SCHEDULER)
    name = rests(world)
    assert name is not None
    world = stopped(world, name, *CONTROLLERS)
    assert rests(world) == name
    starts = [step_words(step) for step in control(view(world)).steps]
    assert starts == [f"StartUnit kube-controller-manager of {name}"]


def test_an_apiserver_that_does_not_stop_keeps_its_clients() -> None:
    assert rests(asked(Component.SCHEDULER)) is not None
    assert backends(view(asked(Component.SCHEDULER))).steps == ()
    assert [step_words(step) for step in backends(view(asked(APISERVER))).steps] == ["SetBackends east"]
    assert record(view(replace(asked(APISERVER), stamped=False))).steps == (), "the name leads to the load balancer"


def test_nothing_stops_that_does_not_differ() -> None:
    world = drained(stopped(led_by(asked(APISERVER), "east-3"), "east-1", *CONTROLLERS, APISERVER), "east-1")
    assert does(world) == ["AdoptRevision east-1"]
    scheduler = asked(Component.SCHEDULER)
    name = rests(scheduler)
    assert does(scheduler) == [f"StopUnit kube-scheduler of {name}"]


def test_of_two_members_that_are_restarted_the_one_for_events_stops_first() -> None:
    both = ReplicaChange(restart=frozenset({ETCD, Component.EVENTS_ETCD}))
    world = led_by(observe(changing(3, 3, both, apart=frozenset({FORMER, NEW}))), "east-3")
    name = rests(world)
    assert name is not None
    world = drained(stopped(world, name, *CONTROLLERS, APISERVER), name)
    assert does(world) == ["TransferLeadership east-2"], "it leads the etcd for events"
    world = with_membership(world, Cluster.EVENTS, leader="east-3")
    assert does(world) == [f"StopUnit etcd-events of {name}"]
    assert does(stopped(world, name, Component.EVENTS_ETCD)) == [f"StopUnit etcd of {name}"]


def test_etcd_stops_only_once_another_leads_that_has_the_data() -> None:
    world = drained(stopped(asked(ETCD), "east-1", *CONTROLLERS, APISERVER), "east-1")
    assert does(led_by(world, "east-1")) == ["TransferLeadership east-2"]
    for name in ("east-2", "east-3"):
        world = with_member(world, name, lambda member: replace(member, lag=10**6))
    assert does(led_by(world, "east-1")) == []


def test_a_member_that_ends_by_itself_is_stopped_also_while_nobody_knows_who_is_a_member() -> None:
    world = ending(stopped(asked(ETCD), "east-1", *CONTROLLERS, APISERVER), "east-1", ETCD)
    world = drained(replace(world, membership=None), "east-1")
    assert does(world) == ["StopUnit etcd of east-1"]


def test_where_nobody_else_can_lead_that_is_said(golden: Golden) -> None:
    """A leader that ends by itself, and was one a moment ago."""
    world = ending(stopped(asked(ETCD, replicas=1), "east-1", *CONTROLLERS, APISERVER), "east-1", ETCD)
    world = drained(with_member(world, "east-1", lambda member: replace(member, health=Health.SUSPECT)), "east-1")
    golden(whats(roll(view(led_by(world, "east-1")))))


# --- who rests ------------------------------------------------------------------------------------------------------


def test_the_leader_rests_last() -> None:
    assert rests(led_by(asked(APISERVER), "east-1")) == "east-2"
    assert rests(led_by(asked(APISERVER), "east-3")) == "east-1"


def test_the_one_that_has_begun_goes_on() -> None:
    world = led_by(asked(APISERVER), "east-3")
    assert rests(drained(world, "east-2")) == "east-2"
    assert rests(stopped(world, "east-2", *CONTROLLERS)) == "east-2"


def ill(name: str) -> dict[str, Callable[[World], World]]:
    """Why others cannot do without one more."""
    return {
        "its apiserver is not ready": lambda world: with_fact(world, name, lambda fact: replace(fact, ready=False)),
        "its machine does not answer": lambda world: with_fact(
            world, name, lambda fact: replace(fact, machine=MachineState.UNREACHABLE)
        ),
        "its member is not well": lambda world: with_member(
            world, name, lambda member: replace(member, health=Health.SUSPECT)
        ),
        "its member lags": lambda world: with_member(world, name, lambda member: replace(member, lag=10**6)),
        "it only listens": lambda world: with_member(world, name, lambda member: replace(member, learner=True)),
        "its scheduler does not run": lambda world: with_unit(world, name, Component.SCHEDULER, FAILED),
        "the load balancer does not send to it": lambda world: with_balancers(
            world, replace(world.balancer("east"), backends=world.balancer("east").backends - {name})
        ),
        "the load balancer reaches nobody": lambda world: with_balancers(
            world, replace(world.balancer("east"), healthy=frozenset())
        ),
        "nobody knows who is a member": lambda world: replace(world, membership=None),
        "members disagree about the data": lambda world: with_membership(world, alarms=("memberID:1 alarm:CORRUPT ",)),
        "the name leads elsewhere": lambda world: replace(world, record="west"),
    }


@pytest.mark.parametrize("why", ill("east-3"))
def test_nobody_rests_while_the_others_cannot_do_without(why: str, golden: Golden) -> None:
    world = led_by(asked(APISERVER), "east-2")
    assert rests(world) == "east-1"
    worse = ill("east-3")[why](world)
    assert rests(worse) is None
    (waits,) = whats(roll(view(worse)))
    assert roll(view(worse)).steps == ()
    golden(waits)


def test_a_quota_may_be_raised_while_there_is_no_room() -> None:
    world = asked(ETCD)
    full = with_membership(world, alarms=("memberID:1 alarm:NOSPACE ",))
    assert rests(full) is not None


def test_one_whose_program_ends_by_itself_waits_for_nobody() -> None:
    world = asked(APISERVER)
    for name in ("east-1", "east-2", "east-3"):
        world = ending(world, name, APISERVER)
    world = with_balancers(world, replace(world.balancer("east"), healthy=frozenset()))
    assert rests(world) == "east-1"
    assert does(stopped(world, "east-1", *CONTROLLERS)) == ["StopUnit kube-apiserver of east-1"], "it need not drain"


def test_in_an_outage_everything_is_of_use_that_may_go_on_after_it() -> None:
    world = asked(APISERVER)
    for name in ("east-1", "east-2", "east-3"):
        world = ending(with_member(world, name, lambda member: replace(member, health=Health.DOWN)), name, APISERVER)
    assert not costs_nothing(world, world.memory.replica("east-1"), (APISERVER,))


def test_the_only_replica_is_exchanged_where_its_apiserver_would_have_to_stop() -> None:
    assert outdated(asked(APISERVER, replicas=1), NEW) == {"east-1"}
    assert outdated(asked(Component.SCHEDULER, replicas=1), NEW) == frozenset()
    ends = ending(asked(APISERVER, replicas=1), "east-1", APISERVER)
    ends = with_balancers(ends, replace(ends.balancer("east"), healthy=frozenset()))
    ends = stopped(ends, "east-1", *CONTROLLERS)
    assert outdated(ends, NEW) == frozenset(), "it serves nobody, and can be restarted"


# --- what is given up -----------------------------------------------------------------------------------------------


@cache
def first(component: Component) -> World:
    """The first replica runs the new revision, and its program exits repeatedly."""
    start = changing(3, 3, ReplicaChange(restart=frozenset({component})), broken=component)
    return observe(until(start, lambda _, now: any(isinstance(step, RejectRevision) for step in now.now)))


@pytest.mark.parametrize("component", [ETCD, APISERVER, Component.CONTROLLER_MANAGER])
def test_a_revision_is_given_up_when_its_first_program_does_not_run(component: Component, golden: Golden) -> None:
    (step,) = planned(first(component), RejectRevision).steps
    assert isinstance(step, RejectRevision)
    assert (step.revision, step.component, step.runs, step.complaint) == (NEW, component, False, "")
    golden(step.why)


def test_it_is_not_given_up_where_the_user_says_so() -> None:
    world = first(APISERVER)
    assert planned(replace(world, settings=replace(world.settings, goes_back=False)), RejectRevision).steps == ()


def test_a_program_that_the_change_does_not_touch_says_nothing_of_it() -> None:
    world = first(APISERVER)
    other = ((FORMER, NEW, ReplicaChange(restart=frozenset({Component.SCHEDULER}))),)
    assert planned(replace(world, changes=other), RejectRevision).steps == ()


def test_where_replicas_are_exchanged_any_program_of_the_new_one_counts() -> None:
    world = replace(first(APISERVER), changes=((FORMER, NEW, ReplicaChange(exchange=True)),))
    assert len(planned(world, RejectRevision).steps) == 1


def test_a_member_starts_before_a_revision_is_given_up() -> None:
    world = first(APISERVER)
    former = next(record.name for record in world.memory.replicas if record.revision == FORMER)
    assert [step_words(step) for step in planned(with_unit(world, former, ETCD, STOPPED)).steps] == [
        f"StartUnit etcd of {former}"
    ]


def test_a_program_that_reloads_its_files_counts_as_one_that_is_restarted() -> None:
    world = replace(first(APISERVER), changes=((FORMER, NEW, ReplicaChange(reload=frozenset({APISERVER}))),))
    assert len(planned(world, RejectRevision).steps) == 1


def test_a_program_that_ended_once_says_nothing() -> None:
    world = first(APISERVER)
    for each in world.replicas:
        world = with_fact(world, each.name, lambda fact: replace(fact, crash_looping=frozenset()))
    assert planned(world, RejectRevision).steps == ()


def test_an_apiserver_without_its_member_says_nothing() -> None:
    world = first(APISERVER)
    name = next(record.name for record in world.memory.replicas if record.revision == NEW)
    down = with_member(world, name, lambda member: replace(member, health=Health.DOWN))
    assert planned(down, RejectRevision).steps == ()


@pytest.mark.parametrize("learner", [False, True])
def test_an_etcd_that_works_now_says_nothing_although_it_exited_repeatedly(learner: bool) -> None:
    world = first(ETCD)
    name = next(record.name for record in world.memory.replicas if record.revision == NEW)
    well = with_member(world, name, lambda member: replace(member, health=Health.HEALTHY, learner=learner))
    assert reject(view(well)).steps == ()


def test_where_nobody_runs_another_revision_there_is_nothing_to_go_back_to() -> None:
    world = first(APISERVER)
    all_new = tuple(replace(record, revision=NEW) for record in world.memory.replicas)
    assert planned(with_memory(world, replicas=all_new), RejectRevision).steps == ()


def test_across_sites_nothing_is_given_up() -> None:
    world = first(APISERVER)
    away = tuple(replace(each, slot=replace(each.slot, site="west")) for each in world.memory.replicas[:1])
    memory = replace(world.memory, replicas=(*away, *world.memory.replicas[1:]))
    assert reject(view(replace(world, memory=memory))).steps == ()


def test_after_it_was_given_up_the_one_that_most_replicas_have_is_wanted() -> None:
    world = first(APISERVER)
    (step,) = reject(view(world)).steps
    assert wanted_revision(world) == NEW
    after = replace(world, memory=remember(world.memory, step, world.now))
    assert wanted_revision(after) == FORMER
    assert reject(view(after)).steps == (), "once"
    former = next(record.name for record in after.memory.replicas if record.revision == FORMER)
    assert reject(view(ending(after, former, APISERVER))).steps == (), "nor is the one before given up for it"
    assert wanted_revision(replace(after, revision="three")) == "three", "something else is tried"
    stays = replace(after, settings=replace(after.settings, goes_back=False))
    assert wanted_revision(stays) == NEW
