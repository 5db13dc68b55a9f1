"""What a drill strikes, when it is refused, what its course comes to, and when it is due."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from model.observations import Seen, dead, seen, voters_at
from model.stories import led_by
from pydantic import ValidationError
from support.golden import Golden

from quarterdeck.api.base import ConditionStatus, Metadata
from quarterdeck.api.belongings import Drill, DrillPhase, DrillSpec, DrillStatus
from quarterdeck.api.conditions import ConditionReason
from quarterdeck.api.plane.drills import DrillSchedule
from quarterdeck.api.plane.etcd import ETCD_ELECTION
from quarterdeck.drills import judgement
from quarterdeck.drills.aim import Aim, Ground, Hit, Wish, aim, loss_of
from quarterdeck.drills.judgement import HOLD, Answered, Detection, Sight, finding, hold_of
from quarterdeck.drills.refusals import Standing, dangers, reasons
from quarterdeck.drills.schedule import due, proven, restore_proven
from quarterdeck.engine.observation.slowness import DISK
from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed
from quarterdeck.model.balancers import BalancerFact, EdgeFact
from quarterdeck.model.components import Component
from quarterdeck.model.faults import SLOW_SYNC, Fail, FaultKind
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.model.world import World
from quarterdeck.planner.survival import Loss
from quarterdeck.planner.view import view

NOW = datetime(2026, 11, 23, 3, 0, tzinfo=UTC)
HUB = Machine(name="hub-a1", site="hub", zone="a", address="127.0.0.1")


def served(*replicas: Seen) -> World:
    names = frozenset(each.name for each in replicas)
    east = BalancerFact(site="east", running=True, backends=names, healthy=names)
    return replace(seen(*replicas, to="east", count=len(replicas), leader="east-1"), balancers=(east,), name_servers=1)


def ground(*replicas: Seen) -> Ground:
    machines = [
        Machine(name=f"east-{zone}{row}", site="east", zone=zone, address="127.0.0.1")
        for zone in "abc"
        for row in (1, 2)
    ]
    edge = Machine(name="east-edge", site="east", zone="a", address="127.0.0.1", role=MachineRole.EDGE)
    world = served(*(replicas or voters_at("east", 3)))
    return Ground(plane="demo", site="east", world=world, machines=(*machines, edge), hub=(HUB,))


def struck(fail: Fail, **named: object) -> Aim:
    return aim(ground(), Wish(fail=fail, **named))  # type: ignore[arg-type]


def answers_to(fail: Fail, **named: object) -> tuple[str, ...]:
    aimed = struck(fail, **named)
    return dangers({"demo": (view(ground().world), aimed.loss)}, dns=aimed.dns)


# What is struck


def test_every_failure_that_there_is_strikes_something() -> None:
    for fail in set(Fail) - {Fail.TOTAL_LOSS}:
        assert struck(fail).hits, fail


def test_a_manager_is_on_no_machine_and_planes_run_on_without_it(golden: Golden) -> None:
    aimed = struck(Fail.MANAGER)
    assert (aimed.manager, aimed.machines, struck(Fail.UNIT).manager) == (True, frozenset(), False)
    assert answers_to(Fail.MANAGER) == ()
    (danger,) = dangers({"demo": (view(ground().world), aimed.loss)}, orphaned=True)
    golden(danger)


def test_each_drill_strikes_another_replica_unless_one_is_named() -> None:
    machines = [struck(Fail.MACHINE, turn=turn).machines for turn in range(4)]
    assert machines == [{"east-a1"}, {"east-b1"}, {"east-c1"}, {"east-a1"}]
    assert struck(Fail.MACHINE, replica="east-3", turn=0).machines == {"east-c1"}


def test_a_zone_goes_with_all_its_machines_and_the_load_balancers_that_are_there() -> None:
    a, b = struck(Fail.ZONE, zone="a"), struck(Fail.ZONE, zone="b")
    assert (a.machines, b.machines) == ({"east-a1", "east-a2", "east-edge"}, {"east-b1", "east-b2"})
    assert (a.loss.edges, b.loss.edges) == ({"east"}, frozenset())
    assert b.loss.replicas == {"east-2"}


def test_a_quorum_is_as_many_machines_as_cost_it() -> None:
    assert len(struck(Fail.QUORUM).hits) == 2
    assert len(aim(ground(*voters_at("east", 5)), Wish(fail=Fail.QUORUM)).hits) == 3
    assert len(aim(ground(Seen("east-1")), Wish(fail=Fail.QUORUM)).hits) == 1


def test_of_several_edges_or_dns_servers_one_is_struck_by_turns_and_that_is_survived() -> None:
    here, edges = ground(), (EdgeFact(name="east-edge"), EdgeFact(name="east-edge-2"))
    other = Machine(name="east-edge-2", site="east", zone="b", address="127.0.0.1", role=MachineRole.EDGE)
    world = replace(here.world, balancers=(replace(here.world.balancer("east"), edges=edges),))
    both = replace(here, world=world, machines=(*here.machines, other), hub=(HUB, replace(HUB, name="hub-b1")))
    for fail, names in ((Fail.EDGE, ("east-edge", "east-edge-2")), (Fail.DNS, ("hub-a1", "hub-b1"))):
        for turn, name in enumerate((*names, names[0])):
            aimed = aim(both, Wish(fail=fail, turn=turn))
            assert aimed.machines == {name}
            assert aimed.loss.edges == ({name} if fail is Fail.EDGE else frozenset())
            spread = view(replace(world, name_servers=2))
            assert dangers({"demo": (spread, aimed.loss)}, dns=aimed.dns) == ()
    zone = aim(both, Wish(fail=Fail.ZONE, zone="b"))
    assert zone.loss.edges == {"east-edge-2"}


def on_hosts() -> Ground:
    """Three hosts, each of which has a replica, a load balancer and a DNS server."""
    here = ground()
    hosts = {zone: f"192.0.2.{number}" for number, zone in enumerate("abc", 1)}
    made = [
        Machine(name=f"east-{zone}1{name}", site="east", zone=zone, address=host, host=host, role=role)
        for zone, host in hosts.items()
        for name, role in (("", MachineRole.CONTROL), ("-edge", MachineRole.EDGE), ("-dns", MachineRole.DNS))
    ]
    machines = tuple(
        replace(each, host=hosts[each.zone]) if each.name.endswith("1") else each for each in here.world.machines
    )
    edges = tuple(EdgeFact(name=f"east-{zone}1-edge", host=host) for zone, host in hosts.items())
    world = replace(
        here.world, machines=machines, name_servers=3, balancers=(replace(here.world.balancer("east"), edges=edges),)
    )
    return replace(here, world=world, machines=made, hub=[each for each in made if each.role is MachineRole.DNS])


@pytest.mark.parametrize("fail", [Fail.MACHINE, Fail.ZONE, Fail.EDGE, Fail.DNS], ids=str)
def test_a_host_fails_as_one_with_all_that_is_on_it(fail: Fail) -> None:
    here = on_hosts()
    aimed = aim(here, Wish(fail=fail, turn=1))
    assert len(aimed.hits) == 1, "a host has one fault at a time"
    assert aimed.hosts == {"192.0.2.2"}
    assert aimed.machines == {"east-b1", "east-b1-edge", "east-b1-dns"}
    assert (aimed.loss.replicas, aimed.loss.edges, aimed.dns) == ({"east-2"}, {"east-b1-edge"}, True)


def test_a_quorum_of_hosts_is_one_fault_on_each() -> None:
    aimed = aim(on_hosts(), Wish(fail=Fail.QUORUM))
    assert [each.machine for each in aimed.hits] == ["east-a1", "east-b1"]
    assert (aimed.loss.replicas, len(aimed.loss.edges)) == ({"east-1", "east-2"}, 2)


def test_planes_elsewhere_lose_what_they_have_on_a_host_that_a_dns_server_is_on() -> None:
    here = on_hosts()
    elsewhere = replace(here, site="west", machines=[])
    aimed = aim(elsewhere, Wish(fail=Fail.DNS))
    loss = loss_of(here.world, "west", aimed.machines, frozenset(), aimed.hosts)
    assert (loss.replicas, loss.edges) == ({"east-1"}, {"east-a1-edge"})


def test_the_leader_is_who_leads_now(golden: Golden) -> None:
    here = ground()
    led = replace(here, world=led_by(here.world, "east-2"))
    hit = Hit(machine="east-b1", kind=FaultKind.KILL_UNIT, replica="east-2", component=Component.ETCD)
    assert aim(led, Wish(fail=Fail.LEADER)).hits == (hit,)
    unknown = replace(here, world=led_by(here.world, None))
    with golden.raises(PreconditionFailed):
        aim(unknown, Wish(fail=Fail.LEADER))


def test_of_members_that_others_outvote_one_that_follows_has_other_data(golden: Golden) -> None:
    assert [struck(Fail.CORRUPT, turn=turn).hits[0].replica for turn in range(3)] == ["east-2", "east-3", "east-2"]
    hit = Hit(machine="east-a1", kind=FaultKind.CORRUPT, replica="east-1", component=Component.ETCD)
    assert struck(Fail.CORRUPT, replica="east-1").hits == (hit,), "the leader, if it is named"
    for few in (voters_at("east", 2), voters_at("east", 1)):
        with golden.raises(PreconditionFailed):
            aim(ground(*few), Wish(fail=Fail.CORRUPT))
    here = ground()
    unknown = replace(here, world=led_by(here.world, None))
    with golden.raises(PreconditionFailed):
        aim(unknown, Wish(fail=Fail.CORRUPT))
    down = ground(*voters_at("east", 2), dead("east-3"))
    aimed = aim(down, Wish(fail=Fail.CORRUPT, replica="east-2"))
    assert dangers({"demo": (view(down.world), aimed.loss)})


def test_the_disk_of_who_leads_is_slow_unless_another_one_is_named_and_that_costs_nobody_anything(
    golden: Golden,
) -> None:
    here = ground()
    led = replace(here, world=led_by(here.world, "east-2"))
    for turn in range(3):
        aimed = aim(led, Wish(fail=Fail.SLOW_DISK, turn=turn))
        assert aimed.hits == (Hit(machine="east-b1", kind=FaultKind.SLOW_DISK),)
        assert (aimed.spares, aimed.loss) == (True, Loss(where=""))
    assert aim(led, Wish(fail=Fail.SLOW_DISK, replica="east-3")).machines == {"east-c1"}
    unknown = replace(here, world=led_by(here.world, None))
    with golden.raises(PreconditionFailed):
        aim(unknown, Wish(fail=Fail.SLOW_DISK))
    down = ground(*voters_at("east", 2), dead("east-3"))
    assert dangers({"demo": (view(down.world), aim(down, Wish(fail=Fail.SLOW_DISK)).loss)}) == ()


def test_a_full_disk_costs_the_members_on_its_machine(golden: Golden) -> None:
    aimed = struck(Fail.DISK_FULL, replica="east-2")
    assert aimed.hits == (Hit(machine="east-b1", kind=FaultKind.FILL_DISK),)
    assert (aimed.spares, aimed.loss.replicas) == (False, {"east-2"})
    down = ground(*voters_at("east", 2), dead("east-3"))
    (danger,) = dangers({"demo": (view(down.world), aim(down, Wish(fail=Fail.DISK_FULL, replica="east-1")).loss)})
    golden(danger)


def test_a_slow_disk_is_found_by_a_manager_and_a_leader_that_has_one_is_still_followed() -> None:
    assert DISK.slow < SLOW_SYNC < ETCD_ELECTION / 1000, "else nobody calls it slow, or the members elect another one"


def test_what_is_named_must_be_there_and_have_a_meaning(golden: Golden) -> None:
    with golden.raises(NotFound):
        struck(Fail.MACHINE, replica="east-9")
    with golden.raises(NotFound):
        struck(Fail.ZONE, zone="z")
    for wrong in ({"fail": Fail.EDGE, "replica": "east-1"}, {"fail": Fail.MACHINE, "zone": "a"}):
        with golden.raises(InvalidInput):
            struck(**wrong)  # type: ignore[arg-type]
    with golden.raises(InvalidInput):
        struck(Fail.LEADER, component=Component.ETCD)
    with golden.raises(PreconditionFailed):
        aim(replace(ground(), hub=()), Wish(fail=Fail.DNS))
    for absent in (Component.CLOUD_CONTROLLER_MANAGER, Component.EVENTS_ETCD):
        with golden.raises(PreconditionFailed):
            struck(Fail.UNIT, replica="east-1", component=absent)
    with golden.raises(PreconditionFailed):
        aim(replace(ground(), site="west"), Wish(fail=Fail.MACHINE))


# When it is refused


@pytest.mark.parametrize(
    "fail",
    [
        *(Fail.UNIT, Fail.HANG, Fail.MACHINE, Fail.FREEZE, Fail.LEADER, Fail.DATA_LOSS),
        *(Fail.SLOW_DISK, Fail.DISK_FULL),
    ],
)
def test_what_is_survived_is_no_danger(fail: Fail) -> None:
    assert answers_to(fail) == ()


def test_what_is_not_survived_is_a_danger_and_says_why(golden: Golden) -> None:
    golden(answers_to(Fail.QUORUM))
    golden(answers_to(Fail.EDGE))
    golden(answers_to(Fail.DNS))
    assert answers_to(Fail.ZONE, zone="b") == ()
    assert answers_to(Fail.ZONE, zone="a") != ()


def test_whoever_else_has_something_there_counts_too(golden: Golden) -> None:
    one = served(Seen("east-1"))
    loss = loss_of(one, "east", struck(Fail.MACHINE, replica="east-1").machines, frozenset({"east-edge"}))
    here = {"demo": (view(ground().world), struck(Fail.MACHINE).loss), "other": (view(one), loss)}
    golden(dangers(here, dns=False))


def test_a_member_that_is_down_makes_another_ones_failure_a_danger(golden: Golden) -> None:
    here = ground(*voters_at("east", 2), dead("east-3"))
    aimed = aim(here, Wish(fail=Fail.MACHINE, replica="east-1"))
    (danger,) = dangers({"demo": (view(here.world), aimed.loss)}, dns=False)
    golden(danger)


def test_what_is_not_known_to_be_survived_is_a_danger_as_well(golden: Golden) -> None:
    here = ground(*voters_at("east", 2), replace(Seen("east-3"), lag=None))
    aimed = aim(here, Wish(fail=Fail.MACHINE, replica="east-1"))
    (danger,) = dangers({"demo": (view(here.world), aimed.loss)}, dns=False)
    golden(danger)


@pytest.mark.parametrize(
    "standing",
    [
        Standing(paused="it is paused"),
        Standing(doing="demo-3", unwell="waiting"),
        Standing(unwell="waiting for east-1"),
        Standing(deleting=True),
        Standing(cannot=("site east cannot make that: no",)),
        Standing(made=("machine east-a1 is off",)),
    ],
)
def test_some_planes_are_not_drilled_however_much_it_is_wanted(standing: Standing, golden: Golden) -> None:
    golden(reasons(Fail.MACHINE, standing))
    assert reasons(Fail.MACHINE, Standing()) == ()


def test_what_only_a_manager_mends_needs_one(golden: Golden) -> None:
    for fail in (Fail.DATA_LOSS, Fail.CORRUPT, Fail.MANAGER):
        golden(reasons(fail, Standing())[0])
        assert reasons(fail, Standing(manager="somebody")) == ()


# What it comes to

WELL = frozenset({"machine", "zone"})


def looks(*found: tuple[float, bool]) -> list[Sight]:
    """Looks at these times, at a plane that was well or not."""
    return [Sight(at=at, done=True, survives=WELL if well else frozenset()) for at, well in found]


BEFORE = looks((0.0, True))[0]


def test_times_are_counted_from_the_failure_to_the_first_look_that_sees_it_and_to_the_last_that_does_not() -> None:
    course = looks((10.2, True), (10.5, False), (11.0, True), (11.5, False), (12.0, True), (14.0, True))
    assert judgement.detected(BEFORE, course, 10.0) == pytest.approx(0.5)
    assert judgement.redundant(BEFORE, course, 10.0) == pytest.approx(2.0)


def test_what_was_over_before_a_look_was_never_detected_and_what_is_not_over_has_no_end() -> None:
    assert judgement.detected(BEFORE, looks((10.2, True)), 10.0) is None
    assert judgement.redundant(BEFORE, looks((10.2, True), (11.0, True)), 10.0) == 0.0
    assert judgement.redundant(BEFORE, looks((10.2, True), (11.0, False)), 10.0) is None
    assert judgement.redundant(BEFORE, [], 10.0) is None


def test_what_a_manager_alone_can_tell_is_found_once_it_does() -> None:
    slow = frozenset({"the disk is slow"})
    course = [
        *looks((10.5, False), (11.0, True)),
        Sight(at=42.0, done=True, troubles=slow, reported=slow, survives=WELL),
    ]
    assert judgement.detected(BEFORE, course, 10.0) == pytest.approx(0.5)
    assert judgement.reported(BEFORE, course, 10.0) == pytest.approx(32.0)
    assert judgement.reported(replace(BEFORE, reported=slow), course, 10.0) is None
    assert judgement.reported(BEFORE, course[:2], 10.0) is None


def test_a_plane_is_as_before_when_nothing_is_left_and_no_trouble_is_new() -> None:
    assert not judgement.has_recovered(BEFORE, replace(BEFORE, done=False))
    assert not judgement.has_recovered(BEFORE, replace(BEFORE, troubles=frozenset({"no"})))
    old = replace(BEFORE, troubles=frozenset({"one DNS server"}))
    assert judgement.has_recovered(old, old)
    assert judgement.has_recovered(BEFORE, replace(BEFORE, survives=WELL | {"edge"}))


def test_clients_are_served_again_with_the_first_answer_after_the_last_failure() -> None:
    def answers(*found: tuple[float, bool]) -> list[Answered]:
        return [Answered(sent=at - 0.6, at=at, ok=ok) for at, ok in found]

    course = answers((9.0, False), (10.1, True), (10.4, False), (10.5, True), (11.0, False), (11.3, True), (12.0, True))
    assert judgement.served_again(course, 10.0) == pytest.approx(1.3)
    assert judgement.last_failure(course, 10.0) == pytest.approx(1.0)
    assert judgement.served_again(answers((9.0, False), (10.1, True)), 10.0) == 0.0
    assert judgement.last_failure(answers((9.0, False)), 10.0) is None
    assert judgement.last_failed_sent(course, 10.0) == pytest.approx(0.4)
    assert judgement.last_failed_sent(answers((10.5, False)), 10.0) is None, "it was under way"
    assert judgement.served_again(answers((10.1, True), (10.4, False)), 10.0) is None


def test_a_lost_write_a_missed_event_and_a_plane_that_is_not_as_before_fail_a_drill(golden: Golden) -> None:
    well = {"detected_after": None, "redundant_after": 1.0, "lost": 0, "missed": 0, "audited": True}
    assert judgement.verdict(Fail.MACHINE, Detection(), **well) == ""  # type: ignore[arg-type]
    sought = Detection(sought="a member with other data")
    golden(judgement.verdict(Fail.CORRUPT, sought, **well))  # type: ignore[arg-type]
    assert judgement.verdict(Fail.CORRUPT, sought, **{**well, "detected_after": 0.5}) == ""  # type: ignore[arg-type]
    for worse, words in (
        ({"lost": 1}, "1 acknowledged write was lost"),
        ({"missed": 2}, "2 events were missed"),
        ({"audited": False}, "could not be read"),
        ({"redundant_after": None}, "has not recovered to its state before machine failed"),
    ):
        assert words in judgement.verdict(Fail.MACHINE, Detection(), **{**well, **worse})  # type: ignore[arg-type]


def test_a_slow_disk_must_be_reported_by_the_manager_where_there_is_one(
    golden: Golden,
) -> None:
    def sought(fail: Fail, *, hold: float = hold_of(Fail.SLOW_DISK), manager: str = "me", known: bool = False) -> str:
        return finding(fail, hold=hold, manager=manager, known=known).sought

    assert [each for each in Fail if finding(each, hold=HOLD, manager="", known=False).by_report] == [Fail.SLOW_DISK]
    golden(sought(Fail.CORRUPT))
    golden(sought(Fail.SLOW_DISK))
    assert [sought(fail) for fail in Fail if fail not in (Fail.CORRUPT, Fail.SLOW_DISK)] == [""] * (len(Fail) - 2)
    assert sought(Fail.SLOW_DISK, hold=HOLD) == "", "it is over before a manager has read twice"
    assert sought(Fail.SLOW_DISK, known=True) == ""
    assert sought(Fail.SLOW_DISK, manager="") == ""
    (note,) = finding(Fail.SLOW_DISK, hold=HOLD, manager="", known=False).notes
    golden(note)


# When it is due

WEEK = DrillSchedule(fail=Fail.MACHINE, every="7d")  # type: ignore[arg-type]
NIGHT = DrillSchedule(fail=Fail.UNIT, every="1d", window="23:00-02:00")  # type: ignore[arg-type]
OLD = NOW - timedelta(days=100)


def drill(fail: Fail, ago: timedelta, phase: DrillPhase = DrillPhase.PASSED) -> Drill:
    return Drill(
        metadata=Metadata(name="demo-drill-1"),
        spec=DrillSpec(plane="demo", number=1, fail=fail, hold=30.0),
        status=DrillStatus(phase=phase, started_at=NOW - ago, message="why not"),
    )


def is_due(*drills: Drill, now: datetime = NOW, made: datetime = OLD) -> Fail | None:
    return due((WEEK, NIGHT), drills, now=now, made=made)


def test_a_drill_is_due_so_long_after_the_last_one_and_not_at_once_on_a_new_plane() -> None:
    assert is_due() is Fail.MACHINE
    assert is_due(made=NOW - timedelta(minutes=59)) is None
    assert is_due(drill(Fail.MACHINE, timedelta(days=6, hours=23))) is None
    assert is_due(drill(Fail.MACHINE, timedelta(days=7))) is Fail.MACHINE
    assert is_due(drill(Fail.MACHINE, timedelta(days=7), DrillPhase.FAILED)) is Fail.MACHINE


def test_one_that_did_not_come_to_its_end_is_soon_tried_again() -> None:
    assert is_due(drill(Fail.MACHINE, timedelta(minutes=59), DrillPhase.INTERRUPTED)) is None
    assert is_due(drill(Fail.MACHINE, timedelta(minutes=61), DrillPhase.INTERRUPTED)) is Fail.MACHINE


def test_a_window_may_go_over_midnight_and_who_has_waited_the_longest_comes_first() -> None:
    assert [NIGHT.open_at(NOW.replace(hour=hour)) for hour in (22, 23, 1, 2, 12)] == [False, True, True, False, False]
    assert WEEK.open_at(NOW)
    midnight, lately = NOW.replace(hour=0), drill(Fail.MACHINE, timedelta(days=8))
    assert is_due(lately, now=midnight) is Fail.UNIT
    assert is_due(lately, drill(Fail.UNIT, timedelta(days=1, hours=4)), now=midnight) is Fail.MACHINE


@pytest.mark.parametrize(
    "wrong", [{"every": "10m"}, {"window": "25:00-02:00"}, {"window": "02:00-02:00"}, {"fail": "nothing"}]
)
def test_a_schedule_that_makes_no_sense_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        DrillSchedule.model_validate({"fail": "machine", "every": "7d", **wrong})


def test_the_condition_says_when_each_was_last_proven(golden: Golden) -> None:
    def summary(*drills: Drill) -> tuple[ConditionStatus, str]:
        return proven((WEEK,), drills, NOW)[:2]

    assert summary() == (ConditionStatus.UNKNOWN, "NotProven")
    assert summary(drill(Fail.MACHINE, timedelta(days=1))) == (ConditionStatus.TRUE, "Proven")
    assert summary(drill(Fail.MACHINE, timedelta(days=15))) == (ConditionStatus.FALSE, "Overdue")
    failed = drill(Fail.MACHINE, timedelta(days=1), DrillPhase.FAILED)
    assert summary(drill(Fail.MACHINE, timedelta(days=2)), failed) == (ConditionStatus.FALSE, "DrillFailed")
    running = drill(Fail.MACHINE, timedelta(0), DrillPhase.RUNNING)
    assert summary(drill(Fail.MACHINE, timedelta(days=2)), running) == (ConditionStatus.TRUE, "Proven")
    golden(proven((WEEK, NIGHT), [failed], NOW)[2])


def test_no_loss_is_outlived_by_who_does_not_serve_as_it_is() -> None:
    down = served(Seen("east-1"), dead("east-2"), dead("east-3"))
    assert dangers({"demo": (view(down), Loss(where=""))}, dns=False) != ()


# Restores beside the plane


def test_the_last_restore_beside_the_plane_says_what_it_has_shown(golden: Golden) -> None:
    weekly = [DrillSchedule(fail=Fail.TOTAL_LOSS, every="7d")]  # type: ignore[arg-type]
    passed = drill(Fail.TOTAL_LOSS, timedelta(days=1))
    shown = passed.status.model_copy(update={"restored": 4.25, "lost_seconds": 0.75, "objects": 1234})
    passed = passed.model_copy(update={"status": shown})
    failed = drill(Fail.TOTAL_LOSS, timedelta(hours=1), DrillPhase.FAILED)
    found = [restore_proven(weekly, drills, NOW) for drills in ([], [passed], [passed, failed])]
    expected = [ConditionReason.NOT_PROVEN, ConditionReason.PROVEN, ConditionReason.DRILL_FAILED]
    assert [reason for _, reason, _ in found] == expected
    golden(words for *_, words in found)
