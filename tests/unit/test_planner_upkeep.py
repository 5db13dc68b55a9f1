"""A cluster without room: history is forgotten, members are defragmented one by one, and writes are taken again. And
members that have other data than most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from model.faults import faults
from model.invariants import check_plan, names
from model.kinds import Kind
from model.stories import (
    about_to,
    doing,
    is_done,
    joined_by,
    planned,
    until,
    whats,
    with_member,
    with_membership,
    with_memory,
)
from model.worlds import changing, empty, moving, moving_apart, settled
from support.golden import Golden

from quarterdeck.model.clusters import Cluster, Full
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import Health, MemberFact, Membership, Space
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import (
    AddLearner,
    Compact,
    Defragment,
    Disarm,
    NoteDiffering,
    NoteFull,
    Promote,
    RemoveMember,
    TransferLeadership,
)
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.world import World
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.upkeep import AGAIN, make_room
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.dry_run import dry_run
from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.space import lacks_quota
from quarterdeck.planner.view import view

ROOM, FREE, CRAMPED = (Space(size=size, in_use=used, quota=100) for size, used in ((50, 40), (95, 50), (95, 90)))
EAST = empty("east", 3).slots
NOTED = Full(since=-60.0, revision=7)


def member(number: int, space: Space | None, *, learner: bool = False) -> MemberFact:
    return MemberFact(
        id=number,
        replica=f"east-{number}",
        learner=learner,
        health=Health.HEALTHY,
        lag=0,
        space=space,
        revision=7 if space is not None else None,
    )


def full(*spaces: Space | None, noted: Full | None = NOTED, leader: str = "east-1", alarm: str = "NOSPACE") -> World:
    """A settled plane whose members are as full as that."""
    world = observe(settled(empty("east", len(spaces))))
    members = tuple(member(number, space) for number, space in enumerate(spaces, 1))
    raised = Membership(members=members, leader=leader, alarms=(f"memberID:1 alarm:{alarm} ",))
    return replace(world, now=0.0, membership=raised, memory=replace(world.memory, full=noted))


def with_power(truth: Truth, power: Power, replica: str) -> Truth:
    """The machine of a replica in that state."""
    name = truth.machine_of(replica).name
    return tick(
        replace(truth, machines=tuple(replace(e, power=power) if e.name == name else e for e in truth.machines))
    )


def does(world: World) -> RuleOutcome:
    return make_room(view(world))


def step(world: World) -> Step:
    (found,) = does(world).steps
    assert found in plan(world).now
    return found


def waits(world: World) -> str:
    outcome = does(world)
    assert outcome.steps == ()
    (found,) = outcome.waiting
    assert found in plan(world).waiting
    return found.what


def runs_out(truth: Truth) -> tuple[Truth, ...]:
    """The truths in which there is no room all at once, one for each cluster."""
    return tuple(fault.truth for fault in faults(truth) if fault.kind is Kind.FULL)


def way(truth: Truth) -> tuple[str, ...]:
    """All that is done until all is as wanted, every plan of it checked."""
    steps: list[str] = []
    for _ in range(200):
        world = observe(truth)
        now = plan(world)
        check_plan(world, now)
        if now.done:
            assert not truth.full
            return tuple(steps)
        for each in now.now:
            truth = apply(truth, each)
            steps.append(names((each,)))
        if not now.now:
            truth = tick(truth)
    raise AssertionError(f"it does not end: {steps[-5:]}, {whats(plan(observe(truth)))}")


def test_history_goes_then_one_member_after_the_other_is_defragmented_the_leader_last_and_writes_are_taken() -> None:
    (truth,) = runs_out(settled(empty("east", 3)))
    assert way(truth) == (
        "NoteFull",
        "Compact",
        "Defragment east-2",
        "Defragment east-3",
        "TransferLeadership east-2",
        "Defragment east-1",
        "Disarm",
    )


def test_whenever_the_room_runs_out_in_a_move_it_is_made() -> None:
    """What follows, and all else that can happen meanwhile, is searched by the model (``NO_ROOM``)."""
    truth, met = moving(1, 1), 0
    while not (now := plan(observe(truth))).done:
        for out in runs_out(truth):
            met += 1
            assert not until(out, lambda then, _: not then.full).full
        for each in now.now:
            truth = apply(truth, each)
        if not now.now:
            truth = tick(truth)
    assert met > 5


def test_a_dry_run_says_how_the_room_is_made() -> None:
    (truth,) = runs_out(settled(empty("east", 1)))
    kinds = [type(each.step) for each in dry_run(observe(truth)).steps]
    assert kinds == [NoteFull, Compact, Defragment, Disarm]


ETCD_RESTARTS = ReplicaChange(restart=frozenset({Component.ETCD}))


def test_a_larger_quota_reaches_the_only_member_by_a_restart_in_place_while_the_alarm_is_on() -> None:
    (truth,) = runs_out(changing(1, 1, ETCD_RESTARTS, roomy=True))
    steps = way(truth)
    assert [each for each in steps if each.endswith("of east-1")] == [
        "StopUnit kube-scheduler of east-1",
        "StopUnit kube-controller-manager of east-1",
        "StopUnit kube-apiserver of east-1",
        "StopUnit etcd of east-1",
        "StartUnit etcd of east-1",
        "StartUnit kube-apiserver of east-1",
        "StartUnit kube-controller-manager of east-1",
        "StartUnit kube-scheduler of east-1",
    ]
    assert not [each for each in steps if "east-2" in each]


def test_without_an_alarm_a_larger_quota_of_the_only_member_comes_with_another_replica() -> None:
    steps = way(changing(1, 1, ETCD_RESTARTS, roomy=True))
    assert "AddLearner east-2" in steps
    assert "RemoveMember east-1" in steps


def test_a_larger_quota_reaches_three_members_one_by_one_while_the_alarm_is_on() -> None:
    (truth,) = runs_out(changing(3, 3, ETCD_RESTARTS, roomy=True))
    steps = way(truth)
    assert len([each for each in steps if each.startswith("StopUnit etcd")]) == 3
    assert not [each for each in steps if "east-4" in each]


def test_members_that_are_not_wanted_get_no_larger_quota_and_go_while_the_alarm_is_on() -> None:
    (truth,) = runs_out(replace(changing(3, 1, ETCD_RESTARTS, roomy=True), leader="east-3"))
    steps = way(truth)
    assert "TransferLeadership east-1" in steps
    assert steps.index("RemoveMember east-2") < steps.index("StopUnit etcd of east-1") < steps.index("Disarm")


def test_a_dead_member_that_is_not_wanted_goes_first_while_the_alarm_is_on() -> None:
    (truth,) = runs_out(changing(3, 1, ETCD_RESTARTS, roomy=True))
    steps = way(with_power(truth, Power.OFF, "east-3"))
    assert steps.index("RemoveMember east-3") < steps.index("StopUnit kube-apiserver of east-2")


def test_a_learner_is_promoted_where_a_voter_can_take_its_larger_quota_only_then() -> None:
    truth = until(changing(1, 3, ETCD_RESTARTS, roomy=True), about_to(Promote))
    first = next(each for each in plan(observe(truth)).now if isinstance(each, Promote))
    (cramped,) = runs_out(apply(truth, first))
    steps = way(cramped)
    assert steps.index("Promote east-3") < steps.index("StopUnit etcd of east-1") < steps.index("Disarm")


def test_a_change_that_makes_no_room_does_not_stop_the_only_apiserver_while_the_alarm_is_on() -> None:
    (truth,) = runs_out(changing(1, 1, ReplicaChange(restart=frozenset({Component.APISERVER})), roomy=True))
    for _ in range(30):
        now = plan(observe(truth)).now
        assert not [each for each in names(now).split(", ") if each.startswith("StopUnit")]
        for each in now:
            truth = apply(truth, each)
        truth = truth if now else tick(truth)


# --- history --------------------------------------------------------------------------------------------------------


def test_history_is_forgotten_up_to_what_all_had_some_seconds_ago() -> None:
    world = full(CRAMPED, CRAMPED, CRAMPED)
    found = step(world)
    assert isinstance(found, Compact)
    assert found.revision == 7
    assert "a moment" in waits(full(CRAMPED, CRAMPED, CRAMPED, noted=Full(since=0.0, revision=7)))
    first = step(full(CRAMPED, CRAMPED, CRAMPED, noted=None))
    assert isinstance(first, NoteFull)
    assert first.revision == 7


def test_no_history_is_forgotten_that_a_member_lacks() -> None:
    behind = with_member(full(CRAMPED, CRAMPED, CRAMPED), "east-3", lambda each: replace(each, revision=6))
    assert "a moment" in waits(behind)
    first = step(with_memory(behind, full=None))
    assert isinstance(first, NoteFull)
    assert first.revision == 6


def test_no_history_is_forgotten_where_free_room_is_enough() -> None:
    assert isinstance(step(full(FREE, FREE, FREE)), Defragment)


def test_a_quota_that_is_too_small_is_said_and_history_is_not_forgotten_over_and_over(golden: Golden) -> None:
    once = replace(NOTED, compacted=True, since=-AGAIN, defragmented=("east-1", "east-2", "east-3"))
    spaces = tuple(replace(CRAMPED, size=95 << 20, in_use=90 << 20, quota=100 << 20) for _ in range(3))
    (wait,) = does(full(*spaces, noted=once)).waiting
    golden(str(wait))
    # Somebody has deleted something since.
    world = full(*spaces, noted=replace(once, revision=6))
    assert isinstance(step(world), NoteFull)
    assert "larger quota" in waits(full(*spaces, noted=replace(once, revision=6, since=-AGAIN + 1)))


@pytest.mark.parametrize(
    ("change", "cordoned"),
    [
        (ReplicaChange(restart=frozenset({Component.ETCD})), False),
        (ReplicaChange(restart=frozenset({Component.CONTROLLER_MANAGER})), True),
        (ReplicaChange(restart=frozenset({Component.ETCD})), True),
        (ReplicaChange(exchange=True), True),
        (ReplicaChange(exchange=True), False),
    ],
)
def test_a_revision_that_is_not_taken_up_is_named_with_what_holds_it_up(
    change: ReplicaChange, cordoned: bool, golden: Golden
) -> None:
    """It may have the larger quota already."""
    once = replace(NOTED, compacted=True, since=-AGAIN, defragmented=("east-1",))
    world = full(replace(CRAMPED, size=95 << 20, in_use=90 << 20, quota=100 << 20), noted=once)
    (record,) = world.memory.replicas
    held = replace(
        world,
        revision="new",
        changes=((record.revision, "new", change),),
        cordoned=("east-1",) if cordoned else (),
    )
    wait = lacks_quota(held, Cluster.MAIN)
    golden(str(wait))


def test_history_is_kept_where_those_without_room_get_it_by_defragmentation() -> None:
    """How much one uses that has room is no reason."""
    assert isinstance(step(full(Space(size=80, in_use=78, quota=100), FREE, ROOM)), Defragment)
    assert isinstance(step(full(CRAMPED, FREE, ROOM)), Compact)


def test_history_is_compacted_when_its_time_is_over() -> None:
    history = full(CRAMPED).settings.history
    assert "a moment" in waits(full(CRAMPED, noted=replace(NOTED, since=0.1 - history)))
    assert isinstance(step(full(CRAMPED, noted=replace(NOTED, since=-history))), Compact)


def test_history_is_not_compacted_again_where_defragmentation_helps() -> None:
    once = replace(NOTED, since=-AGAIN, revision=6, compacted=True)
    assert isinstance(step(full(ROOM, FREE, noted=once)), Defragment)


def test_a_revision_that_a_member_does_not_say_may_be_any() -> None:
    """No history is compacted that it may lack, and none for voters of which nothing is known."""
    unsaid = with_member(full(CRAMPED, ROOM, noted=None), "east-2", lambda each: replace(each, revision=None))
    strangers = full(CRAMPED, noted=None)
    assert strangers.membership is not None
    nobody = tuple(replace(each, replica="") for each in strangers.membership.members)
    for world in (unsaid, with_membership(strangers, members=nobody)):
        found = step(world)
        assert isinstance(found, NoteFull)
        assert found.revision == 0


def test_the_one_that_is_defragmented_need_not_be_well_itself() -> None:
    world = full(ROOM, FREE, ROOM)
    ill = with_member(world, "east-2", lambda each: replace(each, health=Health.SUSPECT))
    assert isinstance(step(ill), Defragment)
    others = with_member(ill, "east-3", lambda each: replace(each, lag=5_000))
    assert waits(others) == "east-3 to be healthy before east-2 is defragmented"


def test_what_to_do_about_a_wait_names_the_first_that_is_waited_for() -> None:
    ill = full(ROOM, ROOM, FREE)
    for name in ("east-1", "east-2"):
        ill = with_member(ill, name, lambda each: replace(each, health=Health.SUSPECT))
    silent = full(FREE, None, ROOM)
    copies = full(FREE, ROOM, ROOM)
    for name in ("east-2", "east-3"):
        copies = with_member(copies, name, lambda each: replace(each, learner=True, lag=5_000))
    for world, name in ((ill, "east-1"), (silent, "east-2"), (copies, "east-2")):
        (wait,) = does(world).waiting
        assert f"--replica {name}" in wait.then


def test_a_member_is_defragmented_at_its_own_site() -> None:
    truth = until(moving(3, 3), lambda now, _: len(now.voters) > 3)
    (truth,) = runs_out(truth)
    sites: dict[str, str] = {}
    for _ in range(60):
        for each in plan(observe(truth)).now:
            if isinstance(each, Defragment):
                sites[each.replica] = each.site
        if not truth.full:
            break
        now = plan(observe(truth))
        for each in now.now:
            truth = apply(truth, each)
        truth = truth if now.now else tick(truth)
    assert {name.split("-")[0] for name in sites} == {"east", "west"}
    assert all(name.startswith(site) for name, site in sites.items())


def test_what_a_member_says_is_in_use_counts_no_more_once_history_is_forgotten() -> None:
    """It knows that as of its last write, and none come."""
    once = replace(NOTED, compacted=True, defragmented=("east-2", "east-3"))
    found = step(full(CRAMPED, ROOM, ROOM, noted=once, leader="east-2"))
    assert isinstance(found, Defragment)
    assert found.replica == "east-1"
    world = full(CRAMPED, ROOM, ROOM, noted=once)
    after = found.remembered(world.memory, 0.0).full
    assert after is not None
    assert after.defragmented == ("east-2", "east-3", "east-1")
    assert "larger quota" in waits(full(CRAMPED, ROOM, ROOM, noted=after, leader="east-2"))


def test_with_a_larger_quota_writes_are_taken_again() -> None:
    larger = tuple(replace(CRAMPED, quota=200) for _ in range(3))
    assert isinstance(step(full(*larger, noted=replace(NOTED, compacted=True))), Disarm)
    assert not isinstance(step(full(larger[0], larger[1], FREE)), Disarm), "each member by its own quota"


# --- one by one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ill",
    [
        lambda each: replace(each, health=Health.SUSPECT),
        lambda each: replace(each, health=Health.UNREACHABLE),
        lambda each: replace(each, lag=10**6),
        lambda each: replace(each, lag=None),
    ],
)
def test_nobody_is_defragmented_while_another_voter_is_not_well(
    ill: Callable[[MemberFact], MemberFact], golden: Golden
) -> None:
    golden(waits(with_member(full(FREE, FREE, ROOM), "east-3", ill)))


def test_who_is_down_is_not_waited_for_but_who_does_not_say_how_full_it_is(golden: Golden) -> None:
    """Nothing is written anyway, and exchanges stand still: who is down for good would hold all up for ever."""
    world = with_member(full(FREE, FREE, None), "east-3", lambda each: replace(each, health=Health.DOWN))
    found = step(world)
    assert isinstance(found, Defragment)
    assert found.replica == "east-2"
    golden(waits(full(FREE, FREE, None)))


@pytest.mark.parametrize("health", [Health.DOWN, Health.SUSPECT, Health.UNREACHABLE])
def test_beside_a_voter_that_belongs_to_no_replica_rule_1_decides_and_not_what_it_says(
    health: Health, golden: Golden
) -> None:
    def beside(world: World, count: int) -> World:
        unknown = (MemberFact(id=0x90 + each, replica="", learner=False, health=health) for each in range(count))
        return joined_by(replace(world, plane_name="demo"), *unknown)

    (wait,) = does(beside(full(FREE, FREE, FREE), 1)).waiting
    golden(str(wait))
    five = full(*(FREE,) * 5)
    assert isinstance(step(beside(five, 1)), Defragment), "4 of 6 are a quorum"
    assert "voter 90" in whats(does(beside(five, 3)))[0], "4 of 8 are none"
    history = step(beside(full(CRAMPED, CRAMPED, CRAMPED), 1))
    assert isinstance(history, Compact), "that stops no member"
    assert isinstance(step(beside(full(ROOM, ROOM, ROOM), 1)), Disarm)


def test_a_learner_that_belongs_to_no_replica_goes_before_members_are_defragmented() -> None:
    world = full(FREE, FREE, FREE)
    unknown = MemberFact(id=0x90, replica="", learner=True, health=Health.DOWN, lag=10**6)
    found = step(joined_by(world, unknown))
    assert isinstance(found, RemoveMember)
    assert found.member == 0x90


def test_the_leader_is_defragmented_where_nobody_else_can_lead() -> None:
    assert isinstance(step(full(FREE, ROOM, ROOM)), TransferLeadership)
    alone = with_member(full(FREE, ROOM, None), "east-2", lambda each: replace(each, health=Health.DOWN))
    alone = with_member(alone, "east-3", lambda each: replace(each, health=Health.DOWN))
    found = step(alone)
    assert isinstance(found, Defragment)
    assert found.replica == "east-1"
    assert isinstance(step(full(FREE)), Defragment)


def test_nobody_is_defragmented_while_a_member_copies_and_a_learner_without_room_goes(golden: Golden) -> None:
    def beside(learner: MemberFact) -> World:
        return with_member(full(FREE, FREE, ROOM, ROOM), "east-4", lambda _: learner)

    copies = replace(member(4, None, learner=True), lag=10**6, health=Health.SUSPECT)
    golden(waits(beside(copies)))
    assert isinstance(step(beside(replace(copies, lag=None))), Defragment), "nobody hears of it"
    found = step(beside(member(4, FREE, learner=True)))
    assert isinstance(found, RemoveMember)
    assert found.member == 4
    assert isinstance(step(beside(member(4, ROOM, learner=True))), Defragment)


def test_nothing_is_touched_while_members_disagree() -> None:
    world = full(CRAMPED, CRAMPED, CRAMPED)
    both = ("memberID:1 alarm:NOSPACE ", "memberID:2 alarm:CORRUPT ")
    assert does(with_membership(world, alarms=both)) == RuleOutcome()
    assert does(full(CRAMPED, CRAMPED, CRAMPED, alarm="CORRUPT", noted=None)) == RuleOutcome()


# --- what is remembered ---------------------------------------------------------------------------------------------


def test_that_there_was_no_room_is_forgotten_when_somebody_else_made_it() -> None:
    world = observe(settled(empty("east", 3)))
    left = with_memory(world, full=NOTED)
    found = step(left)
    assert isinstance(found, NoteFull)
    assert found.remembered(left.memory, 0.0).full is None


def test_each_cluster_makes_room_by_itself() -> None:
    start = settled(replace(moving_apart(3, 3), slots=EAST))
    main, events = runs_out(start)
    assert (main.full, main.events_full, events.full, events.events_full) == (True, False, False, True)
    noted = until(events, lambda _, now: any(isinstance(each, Compact) for each in now.now))
    assert noted.memory.full is None
    assert noted.memory.of(Cluster.EVENTS).full is not None
    end = until(events, is_done)
    assert (end.memory.events.full, end.events_full) == (None, False)


# --- other data than most -------------------------------------------------------------------------------------------


def differing(name: str, cluster: Cluster = Cluster.MAIN) -> Truth:
    """A settled plane of which one member was found to have other data than most."""
    start = settled(empty("east", 3) if cluster is Cluster.MAIN else replace(moving_apart(3, 3), slots=EAST))
    found = NoteDiffering(site="", why="", replicas=(name,), cluster=cluster)
    return replace(start, memory=remember(start.memory, found, start.now))


@pytest.mark.parametrize("cluster", Cluster)
def test_a_replica_whose_member_has_other_data_is_exchanged_and_serves_until_another_has_come(cluster: Cluster) -> None:
    start = differing("east-2", cluster)
    assert view(observe(start)).outdated == {"east-2"}
    steps = way(start)
    assert steps.index("Promote east-4") < steps.index("StopUnit kube-apiserver of east-2")
    assert [each.name for each in until(start, is_done).memory.replicas] == ["east-1", "east-3", "east-4"]


def test_nobody_joins_while_the_leader_has_other_data_than_most(golden: Golden) -> None:
    start = differing("east-1")
    assert start.leader == "east-1"
    steps = way(start)
    assert steps.index("TransferLeadership east-2") < steps.index("AddLearner east-4")
    joins = until(start, lambda _, now: any(isinstance(each, TransferLeadership) for each in now.now))
    nobody = observe(joins)
    assert nobody.membership is not None
    late = tuple(replace(each, lag=10**6) for each in nobody.membership.members)
    outcome = planned(with_membership(nobody, members=late), AddLearner, StartUnit, TransferLeadership)
    assert outcome.steps == ()
    golden(whats(outcome))


def test_one_that_does_not_lead_hands_nothing_over() -> None:
    assert not any("TransferLeadership" in each for each in way(differing("east-2"))[:4])


@pytest.mark.parametrize("named", [("east-1",), ("east-1", "east-3")])
def test_a_leader_that_a_person_wants_exchanged_hands_over_before_anybody_copies_from_it(
    named: tuple[str, ...],
) -> None:
    """The person may know that its data is wrong."""
    steps = way(replace(settled(empty("east", 3)), condemned=named))
    assert steps.index("TransferLeadership east-2") < steps.index("AddLearner east-4")


def test_where_all_are_to_be_exchanged_the_first_joiner_copies_from_who_leads_and_leads_itself_then() -> None:
    steps = way(replace(settled(empty("east", 3)), condemned=("east-1", "east-2", "east-3")))
    added = [steps.index(f"AddLearner east-{number}") for number in (4, 5, 6)]
    assert [steps.index(each) for each in steps if "TransferLeadership" in each] == [
        steps.index("TransferLeadership east-4")
    ]
    assert added[0] < steps.index("TransferLeadership east-4") < added[1] < added[2]


def test_a_joiner_that_copies_already_waits_for_another_leader_than_one_whose_data_differs() -> None:
    copying = until(replace(settled(empty("east", 3)), condemned=("east-3",)), about_to(StartUnit))
    found = NoteDiffering(site="", why="", replicas=("east-1",))
    steps = doing(replace(copying, memory=remember(copying.memory, found, copying.now)))
    assert steps == ["TransferLeadership east-2"]
