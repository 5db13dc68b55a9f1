"""Which revision is wanted, who must be replaced for it, and which programs may stop without harm to any client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
from model.observations import placed, seen, voters_at
from model.stories import serving, with_balancers, with_fact, with_member, with_membership, with_memory, with_unit
from model.worlds import FORMER, NEW, changing, wanted

from quarterdeck.model.clusters import Cluster, Full, MemberMemory
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, Space
from quarterdeck.model.memory import Condemned, Rejection, Replica
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.revisions import (
    as_it_is,
    costs_nothing,
    ends_by_itself,
    never_ready,
    outdated,
    wanted_revision,
)
from quarterdeck.planner.simulated import observe

ETCD, EVENTS, APISERVER, SCHEDULER = Component.ETCD, Component.EVENTS_ETCD, Component.APISERVER, Component.SCHEDULER
RUNNING, STOPPED, UNKNOWN = UnitState.RUNNING, UnitState.STOPPED, UnitState.UNKNOWN
Change = Callable[[World], World]


@cache
def plane(replicas: int = 3, restart: Component = APISERVER) -> World:
    """A plane that is well, of which another revision was just asked for."""
    return observe(changing(replicas, replicas, ReplicaChange(restart=frozenset({restart}))))


@cache
def apart() -> World:
    """The same with an etcd of events."""
    change = ReplicaChange(restart=frozenset({APISERVER}))
    return observe(changing(3, 3, change, apart=frozenset({FORMER, NEW})))


def one(world: World) -> Replica:
    return world.memory.replicas[0]


def record(world: World, **facts: Any) -> World:
    return replace(world, memory=world.memory.with_replica("east-1", lambda each: replace(each, **facts)))


def fact(world: World, **facts: Any) -> World:
    return with_fact(world, "east-1", lambda each: replace(each, **facts))


def member(world: World, **facts: Any) -> World:
    return with_member(world, "east-1", lambda each: replace(each, **facts))


def events_member(world: World, **facts: Any) -> World:
    return with_member(world, "east-1", lambda each: replace(each, **facts), Cluster.EVENTS)


def unit(world: World, component: Component, state: UnitState) -> World:
    return with_unit(world, "east-1", component, state)


def of(*revisions: str, world: World | None = None) -> World:
    """A plane whose replicas have these revisions."""
    world = world or plane(len(revisions))
    pairs = zip(world.memory.replicas, revisions, strict=True)
    return with_memory(world, replicas=tuple(replace(each, revision=revision) for each, revision in pairs))


# --- the wanted revision --------------------------------------------------------------------------------------------


def test_after_a_rejection_most_of_the_others_count_and_of_as_many_the_first_name() -> None:
    rejected = Rejection(revision=NEW, why="it ends")
    for revisions, goes_back_to in (
        ((FORMER, NEW, NEW), FORMER),
        (("a", "b", "b"), "b"),
        (("b", "a", NEW), "a"),
        ((NEW, NEW, NEW), NEW),
    ):
        world = with_memory(of(*revisions), rejected=rejected)
        assert wanted_revision(world) == goes_back_to
        assert wanted_revision(with_memory(world, rejected=None)) == NEW
        assert wanted_revision(with_memory(world, proven=False)) == NEW, "none has ever run"
        assert wanted_revision(replace(world, settings=replace(world.settings, goes_back=False))) == NEW
        assert wanted_revision(with_memory(world, rejected=replace(rejected, revision="three"))) == NEW


def never_beside(world: World, *pairs: tuple[str, str], via: tuple[str, ...] = (), together: bool = False) -> World:
    """These revisions have controllers that must not run at once."""
    never = frozenset(map(frozenset, pairs))
    return replace(world, apart=never, via=via, settings=replace(world.settings, together=together))


def test_the_nearest_step_to_the_goal_is_taken_whose_controllers_may_run_beside_all_others() -> None:
    way = ("first", "second")
    world = of("old", FORMER, FORMER)
    assert wanted_revision(never_beside(world, via=way)) == NEW
    assert wanted_revision(never_beside(world, (FORMER, NEW), via=way)) == "second"
    assert wanted_revision(never_beside(world, (FORMER, NEW), ("old", "second"), via=way)) == "first"
    assert wanted_revision(never_beside(world, (FORMER, NEW), ("old", "second"), ("old", "first"), via=way)) == NEW


def test_a_replica_that_acts_no_longer_holds_nobody_up() -> None:
    world = never_beside(of("old", FORMER, FORMER), ("old", NEW), via=("first",))
    assert wanted_revision(world) == "first"
    assert world.membership is not None
    rest = tuple(each for each in world.membership.members if each.replica != "east-1")
    assert wanted_revision(with_membership(world, members=rest)) == NEW


CONTROLLERS_STOP = ReplicaChange(restart=frozenset({Component.CONTROLLER_MANAGER}))


@pytest.mark.parametrize(
    ("change", "at_once"),
    [
        (CONTROLLERS_STOP, True),
        (replace(CONTROLLERS_STOP, exchange=True), False),
        (replace(CONTROLLERS_STOP, reload=frozenset({APISERVER})), False),
        (ReplicaChange(restart=frozenset({APISERVER})), False),
    ],
)
def test_all_controllers_stop_at_once_where_that_is_allowed_and_nothing_else_changes(
    change: ReplicaChange, at_once: bool
) -> None:
    world = of("old", FORMER, FORMER)
    for other in (CONTROLLERS_STOP, change):
        changes = (("old", NEW, other), (FORMER, NEW, change))
        asked = never_beside(replace(world, changes=changes), ("old", NEW), (FORMER, NEW), via=("first",))
        assert wanted_revision(asked) == "first"
        together = replace(asked, settings=replace(asked.settings, together=True))
        assert wanted_revision(together) == (NEW if at_once else "first")


# --- who must be replaced -------------------------------------------------------------------------------------------


def _leaving(world: World) -> World:
    return with_memory(world, condemned=(Condemned(replica="east-1", why="", since=0.0, program=SCHEDULER),))


def _of_class(was: str, wants: str, world: World) -> World:
    return replace(record(world, storage_class=was), storage_class=wants)


def _events_of_class(was: str, wants: str, world: World) -> World:
    return replace(record(world, events=MemberMemory(epoch=1, storage_class=was)), events_class=wants)


REPLACED: dict[str, Change] = {
    "a person wants it": lambda world: replace(world, condemned=("east-1",)),
    "one of its programs does not recover": _leaving,
    "its data differs": partial(record, differs=True),
    "its data of events differs": partial(record, events=MemberMemory(epoch=1, differs=True)),
    "its volume is of another class": partial(_of_class, "slow", "fast"),
    "its volume of events is of another class": partial(_events_of_class, "slow", "fast"),
}
STAYS: dict[str, Change] = {
    "all is well": lambda world: world,
    "its events are as they should be": partial(record, events=MemberMemory(epoch=1)),
    "its volume is of the class": partial(_of_class, "fast", "fast"),
    "its class is unknown": partial(_of_class, "", "fast"),
    "no class is asked for": partial(_of_class, "slow", ""),
    "its volume of events is of the class": partial(_events_of_class, "fast", "fast"),
}


@pytest.mark.parametrize("why", REPLACED)
def test_it_is_replaced_when(why: str) -> None:
    assert outdated(REPLACED[why](serving()), "") == {"east-1"}
    assert outdated(replace(REPLACED[why](serving()), cordoned=("east-1",)), "") == frozenset()


@pytest.mark.parametrize("why", STAYS)
def test_it_stays_when(why: str) -> None:
    assert outdated(STAYS[why](serving()), "") == frozenset()


def test_the_only_replica_is_replaced_for_what_was_changed_by_hand_where_its_apiserver_would_stop() -> None:
    by_hand = fact(plane(1), altered=frozenset({APISERVER}))
    assert outdated(by_hand, FORMER) == {"east-1"}
    assert outdated(fact(plane(1), altered=frozenset({SCHEDULER})), FORMER) == frozenset()
    assert outdated(fact(plane(3), altered=frozenset({APISERVER})), FORMER) == frozenset()
    assert outdated(replace(by_hand, slots=wanted("east", 2)), FORMER) == frozenset()
    assert outdated(useless(by_hand), FORMER) == frozenset(), "no client has any use of it"


def useless(world: World) -> World:
    """Its apiserver exits repeatedly, and its controllers are stopped."""
    for each in world.programs.every:
        world = unit(world, each, STOPPED) if each not in (ETCD, APISERVER) else world
    world = fact(world, crash_looping=frozenset({APISERVER}), ready=False)
    return with_balancers(world, replace(world.balancer("east"), healthy=frozenset()))


def test_the_only_voter_is_restarted_for_a_larger_quota_under_no_other_alarm() -> None:
    world = member(plane(1, ETCD), space=Space(size=95, in_use=90, quota=100))
    world = with_memory(world, full=Full(since=0.0, revision=1, compacted=True, defragmented=("east-1",)))
    assert outdated(world, NEW) == {"east-1"}
    full = with_membership(world, alarms=("memberID:1 alarm:NOSPACE ",))
    assert outdated(full, NEW) == frozenset()
    worse = with_membership(world, alarms=("memberID:1 alarm:NOSPACE ", "memberID:1 alarm:CORRUPT "))
    assert outdated(worse, NEW) == {"east-1"}


RELOADS = ReplicaChange(restart=frozenset({SCHEDULER}), reload=frozenset({APISERVER, ETCD}))
ALL_RESTART = ReplicaChange(restart=frozenset({SCHEDULER, APISERVER, ETCD}))


def fact_of(etcd: UnitState, apiserver: UnitState = RUNNING, stuck: frozenset[str] = frozenset()) -> ReplicaFact:
    return replace(serving().replica("east-1"), units=((ETCD, etcd), (APISERVER, apiserver)), stuck=stuck)


def test_programs_that_run_reload_their_files_and_others_are_restarted_with_them() -> None:
    for state in (RUNNING, UNKNOWN):
        assert as_it_is(RELOADS, fact_of(state), NEW) == RELOADS
    for state in (STOPPED, UnitState.FAILED, UnitState.STOPPING):
        assert as_it_is(RELOADS, fact_of(state), NEW) == as_it_is(RELOADS, fact_of(RUNNING, state), NEW) == ALL_RESTART
    assert as_it_is(RELOADS, fact_of(RUNNING, stuck=frozenset({NEW})), NEW) == ALL_RESTART
    assert as_it_is(RELOADS, fact_of(RUNNING, stuck=frozenset({FORMER})), NEW) == RELOADS
    exchanged = replace(RELOADS, exchange=True)
    assert as_it_is(exchanged, fact_of(STOPPED), NEW) == replace(ALL_RESTART, exchange=True)


# --- what may stop --------------------------------------------------------------------------------------------------


def costs(world: World, *stops: Component) -> bool:
    return not costs_nothing(world, one(world), stops)


def unready(world: World) -> World:
    """Its apiserver runs, and reports that it is not ready; no load balancer sends to it."""
    balancer = world.balancer("east")
    world = with_balancers(world, replace(balancer, healthy=balancer.healthy - {"east-1"}))
    return fact(world, ready=False)


def test_what_serves_or_may_serve_costs_something() -> None:
    world = plane()
    assert costs(world, APISERVER)
    assert costs(fact(unready(world), ready=None), APISERVER)
    new = with_memory(fact(world, ready=False), proven=False)
    assert costs(new, APISERVER), "a load balancer has found it healthy"
    second = replace(world.balancer("east"), site="west", healthy=frozenset())
    assert costs(with_balancers(new, second), APISERVER)
    ends = fact(fact(unready(world), ready=True), crash_looping=frozenset({SCHEDULER}))
    assert costs(ends, APISERVER, SCHEDULER), "its apiserver is ready"
    assert costs(world, SCHEDULER)
    assert costs(world, ETCD)


def test_what_does_not_run_costs_nothing_and_an_additional_program_is_no_stop() -> None:
    assert not costs(plane())
    assert not costs(unit(plane(), SCHEDULER, STOPPED), SCHEDULER)
    assert costs(plane(), Component.CLOUD_CONTROLLER_MANAGER)


def test_one_that_is_never_ready_may_stop_where_its_revision_is_not_one_that_ever_ran() -> None:
    world = unready(plane())
    assert costs(world, APISERVER), "it may just be starting"
    assert not costs(with_memory(world, proven=False), APISERVER)
    for revision, useless in ((FORMER, True), (NEW, False)):
        assert costs(with_memory(world, rejected=Rejection(revision=revision, why="")), APISERVER) != useless


def test_one_that_exits_repeatedly_may_stop_where_what_it_needs_is_well() -> None:
    world = fact(unready(plane()), crash_looping=frozenset({APISERVER}))
    assert not costs(world, APISERVER)
    assert costs(member(world, health=Health.DOWN), APISERVER)
    ends = fact(plane(), crash_looping=frozenset({SCHEDULER}))
    assert not costs(ends, SCHEDULER)
    assert costs(fact(ends, ready=None), SCHEDULER)
    assert costs(fact(ends, ready=False), SCHEDULER), "it lacks its apiserver"


def test_a_member_that_exits_repeatedly_may_stop_but_not_one_that_is_well_or_that_its_machine_refuses() -> None:
    ends = member(fact(plane(), crash_looping=frozenset({ETCD})), health=Health.DOWN)
    assert not costs(ends, ETCD)
    assert costs(member(ends, health=Health.HEALTHY), ETCD)
    assert costs(fact(ends, refused="its data is gone"), ETCD)


def test_a_new_member_that_answers_nobody_may_stop_where_its_machine_refuses_it() -> None:
    """Otherwise others may still come to it, as long as anybody answers."""
    new = with_memory(member(plane(), health=Health.DOWN), proven=False)
    assert costs(new, ETCD)
    assert costs(fact(new, quiet=((ETCD, "it waits"),)), ETCD)
    assert not costs(fact(new, refused="its data is gone"), ETCD)


def founding(*names: str, created: bool = False) -> World:
    """The founders run their member, report nothing new, and no quorum of them has ever answered."""
    world = with_memory(replace(plane(), membership=None), created=created, proven=False, bootstrap=names)
    for each in world.memory.replicas:
        world = with_fact(world, each.name, lambda fact: replace(fact, quiet=((ETCD, "it waits"),), ready=None))
    return world


ALL = ("east-1", "east-2", "east-3")


def test_founders_that_do_not_find_one_another_may_stop() -> None:
    assert not costs(founding(*ALL), ETCD)
    assert costs(founding("east-2", "east-3"), ETCD)
    assert costs(founding(*ALL, created=True), ETCD)
    assert costs(with_unit(founding(*ALL), "east-2", ETCD, STOPPED), ETCD)
    assert costs(fact(founding(*ALL), quiet=()), ETCD), "it may still find them"
    assert costs(fact(founding(*ALL), quiet=((APISERVER, ""),)), ETCD)
    assert costs(replace(founding(*ALL), membership=plane().membership), ETCD)


# --- what is never ready --------------------------------------------------------------------------------------------


def never(world: World) -> tuple[Component, ...]:
    return never_ready(world, one(world))


def test_a_member_is_never_ready_when_it_answers_nobody_while_all_others_are_well() -> None:
    assert never(plane()) == ()
    down = member(plane(), health=Health.DOWN)
    assert never(down) == (ETCD,)
    assert never(with_member(down, "east-2", lambda each: replace(each, health=Health.SUSPECT))) == ()
    assert never(member(plane(), health=Health.UNREACHABLE)) == ()
    assert never(unit(down, ETCD, STOPPED)) == ()


def test_a_learner_is_never_ready_when_it_does_not_catch_up_and_a_voter_that_lags_is() -> None:
    behind = member(plane(), learner=True, lagging=True)
    assert never(behind) == (ETCD,)
    assert never(member(plane(), learner=True, lagging=False)) == ()
    assert never(member(plane(), lagging=True)) == ()


def test_one_that_is_no_member_yet_says_nothing() -> None:
    world = seen(placed("east-1"), *voters_at("east", 2, first=2), to="east", count=3)
    assert never(with_unit(world, "east-1", ETCD, RUNNING)) == ()


def test_an_apiserver_is_never_ready_on_voters_of_all_its_clusters_that_are_well() -> None:
    assert never(unready(plane())) == (APISERVER,)
    assert never(fact(unready(plane()), ready=None)) == ()
    assert never(unit(unready(plane()), APISERVER, STOPPED)) == ()
    assert never(member(unready(plane()), health=Health.SUSPECT)) == ()
    assert never(member(unready(plane()), learner=True)) == ()
    assert never(unready(apart())) == (APISERVER,)
    assert never(events_member(unready(apart()), health=Health.SUSPECT)) == ()
    assert never(events_member(unready(apart()), learner=True)) == ()
    assert never(member(unready(apart()), health=Health.SUSPECT)) == ()


def test_an_apiserver_ends_by_itself_where_the_members_of_all_its_clusters_are_well() -> None:
    def ends(world: World) -> bool:
        return ends_by_itself(world, one(world), APISERVER)

    world = fact(unready(apart()), crash_looping=frozenset({APISERVER}))
    assert ends(world)
    assert not ends(events_member(world, health=Health.SUSPECT))
    assert not ends(member(world, health=Health.SUSPECT))
    assert not ends(fact(world, crash_looping=frozenset()))
    assert not ends(fact(world, ready=None))
    assert ends(member(world, learner=True)), "a learner is a member that is well"


def test_a_controller_is_never_ready_where_its_apiserver_is() -> None:
    silent = fact(plane(), silent=frozenset({SCHEDULER, APISERVER}))
    assert never(silent) == (SCHEDULER,)
    assert never(fact(silent, ready=None)) == ()
    assert never(fact(unready(silent), silent=frozenset({SCHEDULER}))) == (APISERVER,)
    assert never(unit(silent, SCHEDULER, STOPPED)) == ()
