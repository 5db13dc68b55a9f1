"""Minor versions of etcd: members go to a newer one, and back, by etcd's downgrade where it is needed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import steps_until_done, until
from model.worlds import FORMER, NEW, NEW_ETCD, NEWEST_ETCD, OLD_ETCD, changing, settled

from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.model.steps.members import CancelDowngrade, EnableDowngrade, TransferLeadership
from quarterdeck.model.steps.stored import NoteLowered
from quarterdeck.model.steps.units import AdoptRevision, StartUnit, StopUnit
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import RefusedError, apply, observe, tick

BOTH = frozenset({FORMER, NEW})


def asked(
    *,
    broken: Component | None = None,
    keeps_one: bool = False,
    apart: bool = False,
    newer_etcd: EtcdMinor = NEW_ETCD,
) -> FaultyTruth:
    """A plane with an older etcd, of which a newer minor version has just been asked for."""
    programs = (Component.ETCD, Component.EVENTS_ETCD) if apart else (Component.ETCD,)
    return changing(
        3,
        3,
        ReplicaChange(restart=frozenset(programs)),
        broken=broken,
        newer_etcd=newer_etcd,
        keeps_one=keeps_one,
        apart=BOTH if apart else frozenset(),
    )


def upgraded(*, apart: bool = False) -> FaultyTruth:
    """The plane once all members work as the newer version."""
    return later(settled(asked(apart=apart)))


def later(truth: FaultyTruth) -> FaultyTruth:
    """The same once all members have agreed on their version, and store as that one."""
    for _ in range(5):
        truth = tick(truth)
    return truth


def story(truth: FaultyTruth) -> list[str]:
    """What is adopted, and what becomes of etcd's downgrade, until nothing is left to do."""
    told: list[str] = []
    for _, step in steps_until_done(truth):
        match step:
            case AdoptRevision():
                told.append(f"{step.replica} {step.revision}")
            case EnableDowngrade() | CancelDowngrade():
                told.append(f"{step.kind} {step.cluster}")
            case NoteLowered():
                told.append(f"{step.kind} {step.revision}")
            case _:
                pass
    return told


def begun(truth: FaultyTruth, revision: str) -> FaultyTruth:
    """The first replica has adopted a revision, and its etcd has started."""

    def starts(seen: FaultyTruth) -> bool:
        return any(
            each.revision == revision and seen.replica(each.name).runs(Component.ETCD) for each in seen.memory.replicas
        )

    return until(truth, lambda seen, _: starts(seen))


def test_members_go_to_a_newer_minor_version_the_leader_last_and_lead_only_once() -> None:
    steps = [step for _, step in steps_until_done(asked())]
    adopted = [step.replica for step in steps if isinstance(step, AdoptRevision)]
    moved = [step for step in steps if isinstance(step, TransferLeadership)]
    first_leader = asked().leader
    assert adopted[-1] == first_leader
    assert [each.to for each in moved] == [adopted[0]]
    assert not any(isinstance(step, EnableDowngrade) for step in steps)
    assert upgraded().works_as == NEW_ETCD


def test_the_cluster_goes_back_by_a_downgrade_that_is_waited_for_before_the_first_older_member() -> None:
    told = story(replace(upgraded(), revision=FORMER))
    assert told[:2] == ["enable-etcd-downgrade main", f"note-lowered-etcd {FORMER}"]
    assert {each.split()[1] for each in told[2:]} == {FORMER}
    assert len(told) == 5
    back = later(settled(replace(upgraded(), revision=FORMER)))
    assert (back.works_as, back.downgrade) == (OLD_ETCD, None)


def test_until_the_last_member_is_newer_members_go_back_without_a_downgrade() -> None:
    told = story(replace(begun(asked(), NEW), revision=FORMER))
    assert [each.split()[1] for each in told] == [FORMER]


def test_a_newer_etcd_that_does_not_run_goes_back_by_itself() -> None:
    told = story(asked(broken=Component.ETCD))
    assert [each.split()[1] for each in told] == [NEW, FORMER]


def test_a_downgrade_is_cancelled_once_the_newer_version_is_wanted_again() -> None:
    amid = begun(replace(upgraded(), revision=FORMER), FORMER)
    told = story(replace(amid, revision=NEW))
    assert told[:2] == ["note-lowered-etcd ", "cancel-etcd-downgrade main"]
    assert [each.split()[1] for each in told[2:]] == [NEW]


def test_both_clusters_go_back() -> None:
    told = story(replace(upgraded(apart=True), revision=FORMER))
    assert sorted(told[:2]) == ["enable-etcd-downgrade events", "enable-etcd-downgrade main"]
    assert told[2] == f"note-lowered-etcd {FORMER}"
    assert len(told) == 6


def test_nothing_is_taken_back_while_the_leader_does_not_tell_the_version_of_the_cluster() -> None:
    world = observe(replace(upgraded(), revision=FORMER))
    assert world.membership is not None
    now = plan(replace(world, membership=replace(world.membership, works_as=None)))
    assert now.now == ()
    assert [each.what for each in now.waiting] == ["the leader of etcd to report the version of the cluster"]


def test_a_member_that_does_not_report_how_it_stores_is_waited_for() -> None:
    truth = replace(upgraded(), revision=FORMER)
    truth = later(until(truth, lambda seen, _: seen.downgrade is not None))
    world = observe(truth)
    assert world.membership is not None
    first, *rest = world.membership.members
    hidden = replace(world, membership=replace(world.membership, members=(replace(first, storage=None), *rest)))
    assert [type(step) for step in plan(world).now] == [NoteLowered]
    assert plan(hidden).now == ()
    assert [each.what for each in plan(hidden).waiting] == ["all members of etcd to work and store as 3.5"]


def test_one_replica_keeps_its_etcd_and_the_plane_is_up_to_date_meanwhile() -> None:
    kept = settled(asked(keeps_one=True))
    assert sorted(each.revision for each in kept.memory.replicas) == [FORMER, NEW, NEW]
    assert plan(observe(kept)).done
    assert later(kept).works_as == OLD_ETCD
    assert [each.split()[1] for each in story(replace(kept, keeps_one=False))] == [NEW]
    assert {each.split()[1] for each in story(replace(kept, keeps_one=False, revision=FORMER))} == {FORMER}


def test_the_simulated_etcd_refuses_a_downgrade_by_two_minor_versions() -> None:
    with pytest.raises(RefusedError):
        apply(upgraded(), EnableDowngrade(site="", why="", target=(3, 4)))


def test_no_member_is_stopped_for_a_version_that_the_cluster_does_not_work_as_yet() -> None:
    truth = replace(upgraded(), revision=FORMER)
    for _ in range(3):
        now = plan(observe(truth))
        assert not any(isinstance(step, StopUnit | StartUnit) for step in now.now)
        for step in now.now:
            truth = apply(truth, step)


def test_before_etcd_that_reads_no_old_log_the_cluster_is_taken_back_and_returns() -> None:
    told = story(asked(newer_etcd=NEWEST_ETCD))
    assert told[:3] == ["enable-etcd-downgrade main", f"note-lowered-etcd {NEW}", "cancel-etcd-downgrade main"]
    assert [each.split()[1] for each in told[3:]] == [NEW] * 3
    truth = until(asked(newer_etcd=NEWEST_ETCD), lambda seen, _: seen.downgrade is not None)
    assert truth.downgrade == OLD_ETCD
    waits = {each.what for each in plan(observe(truth)).waiting}
    assert waits == {"all members of etcd to work and store as 3.5"}


def test_a_downgrade_that_a_person_ended_is_noted_to_count_no_longer() -> None:
    truth = until(replace(upgraded(), revision=FORMER), lambda seen, _: seen.memory.lowered == FORMER)
    ended = later(replace(truth, downgrade=None))
    assert ended.works_as == NEW_ETCD
    now = plan(observe(ended)).now
    assert [(type(step), getattr(step, "revision", None)) for step in now] == [(NoteLowered, "")]
    assert story(ended)[:2] == ["note-lowered-etcd ", "enable-etcd-downgrade main"]
