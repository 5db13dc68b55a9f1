"""The windows of an upgrade: what programs behave as in each of them, which may run side by side, and the way between
two versions.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import PurePosixPath

import pytest
from support.golden import Golden
from support.templates import template, units_of

from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram, ControllerSetSpec
from quarterdeck.api.plane.upgrade import UpgradeWindow
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.controller.sets import at_rest
from quarterdeck.components.difference import change
from quarterdeck.components.transitions.ways import apart, way
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.components import Component

KUBERNETES = (Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER)
SET = ControllerSetSpec(
    name="routes", owner=ControllerProgram.KUBE, controllers=("node-route-controller",), lock="routes"
)


def at(version: str, window: UpgradeWindow | None = None, **changes: object) -> ReplicaTemplate:
    return template(kubernetes_version=f"v{version}", upgrade_window=window, **changes)


OLD, NEW = at("1.35.4"), at("1.36.3")
EMULATING, FINAL = at("1.36.3", UpgradeWindow.EMULATING), at("1.36.3", UpgradeWindow.FINAL)


def flags(revision: ReplicaTemplate, component: Component) -> dict[str, str]:
    argv = units_of(revision)[component].argv
    named = ("--emulated-version", "--min-compatibility-version", "--emulation-forward-compatible", "--peer-ca-file")
    pairs = (each.partition("=") for each in argv)
    return {name.removeprefix("--"): value for name, _, value in pairs if name in named}


def test_programs_that_emulate_behave_as_the_former_version_and_store_what_it_reads() -> None:
    emulated = {"emulated-version": "1.35", "min-compatibility-version": "1.35"}
    for component in KUBERNETES[1:]:
        assert flags(EMULATING, component) == emulated
    forward = {"emulation-forward-compatible": "true"}
    assert flags(EMULATING, Component.APISERVER) == {**emulated, **forward}


def test_an_apiserver_has_the_flags_of_a_gate_as_the_version_that_it_behaves_as() -> None:
    assert "peer-ca-file" not in flags(EMULATING, Component.APISERVER)
    assert "peer-ca-file" in flags(NEW, Component.APISERVER)
    assert "peer-ca-file" in flags(at("1.37.2", UpgradeWindow.EMULATING), Component.APISERVER)


def test_a_raised_version_has_no_flags_and_a_final_one_is_compatible_with_itself_alone() -> None:
    for component in KUBERNETES:
        assert not flags(NEW, component).keys() & {"emulated-version", "min-compatibility-version"}
        assert flags(FINAL, component)["min-compatibility-version"] == "1.36"
        assert "emulated-version" not in flags(FINAL, component)


def test_versions_before_1_35_have_no_flag_for_what_they_are_compatible_with() -> None:
    assert flags(at("1.34.4", UpgradeWindow.EMULATING), Component.SCHEDULER) == {"emulated-version": "1.33"}
    assert flags(at("1.34.4", UpgradeWindow.FINAL), Component.SCHEDULER) == {}


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (OLD, EMULATING, True),
        (at("1.35.4", UpgradeWindow.FINAL), EMULATING, True),
        (EMULATING, NEW, True),
        (NEW, FINAL, True),
        (NEW, at("1.36.9"), True),
        (OLD, NEW, False),
        (OLD, FINAL, False),
        (EMULATING, FINAL, False),
        (at("1.34.4"), EMULATING, False),
        (at("1.35.4", UpgradeWindow.EMULATING), EMULATING, False),
    ],
)
def test_versions_meet_only_in_neighbouring_windows(one: ReplicaTemplate, other: ReplicaTemplate, meet: bool) -> None:
    assert apart(one, other) is not meet
    assert apart(other, one) is not meet


@pytest.mark.parametrize(
    ("start", "goal", "between"),
    [
        (OLD, NEW, [EMULATING]),
        (NEW, OLD, [EMULATING]),
        (OLD, EMULATING, []),
        (EMULATING, OLD, []),
        (OLD, FINAL, [EMULATING, NEW]),
        (EMULATING, FINAL, [NEW]),
        (NEW, at("1.36.9"), []),
    ],
)
def test_the_way_to_another_version_goes_through_the_windows(
    start: ReplicaTemplate, goal: ReplicaTemplate, between: list[ReplicaTemplate]
) -> None:
    assert list(way(start, goal)) == between


def test_the_way_back_keeps_the_patch_release_that_runs() -> None:
    (stop,) = way(at("1.36.7"), OLD)
    assert stop == at("1.36.7", UpgradeWindow.EMULATING)


def test_a_minor_version_that_would_be_skipped_has_no_way(golden: Golden) -> None:
    with golden.raises(PreconditionFailed):
        way(at("1.34.4"), NEW)


def test_versions_change_before_controller_sets_migrate() -> None:
    here = at_rest([SET], "v1.35.4")
    there = at_rest([SET.model_copy(update={"owner": ControllerProgram.CLOUD})], "v1.36.3")
    cloud = CloudControllerManager(program=PurePosixPath("/opt/ccm"))
    start = at("1.35.4", controller_sets=here, cloud_controller_manager=cloud)
    goal = at("1.36.3", controller_sets=there, cloud_controller_manager=cloud)
    line = (start, *way(start, goal), goal)
    assert not any(apart(*each) for each in pairwise(line))
    versions = [(each.kubernetes_version, each.upgrade_window) for each in line]
    assert versions[:3] == [
        ("v1.35.4", None),
        ("v1.36.3", UpgradeWindow.EMULATING),
        ("v1.36.3", None),
    ]
    owners = [{each.owner for each in one.controller_sets or ()} for one in line[:3]]
    assert owners == [{ControllerProgram.KUBE}] * 3


def test_another_version_restarts_the_programs_of_kubernetes_and_only_an_older_minor_is_a_downgrade() -> None:
    for before, after in ((OLD, EMULATING), (EMULATING, NEW), (NEW, FINAL), (NEW, at("1.36.9")), (at("1.36.9"), NEW)):
        assert change(before, after).restart == frozenset(KUBERNETES)
        assert not change(before, after).downgrade
    assert change(EMULATING, OLD).downgrade
