"""Nothing that two processes did at once may look as if they had not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.golden import Golden
from support.lock_histories import CCM, KCM, LOCK, SET, ZERO, act, tenure

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.handover.acts import Act
from quarterdeck.handover.judgement import Judgement, SetVerdict, judged
from quarterdeck.handover.tenures import Assignment, Tenure

#: Who holds the managers' own locks in all of these unless they say otherwise.
MAINS = (tenure(KCM.value, KCM, "demo-1", -100, 10), tenure(KCM.value, KCM, "demo-2", 11, token=1))
CLOUD_MAIN = tenure(CCM.value, CCM, "demo-3", -100)


def verdict(
    tenures: Sequence[Tenure], acts: Sequence[Act] = (), *, before: ControllerProgram = KCM, **more: object
) -> SetVerdict:
    (found,) = judged((SET,), tenures, acts, ZERO, ZERO + 60, before={SET.name: before}, **more)  # type: ignore[arg-type]
    return found


def handed_over() -> tuple[Tenure, ...]:
    """The set's lock goes from KCM to CCM, with a second in which nobody has it."""
    return (
        *MAINS,
        CLOUD_MAIN,
        tenure(LOCK, KCM, "demo-1", -100, 10),
        tenure(LOCK, CCM, "demo-3", 11.3, token=1),
    )


def test_a_set_that_was_handed_over_was_never_two_processes() -> None:
    acts = [act(KCM, "demo-1", 1), act(KCM, "demo-1", 9.9), act(CCM, "demo-3", 11.4), act(CCM, "demo-3", 59)]
    found = verdict(handed_over(), acts)
    assert found.finding is Judgement.PROVEN
    assert [(each.tenure.description, each.acts) for each in found.holders] == [
        ("kube-controller-manager of demo-1", 2),
        ("cloud-controller-manager of demo-3", 2),
    ]
    assert [(round(gap.seconds, 3), gap.heard) for gap in found.gaps] == [(1.3, None)]
    assert (found.acts, found.perhaps, found.unknown) == (4, 0, ())


def test_a_write_answered_after_the_examined_time_belongs_to_the_lock_held_at_that_moment() -> None:
    late = replace(act(CCM, "demo-3", 61), begun=ZERO + 59.9)
    found = verdict(handed_over(), [act(KCM, "demo-1", 1), late])
    assert (found.finding, found.outside) == (Judgement.PROVEN, ())


def test_who_acts_by_short_names_under_both_managers_locks_is_found(golden: Golden) -> None:
    """Neither took the migration lock: each found the set's controllers by another name on its list."""
    acts = [act(KCM, "demo-2", 20), act(CCM, "demo-3", 21)]
    found = verdict((*MAINS, CLOUD_MAIN), acts, before=CCM)
    assert found.finding is Judgement.BROKEN
    first = found.overlaps[0]
    golden(first.what)
    assert (first.begins, first.ends) == (ZERO + 11, ZERO + 60)


def test_two_managers_with_two_locks_are_found_though_neither_wrote_anything_at_the_same_time(golden: Golden) -> None:
    """One has the set under its own lock still, the other one took the set's."""
    tenures = (*MAINS, CLOUD_MAIN, tenure(LOCK, CCM, "demo-3", 5))
    found = verdict(tenures, [act(KCM, "demo-1", 2), act(CCM, "demo-3", 12)])
    assert found.finding is Judgement.BROKEN
    (only,) = found.overlaps
    assert (only.begins, only.ends) == (ZERO + 5, ZERO + 10)
    golden(only.what)


def test_a_holder_that_stood_still_and_wrote_after_the_next_one_took_the_lock_is_found(golden: Golden) -> None:
    tenures = (
        *MAINS,
        CLOUD_MAIN,
        tenure(LOCK, KCM, "demo-1", -100, 10, released=False, renewed=ZERO - 5),
        tenure(LOCK, CCM, "demo-3", 11, token=1),
    )
    found = verdict(tenures, [act(KCM, "demo-1", 1), act(KCM, "demo-1", 13), act(CCM, "demo-3", 12)])
    assert found.finding is Judgement.BROKEN
    (outside,) = found.outside
    assert outside.act.at == ZERO + 13
    golden(outside.after)
    assert any("kube-controller-manager of demo-1 wrote nodes/worker-1" in each.what for each in found.overlaps)


def test_a_write_without_a_lock_is_found_though_nobody_else_had_one() -> None:
    found = verdict(handed_over(), [act(KCM, "demo-1", 10.5)])
    assert found.finding is Judgement.BROKEN
    assert [each.after for each in found.outside] == [""]


def test_a_crash_leaves_a_gap_of_which_it_is_said_since_when_nothing_was_heard() -> None:
    tenures = (
        tenure(KCM.value, KCM, "demo-1", -100, 25, released=False, renewed=ZERO + 10),
        tenure(KCM.value, KCM, "demo-2", 25.2, token=1),
        CLOUD_MAIN,
        tenure(LOCK, KCM, "demo-1", -100, 25, released=False, renewed=ZERO + 10),
        tenure(LOCK, KCM, "demo-2", 25.2, token=1),
    )
    found = verdict(tenures, [act(KCM, "demo-1", 9), act(KCM, "demo-2", 26)])
    assert found.finding is Judgement.PROVEN
    (gap,) = found.gaps
    assert (round(gap.seconds, 3), round(gap.at_most, 3)) == (0.2, 15.2)


def test_a_set_is_its_owners_while_nobody_has_its_lock_and_a_crash_can_be_told_of_managers_locks_as_well() -> None:
    tenures = (CLOUD_MAIN, *MAINS)
    found = verdict(tenures, before=CCM)
    assert found.finding is Judgement.PROVEN
    assert [each.tenure.lock for each in found.holders] == [CCM.value]


def test_what_managers_were_told_says_who_had_a_set_though_nobody_acted() -> None:
    """The replicas of kube-controller-manager come to what runs no set one after the other."""
    tenures = (
        tenure(KCM.value, KCM, "demo-1", -100, 5),
        tenure(KCM.value, KCM, "demo-2", 6, 10, token=1),
        tenure(KCM.value, KCM, "demo-1", 11, token=2),
        CLOUD_MAIN,
        tenure(LOCK, CCM, "demo-3", 12),
    )
    run, rest = {SET.name: KCM.value}, {SET.name: ""}
    assignments = [Assignment(KCM.value, name, ZERO - 200, run) for name in ("demo-1", "demo-2")]
    after = [*assignments, Assignment(KCM.value, "demo-1", ZERO + 7, rest)]
    found = verdict(tenures, assignments=after)
    assert [(each.tenure.lock, each.tenure.replica) for each in found.holders] == [
        (KCM.value, "demo-1"),
        (KCM.value, "demo-2"),
        (LOCK, "demo-3"),
    ]
    assert (found.finding, [gap.seconds for gap in found.gaps]) == (Judgement.PROVEN, [1.0, 2.0])
    assert verdict(tenures, assignments=assignments).finding is Judgement.BROKEN, (
        "demo-1 was not told to leave it alone"
    )
    beyond = verdict(tenures, [act(KCM, "demo-1", 20)], assignments=after)
    assert beyond.finding is Judgement.BROKEN, "it did what it was not told"
    lost = [*after, Assignment(KCM.value, "demo-2", ZERO + 1, None)]
    assert [each.tenure.replica for each in verdict(tenures, assignments=lost).holders] == ["demo-1", "demo-3"]


def test_nothing_is_proven_where_an_audit_log_is_missing_and_what_was_seen_counts_all_the_same(golden: Golden) -> None:
    missing = ("the audit log of demo-2 could not be read: machine east-b1 does not answer",)
    found = verdict(handed_over(), [act(KCM, "demo-1", 1)], missing=missing)
    assert found.finding == Judgement.UNKNOWN
    golden(found.unknown)
    assert verdict(handed_over(), [act(KCM, "demo-1", 20)], missing=missing).finding is Judgement.BROKEN


def test_writes_that_may_be_of_the_set_are_no_proof_unless_they_are_by_who_has_it(golden: Golden) -> None:
    either = ("node-ipam-controller", "node-lifecycle-controller")
    harmless = act(KCM, "demo-1", 1, controllers=either)
    found = verdict(handed_over(), [harmless])
    assert (found.finding, found.acts, found.perhaps) == (Judgement.PROVEN, 0, 1)
    found = verdict(handed_over(), [act(KCM, "demo-2", 30, controllers=either)])
    assert (found.finding, found.perhaps) == (Judgement.UNKNOWN, 1)
    golden(found.unknown[0])
    both = SET.model_copy(update={"controllers": either})
    (sure,) = judged((both,), handed_over(), [harmless], ZERO, ZERO + 60)
    assert (sure.acts, sure.perhaps) == (1, 0), "whichever it was, it is of the set"


def test_where_nobody_watched_the_locks_writes_alone_are_judged(golden: Golden) -> None:
    one_after_the_other = [act(KCM, "demo-1", 1), act(KCM, "demo-1", 2), act(CCM, "demo-3", 3)]
    found = verdict((), one_after_the_other)
    assert found.finding is Judgement.UNKNOWN
    assert {each.lock for each in found.unwatched} == {KCM.value, CCM.value}
    found = verdict((), [*one_after_the_other, act(KCM, "demo-1", 4)])
    assert found.finding is Judgement.BROKEN
    golden(found.overlaps[0].what)


def test_a_holder_that_was_not_seen_is_missed_by_its_number() -> None:
    tenures = (*handed_over()[:-1], tenure(LOCK, CCM, "demo-3", 11.3, token=2))
    found = verdict(tenures)
    assert found.finding is Judgement.UNKNOWN
    (hidden,) = found.unwatched
    assert (hidden.lock, hidden.begins, hidden.ends) == (LOCK, ZERO + 10, ZERO + 11.3)
    assert found.gaps == (), "somebody had it then"


def test_writes_of_who_holds_a_lock_that_is_nobodys_known_prove_nothing() -> None:
    nameless = (*MAINS, replace(CLOUD_MAIN, replica=""))
    found = verdict(nameless, [act(CCM, "demo-3", 20)], before=CCM)
    assert found.finding is Judgement.UNKNOWN
    found = verdict(handed_over(), [act(CCM, "", 20)])
    assert found.finding is Judgement.UNKNOWN


def test_a_lock_that_went_over_unseen_proves_nothing_and_a_write_after_that_is_found(golden: Golden) -> None:
    first = replace(handed_over()[3], ends=ZERO + 11.3, unseen=True, released=False, renewed=ZERO + 9)
    tenures = (*handed_over()[:3], first, handed_over()[4])
    found = verdict(tenures)
    assert (found.finding, found.overlaps) == (Judgement.UNKNOWN, ())
    golden(found.unknown)
    assert verdict(tenures, [act(KCM, "demo-1", 12)]).finding is Judgement.BROKEN


def test_what_clocks_may_differ_by_is_no_overlap() -> None:
    tenures = (*handed_over()[:-1], tenure(LOCK, CCM, "demo-3", 9.96, token=1))
    assert verdict(tenures).finding is Judgement.PROVEN
    assert verdict(tenures, slack=0.01).finding is Judgement.BROKEN


def test_a_set_may_come_back_to_the_replica_that_had_it() -> None:
    tenures = (
        *MAINS,
        tenure(CCM.value, CCM, "demo-3", -100, 10),
        tenure(CCM.value, CCM, "demo-3", 29, token=1),
        tenure(LOCK, CCM, "demo-3", -100, 10),
        tenure(LOCK, KCM, "demo-2", 11, 28, token=1),
        tenure(LOCK, CCM, "demo-3", 29, token=2),
    )
    acts = [act(CCM, "demo-3", 5), act(KCM, "demo-2", 20), act(CCM, "demo-3", 40)]
    assert verdict(tenures, acts, before=CCM).finding is Judgement.PROVEN


PROCESSES = [(KCM, "demo-1"), (KCM, "demo-2"), (CCM, "demo-1"), (CCM, "demo-3")]
MOMENTS = st.integers(1, 59)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Tenure], list[Act]]:
    tenures = []
    for lock in (LOCK, KCM.value, CCM.value):
        theirs = [each for each in PROCESSES if lock in (LOCK, each[0].value)]
        ends = sorted(draw(st.lists(st.integers(-5, 65), min_size=2, max_size=6, unique=True)))
        for token, (begins, end) in enumerate(zip(ends[::2], ends[1::2], strict=False)):
            manager, replica = draw(st.sampled_from(theirs))
            longer = draw(st.sampled_from([0, 0, 0, 7]))
            tenures.append(tenure(lock, manager, replica, begins, end + longer, token=token))
    moments = draw(st.lists(MOMENTS, min_size=3, max_size=8, unique=True))
    acts = [act(*draw(st.sampled_from(PROCESSES)), moment) for moment in sorted(moments)]
    return tenures, acts


def interleave(tenures: Sequence[Tenure], acts: Sequence[Act]) -> bool:
    """Whether somebody wrote between two writes of one process that had not got a lock again in between."""
    return any(
        one.process == third.process != second.process
        and not any(each.process == third.process and second.at <= each.begins <= third.at for each in tenures)
        for number, one in enumerate(acts)
        for middle, second in enumerate(acts[number + 1 :], start=number + 1)
        for third in acts[middle + 1 :]
    )


@given(histories())
def test_writes_of_two_processes_by_turns_are_never_no_overlap(history: tuple[list[Tenure], list[Act]]) -> None:
    tenures, acts = history
    found = verdict(tenures, acts, slack=0.0)
    if interleave(tenures, acts):
        assert found.finding is not Judgement.PROVEN


@given(histories())
def test_a_write_is_under_a_lock_outside_of_one_or_not_known(history: tuple[list[Tenure], list[Act]]) -> None:
    tenures, acts = history
    found = verdict(tenures, acts, slack=0.0)
    placed = sum(each.acts for each in found.holders) + len(found.outside)
    assert placed <= found.acts == len(acts)
    assert placed == len(acts) or found.unknown
