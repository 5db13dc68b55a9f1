"""A standby: when it joins and leaves, what it is replaced for, how it gets a revision, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import (
    is_done,
    joined_by,
    planned,
    step_words,
    steps_until,
    whats,
    with_fact,
    with_member,
    with_membership,
    with_memory,
    with_unit,
    without_member,
)
from model.worlds import FORMER, NEW, beside, changing, empty, moving, settled, standing, wanted
from support.golden import Golden

from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact, Space
from quarterdeck.model.memory import Condemned, Memory
from quarterdeck.model.steps.healing import Condemn, NoteDown
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe

ETCD, NAME = Component.ETCD, "west-4"
DOWN, SILENT = MachineState.DOWN, MachineState.UNREACHABLE
REMOVED = [f"RemoveMember {NAME}"]
Change = Callable[[World], World]


@cache
def protected() -> FaultyTruth:
    """A plane of three at east with a standby at west."""
    return beside(settled(empty("east", 3)), "west")


@cache
def guarded() -> World:
    return observe(protected())


@cache
def joining() -> World:
    """The same before the standby is placed."""
    return observe(replace(settled(empty("east", 3)), standby=standing("west")))


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def member(world: World, **facts: Any) -> World:
    return with_member(world, NAME, lambda each: replace(each, **facts))


def fact(world: World, **facts: Any) -> World:
    return with_fact(world, NAME, lambda each: replace(each, **facts))


def record(world: World, **facts: Any) -> World:
    return replace(world, memory=world.memory.with_replica(NAME, lambda each: replace(each, **facts)))


def unit(world: World, state: UnitState) -> World:
    return with_unit(world, NAME, ETCD, state)


def machine(world: World, name: str, **facts: Any) -> World:
    return replace(
        world, machines=tuple(replace(each, **facts) if each.name == name else each for each in world.machines)
    )


def silenced(world: World, state: MachineState) -> World:
    """The machine of the standby answers nobody."""
    world = machine(world, "west-a1", state=state)
    units = ((ETCD, UnitState.UNKNOWN),)
    world = fact(world, machine=state, units=units, peer_up=False, ready=None, has_data=None)
    return member(world, health=Health.DOWN, lag=None, space=None, lagging=None)


def unread(world: World) -> World:
    """No quorum answers."""
    return replace(world, membership=None)


# --- it joins -------------------------------------------------------------------------------------------------------


def test_it_joins_step_by_step_as_a_learner_that_runs_etcd_alone() -> None:
    truth = replace(settled(empty("east", 3)), standby=standing("west"))
    done = steps_until(truth, is_done)
    assert [each for each in done if not each.startswith("Note")] == [
        f"PlaceReplica {NAME}",
        f"AddLearner {NAME}",
        f"StartUnit etcd of {NAME}",
    ]


def test_it_gets_a_free_machine_of_its_site_and_the_zone_of_that() -> None:
    world = machine(joining(), "west-a1", cordoned=True)
    (step,) = planned(machine(world, "west-a2", state=DOWN)).steps
    assert isinstance(step, PlaceReplica)
    assert (step.machine, step.slot.site, step.slot.zone, step.standby) == ("west-b1", "west", "b", True)


def test_without_a_machine_it_is_waited_for_where_its_site_answers(golden: Golden) -> None:
    world = joining()
    for each in world.machines:
        world = machine(world, each.name, cordoned=True) if each.site == "west" else world
    (wait,) = plan(world).waiting
    golden(wait.what)
    for each in world.machines:
        world = machine(world, each.name, state=SILENT) if each.site == "west" else world
    assert plan(world).done, "a site that does not answer is not waited for"


def test_it_shares_no_machine_with_a_replica() -> None:
    """One site has it all, for want of another one."""
    world = replace(joining(), standby=standing("east"))
    world = replace(world, machines=tuple(each for each in world.machines if each.name.endswith("1")))
    assert of(world) == []
    assert "a free machine" in whats(plan(world))[0]


def _moving(world: World) -> World:
    return replace(world, slots=wanted("north", 3))


def _growing(world: World) -> World:
    return replace(world, slots=wanted("east", 4))


def _shrinking(world: World) -> World:
    return replace(world, slots=wanted("east", 2))


def _ill(world: World) -> World:
    return with_member(world, "east-2", lambda each: replace(each, health=Health.SUSPECT))


KINDS = ("PlaceReplica", "AddLearner")


@pytest.mark.parametrize(
    ("truth", "last"),
    [
        (moving(3, 3), "RemoveMember"),
        (replace(settled(empty("east", 1)), slots=wanted("east", 3)), "Promote"),
        (replace(settled(empty("east", 3)), slots=wanted("east", 1)), "RemoveMember"),
        (changing(3, 3, ReplicaChange(exchange=True)), "RemoveMember"),
    ],
    ids=["a move", "growth", "fewer replicas", "a replacement"],
)
def test_it_joins_after_the_last_member_has_come_or_gone(truth: FaultyTruth, last: str) -> None:
    done = steps_until(replace(truth, standby=standing("north")), is_done)
    placed, added = (next(n for n, step in enumerate(done) if step.startswith(f"{kind} north")) for kind in KINDS)
    assert max(number for number, step in enumerate(done) if step.startswith(last)) < placed < added


def test_a_replica_that_has_no_machine_comes_first() -> None:
    world = replace(joining(), slots=wanted("east", 4))
    for each in world.machines:
        world = machine(world, each.name, cordoned=True) if each.site == "east" else world
    assert of(world) == []


@pytest.mark.parametrize("change", [_moving, _growing, _shrinking, _ill])
def test_it_is_placed_and_added_only_while_the_replicas_are_in_place_and_well(change: Change) -> None:
    assert NAME not in " ".join(of(change(joining())))
    placed = fact(without_member(record(guarded(), listed=False, started=False, member_id=0), NAME), has_data=False)
    placed = unit(placed, UnitState.ABSENT)
    assert of(placed) == [f"AddLearner {NAME}"]
    assert NAME not in " ".join(of(change(placed)))


def placed() -> World:
    """It has a machine, and is no member yet."""
    world = without_member(record(guarded(), listed=False, started=False, member_id=0), NAME)
    return fact(unit(world, UnitState.ABSENT), has_data=False, peer_up=False)


def added() -> World:
    """It is a member, and its etcd has never run."""
    world = unit(record(guarded(), started=False), UnitState.ABSENT)
    return member(fact(world, has_data=False, peer_up=False), health=Health.DOWN, lag=None, published=False)


@pytest.mark.parametrize(("name", "adds"), [("east-1", False), ("east-2", True)])
def test_it_is_not_added_while_the_leader_is_to_be_replaced_but_for_a_cordon(name: str, adds: bool) -> None:
    world = replace(placed(), cordoned=(name,))
    assert of(world) == [f"AddLearner {NAME}"]
    memory = world.memory.with_replica(name, lambda each: replace(each, differs=True))
    assert (f"AddLearner {NAME}" in of(replace(world, memory=memory))) == adds
    assert (f"AddLearner {NAME}" in of(replace(world, condemned=(name,)))) == adds


def test_it_is_not_added_while_a_voter_that_no_replica_has_is_not_healthy() -> None:
    """etcd would refuse it."""
    stray = MemberFact(id=90, replica="", learner=False, health=Health.HEALTHY, lag=0)
    assert of(joined_by(placed(), stray)) == [f"AddLearner {NAME}"]
    assert of(joined_by(placed(), replace(stray, health=Health.SUSPECT))) == []


def test_neither_is_it_started_while_its_machine_does_not_answer() -> None:
    assert of(added()) == [f"StartUnit etcd of {NAME}"]
    assert NAME not in " ".join(of(fact(added(), machine=SILENT)))
    assert NAME not in " ".join(of(fact(placed(), machine=SILENT)))


def test_one_that_copies_is_left_alone_and_one_that_is_refused_is_started_again() -> None:
    copies = member(unit(added(), UnitState.RUNNING), health=Health.SUSPECT, lag=1_000_000)
    assert of(copies) == []
    assert of(fact(copies, refused="the disk is read-only")) == [f"StartUnit etcd of {NAME}"]


PUBLISHED = {"health": Health.SUSPECT, "lag": 0, "published": True}


def test_one_that_missed_its_own_publication_is_restarted_once() -> None:
    missed = member(fact(unit(added(), UnitState.RUNNING), has_data=True), **PUBLISHED)
    assert of(missed) == [f"RestartUnit etcd of {NAME}"]
    assert of(record(missed, restarted=True)) == []
    assert of(member(missed, published=False)) == []
    assert of(member(missed, lag=1_000_000)) == []
    assert of(unit(missed, UnitState.STOPPING)) == []
    assert of(record(missed, started=True)) == []


# --- it stays a member ----------------------------------------------------------------------------------------------


def test_its_etcd_is_started_when_it_does_not_run_whether_a_quorum_answers_or_not() -> None:
    stopped = unit(guarded(), UnitState.STOPPED)
    assert of(stopped) == of(unread(stopped)) == [f"StartUnit etcd of {NAME}"]
    for state in (UnitState.RUNNING, UnitState.STOPPING, UnitState.FAILED, UnitState.UNKNOWN):
        assert of(unit(guarded(), state)) == []


def test_it_is_started_where_its_data_is_seen_alone() -> None:
    stopped = unit(guarded(), UnitState.STOPPED)
    for world in (stopped, unread(stopped)):
        assert of(fact(world, has_data=None)) == []
        assert of(fact(world, machine=SILENT)) == []
    assert of(unread(fact(stopped, has_data=False))) == []
    assert of(unread(record(stopped, started=False))) == []


# --- it leaves ------------------------------------------------------------------------------------------------------


def test_one_that_is_not_wanted_leaves_step_by_step() -> None:
    assert steps_until(replace(protected(), standby=None), is_done) == [
        f"RemoveMember {NAME}",
        f"StopUnit etcd of {NAME}",
        f"ReleaseReplica {NAME}",
    ]


def test_one_that_is_wanted_at_another_site_leaves_before_the_other_one_comes() -> None:
    done = steps_until(replace(protected(), standby=standing("north")), is_done)
    assert [each for each in done if not each.startswith("Note")] == [
        f"RemoveMember {NAME}",
        f"StopUnit etcd of {NAME}",
        f"ReleaseReplica {NAME}",
        "PlaceReplica north-5",
        "AddLearner north-5",
        "StartUnit etcd of north-5",
    ]


def test_it_leaves_before_anything_else_is_done_also_while_room_is_short_but_under_no_other_alarm() -> None:
    unwanted = replace(guarded(), standby=None, slots=wanted("east", 5))
    assert of(unwanted) == REMOVED
    assert of(with_membership(unwanted, alarms=("memberID:1 alarm:NOSPACE",))) == REMOVED
    assert NAME not in " ".join(of(with_membership(unwanted, alarms=("memberID:1 alarm:CORRUPT",))))


def leaving() -> World:
    """It was removed."""
    return without_member(replace(guarded(), standby=None), NAME)


def test_its_machine_is_released_when_it_answers_and_is_named_until_then(golden: Golden) -> None:
    assert of(leaving()) == [f"StopUnit etcd of {NAME}"]
    assert of(unit(leaving(), UnitState.STOPPED)) == [f"ReleaseReplica {NAME}"]
    assert of(unit(leaving(), UnitState.UNKNOWN)) == []
    away = fact(leaving(), machine=SILENT)
    found = plan(away)
    assert found.now == ()
    golden(*found.leftovers)
    assert len(found.leftovers) == 1
    assert not plan(fact(guarded(), machine=SILENT)).leftovers
    assert not plan(fact(placed(), machine=SILENT)).leftovers, "it is still to come"
    assert not plan(unit(leaving(), UnitState.UNKNOWN)).leftovers


def _with_data_gone(world: World) -> World:
    return fact(world, has_data=False)


def _with_space(size: int, world: World) -> World:
    return member(world, space=Space(size=size, in_use=40, quota=100))


def _without_room(world: World) -> World:
    return with_membership(world, alarms=("memberID:1 alarm:NOSPACE",))


def _given_up(world: World) -> World:
    return with_memory(world, condemned=(Condemned(replica=NAME, why="it is dead", since=0.0),))


def _of_class(was: str, wants: str, world: World) -> World:
    return replace(record(world, storage_class=was), storage_class=wants)


def _wanted_otherwise(change: ReplicaChange, world: World) -> World:
    return replace(world, revision="two", changes=(("", "two", change),))


REPLACED: dict[str, Change] = {
    "its data is gone": _with_data_gone,
    "a person wants that": lambda world: replace(world, condemned=(NAME,)),
    "its data differs": partial(record, differs=True),
    "its volume is of another class": partial(_of_class, "slow", "fast"),
    "it has the peer URL of another one": partial(member, misplaced=True),
    "it has no room while all others have": partial(_with_space, 95),
    "it copies while room is short": lambda world: _without_room(member(world, lag=1_000_000)),
    "it copies, unheard, while room is short": lambda world: _without_room(
        member(world, lag=1_000_000, health=Health.UNREACHABLE)
    ),
    "it was given up": _given_up,
}


@pytest.mark.parametrize("why", REPLACED)
def test_it_is_removed_to_be_replaced_when(why: str) -> None:
    assert of(REPLACED[why](guarded())) == REMOVED


KEPT: dict[str, Change] = {
    "its data was never seen": lambda world: record(_with_data_gone(world), started=False),
    "its data is not seen now": partial(fact, has_data=None),
    "a person keeps it as it is": lambda world: replace(world, condemned=(NAME,), cordoned=(NAME,)),
    "the class of its volume is not known": partial(_of_class, "", "fast"),
    "no class is asked for": partial(_of_class, "slow", ""),
    "its volume is of the class": partial(_of_class, "fast", "fast"),
    "it is nearly full": partial(_with_space, 90),
    "it does not say how full it is": partial(member, space=None),
    "it copies while there is room": partial(member, lag=1_000_000),
    "it has the data while room is short": _without_room,
    "it does not follow while room is short": lambda world: _without_room(
        member(world, lag=1_000_000, health=Health.SUSPECT)
    ),
    "its lag is unknown while room is short": lambda world: _without_room(member(world, lag=None)),
}


@pytest.mark.parametrize("why", KEPT)
def test_it_stays_when(why: str) -> None:
    assert not [
        each for each in of(KEPT[why](guarded())) if NAME in each and "Note" not in each and "Start" not in each
    ]


def test_it_is_not_too_full_where_a_voter_is_as_well_or_none_says() -> None:
    full = _with_space(95, guarded())
    other = with_member(full, "east-2", lambda each: replace(each, space=Space(size=95, in_use=40, quota=100)))
    assert REMOVED[0] not in of(other)
    for name in ("east-1", "east-2"):
        full = with_member(full, name, lambda each: replace(each, space=None))
    assert of(full) == REMOVED
    full = with_member(full, "east-3", lambda each: replace(each, space=None))
    assert REMOVED[0] not in of(full)


def test_it_is_replaced_when_a_change_of_the_revision_needs_that() -> None:
    assert of(_wanted_otherwise(ReplicaChange(exchange=True), guarded())) == REMOVED
    assert REMOVED[0] not in of(_wanted_otherwise(ReplicaChange(), guarded()))


def test_one_that_was_removed_by_hand_is_replaced_and_not_started_again() -> None:
    removed = without_member(guarded(), NAME)
    assert of(removed) == of(ailing(removed, 99.0)) == [f"StopUnit etcd of {NAME}"]
    (stop,) = plan(removed).now
    failing = (Failing(step=bare(stop), error="it does not end"),)
    assert of(replace(ailing(removed, 99.0), failing=failing)) == FORGOTTEN, "what has left is not healed"
    assert of(with_membership(unit(removed, UnitState.STOPPED), alarms=("memberID:1 alarm:CORRUPT",))) == []


def test_of_two_the_member_stays() -> None:
    """The other one was placed for a standby that came back."""
    world = guarded()
    other = replace(
        world.memory.replica(NAME), name="west-5", machine="west-b1", listed=False, started=False, member_id=0
    )
    for records in ((*world.memory.replicas, other), (*world.memory.replicas[:-1], other, world.memory.replicas[-1])):
        two = with_memory(world, replicas=records)
        spare = replace(world.replica(NAME), name="west-5", units=((ETCD, UnitState.ABSENT),), has_data=False)
        assert of(replace(two, replicas=(*two.replicas, spare))) == ["ReleaseReplica west-5"]


def test_one_that_a_person_promoted_is_a_replica_that_nobody_wants() -> None:
    truth = protected()
    voter = replace(truth.replica(NAME), member=replace(truth.members[NAME], learner=False))
    by_hand = truth.with_replica(NAME, voter)
    assert REMOVED[0] in steps_until(by_hand, is_done)
    assert f"StopUnit etcd of {NAME}" in steps_until(by_hand, is_done)


# --- replicas do not count on it ------------------------------------------------------------------------------------


def test_no_replica_is_placed_on_its_machine() -> None:
    world = replace(guarded(), slots=wanted("west", 3))
    machines = [step.machine for step in planned(world, PlaceReplica).steps if isinstance(step, PlaceReplica)]
    assert machines == ["west-a2", "west-b1", "west-c1"]


def test_a_wait_for_a_machine_names_it(golden: Golden) -> None:
    world = replace(guarded(), slots=wanted("west", 5))
    world = replace(world, machines=tuple(each for each in world.machines if each.name != "west-a2"))
    golden(*sorted(each for each in whats(plan(world)) if "west-a1" in each))
    assert any("west-a1" in each for each in whats(plan(world)))
    world = machine(world, "west-a1", cordoned=True, why="is cordoned for a repair")
    golden(*sorted(each for each in whats(plan(world)) if "west-a1" in each))


def test_a_plane_with_a_standby_that_is_dead_is_as_wanted() -> None:
    assert not plan(silenced(guarded(), SILENT)).waiting
    grown = replace(silenced(guarded(), SILENT), slots=wanted("east", 5))
    assert of(grown) == of(replace(joining(), slots=wanted("east", 5), standby=None, memory=_later(grown.memory)))


def _later(memory: Memory) -> Memory:
    return replace(memory, replicas=memory.replicas[:3])


# --- it is healed ---------------------------------------------------------------------------------------------------

BOUNDS = HealingBounds(budget=1, window=100.0, after=5.0, hung=20.0, lagging=30.0)


def ailing(world: World, seconds: float) -> World:
    """It has been dead or sick for so long, as far as is remembered."""
    settings = replace(world.settings, healing=BOUNDS, start=10.0)
    return replace(with_memory(world, down=((NAME, 1_000.0),)), settings=settings, now=1_000.0 + seconds)


def dead() -> World:
    return silenced(guarded(), DOWN)


def hanging() -> World:
    """Its etcd runs, and nobody hears of it."""
    return member(guarded(), health=Health.DOWN, lag=None, lagging=None)


def lagging() -> World:
    return member(guarded(), lagging=True, lag=5_000)


CONDEMNED = [f"Condemn {NAME}"]
RESTARTED = [f"RestartUnit etcd of {NAME}"]
#: It is noted that nobody is dead.
FORGOTTEN = ["NoteDown"]


@pytest.mark.parametrize("state", [DOWN, SILENT])
def test_a_dead_one_is_noted_and_replaced_after_its_time_on_another_machine(state: MachineState) -> None:
    gone = silenced(guarded(), state)
    (noted,) = planned(replace(gone, settings=replace(gone.settings, healing=BOUNDS))).steps
    assert isinstance(noted, NoteDown)
    assert noted.replicas == (NAME,)
    assert of(ailing(gone, 4.9)) == []
    (step,) = planned(ailing(gone, 5.0)).steps
    assert isinstance(step, Condemn)
    assert (step.replica, step.machine, step.window) == (NAME, "west-a1", 100.0)


def test_one_that_is_not_sick_any_more_or_of_which_the_cluster_hears_is_not_dead() -> None:
    assert CONDEMNED[0] not in of(ailing(guarded(), 99.0))
    assert CONDEMNED[0] not in of(ailing(member(dead(), health=Health.UNREACHABLE), 99.0))
    assert CONDEMNED[0] not in of(ailing(fact(dead(), machine=MachineState.UP), 9.0))


def test_one_that_never_became_a_member_and_whose_machine_dies_is_dead() -> None:
    gone = machine(fact(placed(), machine=DOWN), "west-a1", state=DOWN)
    assert of(ailing(gone, 5.0)) == CONDEMNED
    assert CONDEMNED[0] not in of(replace(ailing(gone, 5.0), standby=None)), "nobody wants another one"
    removed = machine(fact(without_member(guarded(), NAME), machine=DOWN), "west-a1", state=DOWN)
    assert CONDEMNED[0] not in of(ailing(removed, 5.0)), "it has left"


@pytest.mark.parametrize(("sick", "time"), [(hanging, 20.0), (lagging, 30.0)])
def test_a_sick_one_is_restarted_after_its_time_and_replaced_after_twice_that(
    sick: Callable[[], World], time: float
) -> None:
    assert of(ailing(sick(), time - 0.1)) == []
    assert of(ailing(sick(), time)) == RESTARTED
    again = record(sick(), restarted=True)
    assert of(ailing(again, 2 * time - 0.1)) == []
    assert of(ailing(again, 2 * time)) == CONDEMNED


def test_one_that_joins_has_as_long_as_any_program_to_start() -> None:
    world = ailing(lagging(), 30.0)
    slow = replace(world, settings=replace(world.settings, start=40.0))
    assert (of(world), of(slow)) == (RESTARTED, [])
    assert of(replace(slow, now=1_040.0)) == RESTARTED


def test_one_whose_etcd_is_stopped_is_started_and_not_healed() -> None:
    stopped = unit(hanging(), UnitState.STOPPED)
    assert of(ailing(stopped, 99.0)) == FORGOTTEN
    assert of(stopped) == [f"StartUnit etcd of {NAME}"]


def test_healing_a_standby_counts_for_the_budget_and_needs_another_machine() -> None:
    world = ailing(dead(), 50.0)
    assert of(world) == CONDEMNED
    assert of(with_memory(world, healed=(("east-b1", 950.1),))) == []
    assert of(with_memory(world, healed=(("east-b1", 950.0),))) == CONDEMNED
    alone = replace(world, machines=tuple(each for each in world.machines if each.name in ("west-a1", "east-a1")))
    assert of(alone) == []
    assert CONDEMNED[0] not in of(replace(world, standby=None)), "it is removed"


def test_one_that_a_person_keeps_as_it_is_is_not_healed() -> None:
    assert of(replace(ailing(dead(), 99.0), cordoned=(NAME,))) == FORGOTTEN
    assert of(ailing(_given_up(dead()), 99.0)) == REMOVED


def test_one_that_is_well_again_is_not_healed_while_that_cannot_be_noted() -> None:
    world = ailing(guarded(), 99.0)
    (note,) = plan(world).now
    assert of(replace(world, failing=(Failing(step=bare(note), error="the store does not answer"),))) == []


def test_nobody_is_dead_while_no_quorum_answers() -> None:
    assert of(ailing(unread(dead()), 99.0)) == []


# --- it gets a revision ---------------------------------------------------------------------------------------------


def with_revisions(change: ReplicaChange) -> FaultyTruth:
    return beside(changing(3, 3, change), "west")


ETCD_RESTARTS, APISERVER_RESTARTS = (ReplicaChange(restart=frozenset({each})) for each in (ETCD, Component.APISERVER))


def test_it_is_restarted_last_when_a_revision_changes_etcd() -> None:
    done = steps_until(with_revisions(ETCD_RESTARTS), is_done)
    mine = [each for each in done if NAME in each]
    assert mine == [f"StopUnit etcd of {NAME}", f"AdoptRevision {NAME}", f"StartUnit etcd of {NAME}"]
    assert done.index(mine[0]) > max(done.index(f"AdoptRevision east-{number}") for number in (1, 2, 3))


def test_it_only_notes_a_revision_that_does_not_change_etcd() -> None:
    done = steps_until(with_revisions(APISERVER_RESTARTS), is_done)
    assert [each for each in done if NAME in each] == [f"AdoptRevision {NAME}"]


def rolled(change: ReplicaChange = ETCD_RESTARTS) -> World:
    """All replicas have the revision that is wanted, and the standby has not."""
    world = replace(guarded(), revision=NEW, changes=((FORMER, NEW, change), (NEW, FORMER, change)))
    records = tuple(replace(each, revision=FORMER if each.standby else NEW) for each in world.memory.replicas)
    return with_memory(world, replicas=records)


def test_it_stops_and_stays_stopped_until_it_has_the_revision_of_the_others(golden: Golden) -> None:
    assert of(rolled()) == [f"StopUnit etcd of {NAME}"]
    stopped = unit(rolled(), UnitState.STOPPED)
    assert of(stopped) == [f"AdoptRevision {NAME}"]
    assert of(record(stopped, revision=NEW)) == [f"StartUnit etcd of {NAME}"]
    unseen = plan(unit(rolled(), UnitState.UNKNOWN))
    assert unseen.now == ()
    golden(*whats(unseen))


def test_it_runs_meanwhile_where_a_replica_is_behind_or_ill_or_no_quorum_answers() -> None:
    stopped = unit(rolled(), UnitState.STOPPED)
    unwanted = replace(stopped, slots=wanted("east", 1))
    for world in (_ill(stopped), unread(stopped), unread(unwanted), replace(stopped, cordoned=(NAME,))):
        assert f"StartUnit etcd of {NAME}" in of(world)
    behind = replace(stopped, memory=stopped.memory.with_replica("east-3", lambda each: replace(each, revision=FORMER)))
    assert f"StartUnit etcd of {NAME}" in of(behind)
    assert f"StartUnit etcd of {NAME}" in of(unit(rolled(APISERVER_RESTARTS), UnitState.STOPPED))


def test_files_that_its_etcd_reloads_are_loaded_by_a_restart() -> None:
    assert of(rolled(ReplicaChange(reload=frozenset({ETCD})))) == [f"StopUnit etcd of {NAME}"]
    assert of(rolled(ReplicaChange(reload=frozenset({Component.APISERVER})))) == [f"AdoptRevision {NAME}"]


def test_files_that_were_changed_by_hand_are_put_right_by_a_restart(golden: Golden) -> None:
    altered = fact(guarded(), altered=frozenset({ETCD}))
    assert of(altered) == [f"StopUnit etcd of {NAME}"]
    assert of(unit(altered, UnitState.STOPPED)) == [f"StartUnit etcd of {NAME}"]
    golden(*whats(plan(unit(altered, UnitState.UNKNOWN))))
    assert of(fact(guarded(), altered=frozenset({Component.APISERVER}))) == []
    assert of(replace(altered, cordoned=(NAME,))) == []


def test_one_that_has_not_begun_gets_no_revision_before_it_has_the_data() -> None:
    copies = member(record(rolled(), started=False), health=Health.SUSPECT, lag=1_000_000, published=False)
    assert of(copies) == []


# --- what is waited for ---------------------------------------------------------------------------------------------


def test_it_is_waited_for_until_it_follows(golden: Golden) -> None:
    for facts in ({"lag": 1_000_000}, {"lag": None}, {"health": Health.SUSPECT}):
        golden(*whats(plan(member(guarded(), **facts))))
        assert len(plan(member(guarded(), **facts)).waiting) == 1
        assert plan(replace(member(guarded(), **facts), cordoned=(NAME,))).done
    assert plan(member(guarded(), lag=guarded().settings.lag_bound)).done
