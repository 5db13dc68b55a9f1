"""A member of etcd that answers, is far behind, and comes no nearer: it is one more program that does not get well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import (
    HEALING_STEPS,
    about_to,
    is_done,
    joined_by,
    kind,
    planned,
    steps_until,
    until,
    whats,
    with_fact,
    with_member,
    with_memory,
    without_member,
)
from model.worlds import FORMER, NEW, changing, empty, settled, wanted
from support.golden import Golden

from quarterdeck.api.controlplane import Healing as HealingSpec
from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.engine.notices.events import happenings
from quarterdeck.engine.workspace.settings import planner_settings
from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.memory import Condemned
from quarterdeck.model.steps.healing import NoteAiling
from quarterdeck.model.steps.units import RejectRevision, ReviveUnit
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.healing import held_back
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.unhealthy_programs import unhealthy
from quarterdeck.planner.view import view

#: ``start`` of the simulated worlds is 3 s: a joiner has longer than a voter.
HEALING = HealingBounds(budget=9, window=200.0, after=2.0, later=10.0, hung=1.0, lagging=2.0)
ETCD, EVENTS_ETCD = Component.ETCD, Component.EVENTS_ETCD
UNIT = "etcd of east-2"
HEALED = ("ReviveUnit", "Condemn", "PlaceReplica", "Promote", "RemoveMember", "ReleaseMember", "AddLearner")


def healed_as(truth: FaultyTruth, healing: HealingBounds = HEALING) -> FaultyTruth:
    return replace(truth, settings=replace(truth.settings, healing=healing))


def plane(healing: HealingBounds = HEALING) -> FaultyTruth:
    return settled(healed_as(empty("east", 3, sites=("east",)), healing))


def apart() -> FaultyTruth:
    return settled(healed_as(changing(3, 3, ReplicaChange(), apart=frozenset({FORMER, NEW}))))


def slow(truth: FaultyTruth, *names: str, component: Component = ETCD) -> FaultyTruth:
    """Members that are behind, and do not catch up until they are killed."""
    for name in names:
        replica = truth.replica(name)
        member = "member" if component == ETCD else "events"
        found = getattr(replica, member)
        late = replace(replica, slow=replica.slow | {component}, **{member: replace(found, behind=2)})
        truth = truth.with_replica(name, late)
    return truth


def lame(truth: FaultyTruth, machine: str, component: Component = ETCD) -> FaultyTruth:
    """A machine on which no member catches up."""
    return replace(truth, lame=truth.lame | {(machine, component)})


def healing_of(truth: FaultyTruth, stop: Callable[..., bool] = is_done) -> list[str]:
    return [each for each in steps_until(truth, stop) if each.split()[0] in HEALED]


def seen(since: float = 0.0, **fact: object) -> World:
    """One of three voters has been noted for so long, and is seen so now."""
    world = observe(plane())
    world = with_memory(world, unhealthy=((UNIT, world.now - since),))
    return with_member(world, "east-2", lambda member: replace(member, **fact))  # type: ignore[arg-type]


LAGS = {"lagging": True, "lag": 5_000}


def steps_of(world: World) -> list[str]:
    return [kind(step) for step in planned(world, *HEALING_STEPS).steps]


# --- a voter --------------------------------------------------------------------------------------------------------


def test_it_is_restarted_once_and_the_plane_is_as_wanted() -> None:
    struck = slow(plane(), "east-2")
    assert healing_of(struck) == ["ReviveUnit etcd of east-2"]
    well = until(struck, is_done)
    assert well.memory.unhealthy == ()
    assert len(well.memory.healed) == 1


@pytest.mark.parametrize("name", ["east-2", "east-3"])
def test_if_that_does_not_help_it_votes_until_another_one_has_come_elsewhere(name: str) -> None:
    truth = plane()
    struck = lame(slow(truth, name), truth.machine_of(name).name)
    kinds = [each.split()[0] for each in healing_of(struck)]
    assert kinds == ["ReviveUnit", "Condemn", "PlaceReplica", "AddLearner", "Promote", "RemoveMember"]
    well = until(struck, is_done)
    assert set(well.members) == {"east-1", "east-2", "east-3", "east-4"} - {name}
    assert well.machine_of("east-4").name != truth.machine_of(name).name


def test_it_has_its_whole_time_and_no_more() -> None:
    assert steps_of(seen(HEALING.lagging - 0.1, **LAGS)) == []
    assert steps_of(seen(HEALING.lagging, **LAGS)) == ["ReviveUnit"]
    revived = seen(HEALING.lagging - 0.1, **LAGS)
    revived = with_memory(revived, revived=((UNIT, revived.now),))
    assert steps_of(revived) == []
    assert steps_of(replace(revived, now=revived.now + 0.1)) == ["Condemn"]
    down = seen(HEALING.hung, lagging=None, lag=None, health=Health.DOWN)
    down = with_fact(down, "east-2", lambda fact: replace(fact, hung=frozenset({ETCD}), silent=frozenset({ETCD})))
    assert steps_of(down) == ["ReviveUnit"], "what hangs is known sooner"


def test_why_it_is_restarted_says_for_how_long_it_lagged(golden: Golden) -> None:
    (step,) = planned(seen(HEALING.lagging, **LAGS), *HEALING_STEPS).steps
    assert isinstance(step, ReviveUnit)
    golden(step.why)


def test_it_is_noted_first_and_then_waited_for(golden: Golden) -> None:
    world = replace(seen(**LAGS), memory=replace(seen().memory, unhealthy=()))
    assert steps_of(world) == ["NoteAiling"]
    golden(whats(planned(seen(**LAGS), *HEALING_STEPS)))
    assert not plan(seen(**LAGS)).done


def test_with_healing_off_nothing_is_noted() -> None:
    off = with_member(observe(plane(replace(HEALING, budget=0))), "east-2", lambda it: replace(it, **LAGS))  # type: ignore[arg-type]
    assert steps_of(off) == []
    assert whats(planned(off, *HEALING_STEPS)) == ()


UNKNOWN = (
    {"lagging": None, "lag": 5_000},
    {"lagging": None, "lag": None},
    {"lagging": None, "lag": None, "health": Health.SUSPECT},
    {"lagging": None, "lag": 0, "health": Health.SUSPECT},
)


@pytest.mark.parametrize("fact", UNKNOWN, ids=str)
def test_what_is_not_known_neither_begins_its_time_nor_ends_it(fact: dict[str, object]) -> None:
    world = seen(99.0, **fact)
    assert [component for _, component in unhealthy(view(world))] == [ETCD]
    assert steps_of(world) == [], "nothing is done to who is not known to lag"
    assert held_back(view(world)) == ()
    unnoted = with_memory(world, unhealthy=())
    assert unhealthy(view(unnoted)) == ()


KNOWN = (
    {"lagging": False, "lag": 5_000},
    {"lagging": False, "lag": 0},
    {"lagging": False, "lag": None, "health": Health.SUSPECT},
    {"lagging": None, "lag": 1_000},
    {"lagging": None, "lag": None, "health": Health.UNREACHABLE},
)


@pytest.mark.parametrize("fact", KNOWN, ids=str)
def test_who_comes_nearer_or_has_the_data_or_is_only_not_seen_begins_again(fact: dict[str, object]) -> None:
    world = seen(99.0, **fact)
    assert unhealthy(view(world)) == ()
    (step,) = planned(world, *HEALING_STEPS).steps
    assert isinstance(step, NoteAiling)
    assert step.units == ()


def test_one_that_is_down_is_none_that_came_nearer() -> None:
    assert len(unhealthy(view(seen(9.0, lagging=False, lag=None, health=Health.DOWN)))) == 1


def test_the_spec_says_for_how_long_one_may_lag() -> None:
    made = new_control_plane("demo", site="east")
    assert planner_settings(made).healing.lagging == 300.0
    sooner = made.spec.model_copy(update={"healing": HealingSpec(lagging_after_seconds=10)})
    assert planner_settings(made.model_copy(update={"spec": sooner})).healing.lagging == 10.0


# --- when nothing is done -------------------------------------------------------------------------------------------


def why(world: World) -> str:
    found = dict(held_back(view(world)))
    assert steps_of(world) == []
    return found[UNIT]


@pytest.mark.parametrize("revived", [False, True])
@pytest.mark.parametrize(
    "fact", [LAGS, {"lagging": False, "lag": 5_000}, {"lag": None}], ids=["lags", "comes nearer", "unknown"]
)
def test_where_another_voter_is_behind_as_well_it_is_not_this_member(
    fact: dict[str, object], revived: bool, golden: Golden
) -> None:
    world = with_member(seen(99.0, **LAGS), "east-3", lambda member: replace(member, **fact))  # type: ignore[arg-type]
    if revived:
        world = with_memory(world, revived=((UNIT, world.now),))
    more = ((UNIT, world.now - 99.0), ("etcd of east-3", world.now - 99.0)) if fact is LAGS else world.memory.unhealthy
    world = with_memory(world, unhealthy=more)
    golden(why(world))


def with_another(world: World, **fact: object) -> World:
    """A learner joins besides."""
    joins = MemberFact(id=99, replica="", learner=True, health=Health.HEALTHY, **fact)  # type: ignore[arg-type]
    return joined_by(world, joins)


def test_a_joiner_that_is_still_on_its_way_is_no_reason_to_wait(golden: Golden) -> None:
    assert steps_of(with_another(seen(99.0, **LAGS), lag=9_000, lagging=False)) == ["ReviveUnit"]
    golden(why(with_another(seen(99.0, **LAGS), lag=9_000, lagging=True)))


def test_nobody_is_restarted_without_whom_the_others_are_no_quorum(golden: Golden) -> None:
    world = seen(99.0, **LAGS)
    golden(why(without_member(world, "east-3")))


def test_others_that_are_not_well_are_waited_for() -> None:
    world = with_member(seen(99.0, **LAGS), "east-3", lambda member: replace(member, health=Health.SUSPECT))
    assert unhealthy(view(world)) == ()


def test_the_budget_is_kept_and_told(golden: Golden) -> None:
    world = seen(99.0, **LAGS)
    spent = with_memory(world, healed=(("", world.now),) * 9)
    golden(why(spent))


def test_without_a_spare_machine_it_is_restarted_and_stays() -> None:
    truth = plane()
    alone = replace(truth, machines=tuple(each for each in truth.machines if each.name.endswith("1")))
    struck = lame(slow(alone, "east-2"), truth.machine_of("east-2").name)
    waits = until(struck, lambda _, now: any("no spare machine" in each for each in whats(now)))
    assert waits.memory.condemned == ()
    assert len(waits.memory.healed) == 1


# --- one that is given up -------------------------------------------------------------------------------------------


def given_up(program: Component = ETCD, **fact: object) -> World:
    world = seen(**fact)
    condemned = Condemned(replica="east-2", why="", since=0.0, program=program)
    return with_memory(world, condemned=(condemned,), unhealthy=())


def test_who_was_given_up_stays_once_it_has_the_data_and_not_before() -> None:
    assert "Pardon" in steps_of(given_up())
    assert "Pardon" in steps_of(given_up(lagging=None, lag=1_000))
    for fact in (
        LAGS,
        {"lagging": False, "lag": 1_001},
        {"lagging": None, "lag": 5_000},
        {"lagging": False, "lag": None},
    ):
        assert "Pardon" not in steps_of(given_up(**fact))


def test_who_was_given_up_for_another_program_need_not_have_the_data() -> None:
    assert "Pardon" in steps_of(given_up(Component.SCHEDULER, lagging=False, lag=5_000))


# --- one that joins -------------------------------------------------------------------------------------------------


def joining(
    machine: str = "", moving: bool = False, revision: str = FORMER, condemned: tuple[str, ...] = ("east-2",)
) -> FaultyTruth:
    """A replica is exchanged on a person's word, and its successor joins."""
    if moving:
        truth = settled(healed_as(empty("east", 3)))
        truth = replace(truth, slots=wanted("west", 3))
    elif revision == NEW:
        truth = healed_as(changing(3, 3, ReplicaChange(exchange=True)))
    else:
        truth = healed_as(changing(3, 3, ReplicaChange(), condemned=condemned))
    return lame(truth, machine) if machine else truth


def comes_to(truth: FaultyTruth, number: int = 4) -> str:
    """The machine that the next replica is put on."""
    site = truth.slots[0].site
    placed = until(truth, lambda now, _: any(each.name == f"{site}-{number}" for each in now.memory.replicas))
    return placed.memory.replica(f"{site}-{number}").machine


def test_one_that_joins_and_never_catches_up_gives_way_to_another_one_elsewhere() -> None:
    machine = comes_to(joining())
    well = until(joining(machine), is_done)
    assert machine not in {well.machine_of(name).name for name in well.members}
    assert len(well.members) == 3
    steps = [each for each in healing_of(joining(machine)) if "east-4" in each]
    assert steps == [
        "PlaceReplica east-4",
        "AddLearner east-4",
        "ReviveUnit etcd of east-4",
        "Condemn east-4",
        "RemoveMember east-4",
    ]


def test_also_where_others_are_still_to_be_exchanged_and_in_a_move() -> None:
    both = joining(condemned=("east-2", "east-3"))
    machine = comes_to(both)
    assert "Condemn east-4" in healing_of(lame(both, machine))
    machine = comes_to(joining(moving=True))
    well = until(joining(machine, moving=True), is_done)
    assert set(well.members) == {"west-5", "west-6", "west-7"}


@pytest.mark.parametrize(("lagging", "is_unhealthy"), [(True, True), (None, True), (False, False)])
def test_one_that_answers_nobody_before_it_has_copied_lags_all_the_same(
    lagging: bool | None, is_unhealthy: bool
) -> None:
    machine = comes_to(joining())
    noted = observe(until(joining(machine), lambda truth, _: bool(truth.memory.unhealthy)))
    copies = with_member(noted, "east-4", lambda it: replace(it, health=Health.UNREACHABLE, lag=9_000, lagging=lagging))
    assert bool(unhealthy(view(copies))) is is_unhealthy
    late = replace(copies, now=copies.now + 9.0)
    assert (steps_of(late) == ["ReviveUnit"]) is (lagging is True)


def test_a_joiner_has_as_long_as_any_program_has_to_start_at_least() -> None:
    machine = comes_to(joining())
    noted = until(joining(machine), lambda truth, _: bool(truth.memory.unhealthy))
    world = observe(noted)
    since = dict(world.memory.unhealthy)["etcd of east-4"]
    assert world.settings.start == 3.0
    assert steps_of(replace(world, now=since + 2.9)) == []
    assert steps_of(replace(world, now=since + 3.0)) == ["ReviveUnit"]
    longer = replace(world.settings, healing=replace(HEALING, lagging=5.0))
    assert steps_of(replace(world, settings=longer, now=since + 4.9)) == []
    assert steps_of(replace(world, settings=longer, now=since + 5.0)) == ["ReviveUnit"]


def test_a_joiner_of_a_revision_that_nobody_runs_yet_has_it_given_up() -> None:
    machine = comes_to(joining(revision=NEW))
    end = until(joining(machine, revision=NEW), about_to(RejectRevision))
    (step,) = (each for each in plan(observe(end)).now if isinstance(each, RejectRevision))
    assert (step.component, step.runs) == (ETCD, True)
    assert until(end, is_done).members.keys() == {"east-1", "east-2", "east-3"}


# --- the events' cluster --------------------------------------------------------------------------------------------


def test_a_member_of_the_events_cluster_is_restarted() -> None:
    assert healing_of(slow(apart(), "east-2", component=EVENTS_ETCD)) == ["ReviveUnit etcd-events of east-2"]


def test_if_that_does_not_help_its_replica_gets_another_member_where_it_is() -> None:
    truth = apart()
    struck = lame(slow(truth, "east-2", component=EVENTS_ETCD), truth.machine_of("east-2").name, EVENTS_ETCD)
    gone = until(struck, lambda truth, _: "east-2" not in truth.of(Cluster.EVENTS).members)
    assert [(each.program, each.alone) for each in gone.memory.condemned] == [(EVENTS_ETCD, True)]
    well = until(replace(gone, lame=frozenset()), is_done)
    assert set(well.members) == set(well.of(Cluster.EVENTS).members) == {"east-1", "east-2", "east-3"}


def of_events(world: World, name: str, **fact: object) -> World:
    return with_member(world, name, lambda member: replace(member, **fact), Cluster.EVENTS)  # type: ignore[arg-type]


@pytest.mark.parametrize("revived", [False, True])
def test_nor_does_anything_happen_there_while_another_one_is_behind(revived: bool, golden: Golden) -> None:
    world = of_events(observe(apart()), "east-2", lagging=True, lag=5_000)
    name = "etcd-events of east-2"
    world = with_memory(world, unhealthy=((name, world.now - 99.0),))
    if revived:
        world = with_memory(world, revived=((name, world.now),))
    assert steps_of(world) == (["Condemn"] if revived else ["ReviveUnit"])
    world = of_events(world, "east-3", lag=5_000)
    assert steps_of(world) == []
    golden(dict(held_back(view(world)))[name])


def test_nor_without_whom_the_others_are_no_quorum_of_it_although_they_are_one_of_the_main_cluster(
    golden: Golden,
) -> None:
    world = of_events(observe(apart()), "east-2", lagging=True, lag=5_000)
    world = with_memory(world, unhealthy=(("etcd-events of east-2", world.now - 99.0),))
    world = of_events(world, "east-3", learner=True, lag=9_000, lagging=False)
    assert steps_of(world) == []
    golden(dict(held_back(view(world)))["etcd-events of east-2"])


# --- what is told ---------------------------------------------------------------------------------------------------


def test_it_is_told_of_voters_and_joiners_and_of_nobody_else(golden: Golden) -> None:
    messages = {each.reason: each.message for each in happenings(seen(**LAGS))}
    golden(messages["MemberLagging"])
    assert "MemberLagging" not in {each.reason for each in happenings(seen(lagging=None, lag=5_000))}
    machine = comes_to(joining())
    noted = until(joining(machine), lambda truth, _: bool(truth.memory.unhealthy))
    golden({each.message for each in happenings(observe(noted))})
