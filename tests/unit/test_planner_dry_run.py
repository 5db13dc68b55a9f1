"""What `plan` shows: every step in order, with the quorum after it."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest
from model.faults import faults
from model.stories import kind, step_words
from model.worlds import empty, machines, moving, settled, wanted
from support.components import CONTROLLERS
from support.golden import Golden

from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import RemoveMember, Swap
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.dry_run import DryRun, dry_run

SHAPES = ((1, 1), (3, 3), (1, 3), (3, 1), (5, 5), (5, 3))

THREE_TO_THREE = [
    "3 PlaceReplica",
    "3 AddLearner west",
    "1 NoteMembers",
    "1 StartUnit etcd west",
    "1 NoteMembers",
    "1 StartUnit etcd west",
    "1 NoteMembers",
    "1 StartUnit etcd west",
    "1 NoteMembers",
    "1 SetBackends west",
    "2 Promote west",
    "2 StartUnit kube-apiserver west",
    "1 SetBackends east",
    "1 SetBackends west",
    "1 SetRecord",
    "1 NoteRecord",
    "4 StartUnit controllers west",
    "1 SetBackends east",
    "1 SetBackends west",
    "1 NoteDraining",
    "6 StopUnit controllers east",
    "3 StopUnit kube-apiserver east",
    "1 NoteDraining",
    "1 TransferLeadership west",
    "1 Swap(Promote west-6, RemoveMember east-1)",
    "1 StartUnit kube-apiserver west",
    "2 RemoveMember east",
    "3 StopUnit etcd east",
    "1 StopBalancer east",
    "1 SetBackends west",
    "2 StartUnit controllers west",
    "3 ReleaseReplica east",
]


def shape(run: DryRun) -> list[str]:
    """What is done to which site, in order, with how many such steps come one after the other."""
    return [f"{len(list(many))} {words}" for words, many in groupby(run.steps, key=lambda each: _words(each.step))]


def _words(step: Step) -> str:
    if isinstance(step, Swap):
        return step_words(step)
    unit = ""
    if isinstance(step, StartUnit | StopUnit):
        unit = "controllers" if step.component in CONTROLLERS else str(step.component)
    return " ".join(filter(None, (kind(step), unit, step.site)))


def forecast(replicas: int, to: int) -> DryRun:
    return dry_run(observe(moving(replicas, to)))


def test_the_whole_way_of_three_to_three() -> None:
    assert shape(forecast(3, 3)) == THREE_TO_THREE


@pytest.mark.parametrize(("replicas", "to"), SHAPES)
def test_after_every_step_one_site_holds_a_quorum_source_until_the_swap_and_target_after_it(
    replicas: int, to: int
) -> None:
    quorum_sites = [each.quorum_site for each in forecast(replicas, to).steps]
    swap = next(index for index, each in enumerate(forecast(replicas, to).steps) if isinstance(each.step, Swap))
    assert quorum_sites == ["east"] * swap + ["west"] * (len(quorum_sites) - swap)


@pytest.mark.parametrize(("replicas", "to"), SHAPES)
def test_no_step_lowers_what_may_fail_below_what_the_source_or_the_target_bears(replicas: int, to: int) -> None:
    least = min((replicas - 1) // 2, (to - 1) // 2)
    assert min(each.margin for each in forecast(replicas, to).steps) >= least


@pytest.mark.parametrize(("replicas", "to"), SHAPES)
def test_a_move_ends_with_the_wanted_voters_and_no_learners(replicas: int, to: int) -> None:
    last = forecast(replicas, to).steps[-1]
    assert (last.voters, last.learners, last.quorum_site) == (to, 0, "west")


def test_steps_that_cannot_be_undone_say_so() -> None:
    final = {kind(each.step) for each in forecast(3, 3).steps if not each.step.undoable}
    assert final == {"Swap", "RemoveMember", "StopBalancer", "ReleaseReplica"}
    first = next(each.step for each in forecast(3, 3).steps if not each.step.undoable)
    assert isinstance(first, Swap | RemoveMember)


def test_every_step_says_why_and_touches_one_site() -> None:
    for replicas, to in SHAPES:
        for each in forecast(replicas, to).steps:
            assert each.step.why
            assert each.step.site in ("", "east", "west")


def test_a_plane_that_is_as_wanted_has_no_steps() -> None:
    assert dry_run(observe(settled(empty("east", 3)))) == DryRun(steps=())


def test_what_would_never_come_by_itself_is_named(golden: Golden) -> None:
    truth = replace(settled(empty("east", 1, sites=("east",))), slots=wanted("west", 1))
    golden(dry_run(observe(truth)).stuck_on[0].what)


def test_creation_and_scaling_can_be_forecast_too() -> None:
    assert dry_run(observe(empty("east", 3))).steps[-1].voters == 3
    more = replace(settled(empty("east", 1)), slots=wanted("east", 5), machines=machines("east"))
    assert dry_run(observe(more)).steps[-1].voters == 5
    fewer = replace(settled(empty("east", 5)), slots=wanted("east", 1))
    assert dry_run(observe(fewer)).steps[-1].voters == 1


def test_a_forecast_from_any_faulty_world_ends() -> None:
    for fault in faults(moving(3, 3)):
        run = dry_run(observe(fault.truth))
        assert not any("circles" in reason.what for reason in run.stuck_on), fault.name


def test_a_plane_behind_a_fixed_address_moves_behind_it() -> None:
    run = dry_run(observe(moving(3, 3, front="east")))
    assert run.stuck_on == ()
    steps = shape(run)
    assert not [each for each in steps if "Record" in each or "StopBalancer" in each or "SetBackends west" in each]
    assert steps[-1] == "3 ReleaseReplica east"
