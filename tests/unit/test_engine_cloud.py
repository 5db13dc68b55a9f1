"""A plane's cloud controller manager: what is refused, what it may do in the plane, and what is left of it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError
from support.golden import Golden
from support.joining_lab import JoiningLab
from support.resources import with_spec
from support.small_plane import NAME, SmallPlane, with_volume

from quarterdeck.actions.addresses import server_address
from quarterdeck.actions.certificates import certificates_of
from quarterdeck.actions.seats import settle_seats
from quarterdeck.actions.units import start_unit, stop_unit
from quarterdeck.actions.volumes import replica_settings
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec, new_control_plane
from quarterdeck.api.operation import Operation, OperationSpec, OperationStatus, OperationType
from quarterdeck.api.plane.addons import CLOUD_ADDON
from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.components.controller import cloud_controller_manager
from quarterdeck.components.template import Revisions
from quarterdeck.engine.status import leaders
from quarterdeck.engine.workspace.operations import asks_for_addons, goal_of
from quarterdeck.engine.workspace.own_addons import admit_cloud
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.model.units import UnitState
from quarterdeck.sites.port import SitePort

CLOUD = Component.CLOUD_CONTROLLER_MANAGER
MANAGER = CloudControllerManager(program=PurePosixPath("/opt/ccm"), provider="fake")
A1, UNIT = "east-a1", f"{NAME}-east-1-{CLOUD}"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:cloud-controller-manager"
BOUND = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/system:cloud-controller-manager"


# What is refused


def asked(cloud: CloudControllerManager | None) -> ControlPlane:
    plane = new_control_plane("demo", site="east")
    return with_spec(plane, cloud_controller_manager=cloud)


def program(path: Path, content: bytes, mode: int = 0o755) -> CloudControllerManager:
    path.write_bytes(content)
    path.chmod(mode)
    return CloudControllerManager(program=PurePosixPath(path))


FILES = cast("SitePort", SimpleNamespace(name="east"))


def test_a_program_is_one_that_this_machine_can_run(tmp_path: Path) -> None:
    elf = Path(sys.executable).resolve().read_bytes()
    for content in (elf, b"#!/bin/sh\nexit 1\n"):
        admit_cloud(asked(program(tmp_path / "ccm", content)), FILES, None)
    admit_cloud(asked(None), FILES, None)


@pytest.mark.parametrize(
    ("content", "mode"),
    [
        (b"#!/bin/sh\n", 0o644),
        (b"", 0o755),
        (b"text", 0o755),
        (b"\x7fELF", 0o755),
    ],
)
def test_what_is_no_program_is_refused_before_anything_is_written_down(
    tmp_path: Path, content: bytes, mode: int, golden: Golden
) -> None:
    wanted = asked(program(tmp_path / "ccm", content, mode))
    with golden.raises(InvalidInput) as refused:
        admit_cloud(wanted, FILES, None)
    assert f"spec.cloudControllerManager.program: {tmp_path}/ccm" in refused.value.seen


@pytest.mark.parametrize("where", ["", "none"])
def test_so_is_what_is_no_file(tmp_path: Path, where: str, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        admit_cloud(asked(CloudControllerManager(program=PurePosixPath(tmp_path / where))), FILES, None)


def test_a_file_that_went_since_it_was_named_holds_up_no_other_change(tmp_path: Path, golden: Golden) -> None:
    named = CloudControllerManager(program=PurePosixPath(tmp_path / "gone"))
    admit_cloud(asked(named), FILES, asked(named))
    with golden.raises(InvalidInput):
        admit_cloud(asked(named), FILES, asked(MANAGER))


def test_an_image_is_refused_where_sites_run_files(golden: Golden) -> None:
    wanted = asked(CloudControllerManager(image="registry.example/ccm:v1"))
    with golden.raises(PreconditionFailed):
        admit_cloud(wanted, FILES, None)


# What runs


async def in_a_cloud(cloud: CloudControllerManager | None = MANAGER) -> SmallPlane:
    """A plane of three replicas whose only revision says so."""
    small = await with_volume(A1)
    await settle_seats(small.plane)
    return of_a_cloud(small, cloud)


def of_a_cloud(small: SmallPlane, cloud: CloudControllerManager | None) -> SmallPlane:
    small.plane.revisions = with_cloud(small.plane.revisions, cloud)
    world = replace(small.world, memory=small.plane.memory, programs=small.plane.revisions.programs)
    return replace(small, world=world)


def with_cloud(revisions: Revisions, cloud: CloudControllerManager | None) -> Revisions:
    """All of them with that one."""
    changes = {"cloud_controller_manager": cloud}
    templates = {name: each.model_copy(update=changes) for name, each in revisions.templates.items()}
    return replace(revisions, templates=templates)


def step(kind: Any) -> Any:
    return kind(site="east", why="", replica="east-1", component=CLOUD)


async def units(small: SmallPlane) -> dict[str, UnitState]:
    return {each.name: each.state for each in await small.sites["east"].units(A1)}


async def test_each_replica_runs_the_program_that_its_revision_names() -> None:
    small = await in_a_cloud()
    settings = await replica_settings(small.plane, small.record("east-1"), CLOUD)
    assert settings.programs[CLOUD].name == "ccm"
    await start_unit(small.plane, step(StartUnit), small.world)
    assert await units(small) == {UNIT: UnitState.RUNNING}


async def test_what_a_revision_has_no_more_is_gone_with_its_certificates_and_nothing_else() -> None:
    small = await in_a_cloud()
    await start_unit(small.plane, step(StartUnit), small.world)
    before = await certificates_of(small.plane, small.record("east-1"))
    assert before.pairs["cloud_controller_manager"] is not None
    await stop_unit(small.plane, step(StopUnit), small.world)
    assert await units(small) == {UNIT: UnitState.STOPPED}, "it rests for another revision"
    assert await certificates_of(small.plane, small.record("east-1")) == before
    small = of_a_cloud(small, None)
    await stop_unit(small.plane, step(StopUnit), small.world)
    assert await units(small) == {}
    after = small.plane.secrets.replica("east-1")
    assert after is not None
    assert after.pairs == {name: pair for name, pair in before.pairs.items() if "cloud" not in name}


async def test_the_lease_of_one_that_leads_is_handed_on_since_it_does_not_do_so_itself() -> None:
    small = await in_a_cloud()
    await start_unit(small.plane, step(StartUnit), small.world)
    at = server_address(small.record("east-1"), PortName.CLOUD_CONTROLLER_MANAGER)
    small.kube.leaders[at] = frozenset({cloud_controller_manager.LEASE})
    small.kube.set_lease(cloud_controller_manager.LEASE, "vm_1")
    await stop_unit(small.plane, step(StopUnit), small.world)
    assert small.kube.leases[cloud_controller_manager.LEASE].holder == ""


async def test_who_leads_is_told_where_there_is_one() -> None:
    small = await in_a_cloud()
    assert set(await leaders(small.plane, small.world)) == {
        Component.CONTROLLER_MANAGER,
        Component.SCHEDULER,
        CLOUD,
    }
    small = of_a_cloud(small, None)
    assert CLOUD not in await leaders(small.plane, small.world)


# What it may do


async def test_it_may_do_what_it_has_to_as_long_as_any_replica_has_one() -> None:
    lab = await JoiningLab.made()
    await lab.say(Nodes(bootstrap=False))
    assert await lab.turn() == {}
    lab.plane.revisions = with_cloud(lab.plane.revisions, MANAGER)
    assert set(await lab.turn()) == {CLOUD_ADDON}
    assert lab.condition() == ("True UpToDate", "2 objects")
    rules = cast("list[dict[str, list[str]]]", lab.value(ROLE, "rules"))
    may = {
        (group, each): set(rule["verbs"]) for rule in rules for group in rule["apiGroups"] for each in rule["resources"]
    }
    assert {"get", "create", "update"} <= may["coordination.k8s.io", "leases"]
    assert "patch" in may["", "services/status"]
    assert ("", "secrets") not in may
    assert lab.value(BOUND, "subjects") == [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:cloud-controller-manager"}
    ]
    lab.plane.revisions = with_cloud(lab.plane.revisions, None)
    assert await lab.turn() == {}
    assert not lab.there(ROLE)
    assert not lab.there(BOUND)


async def test_no_add_on_of_the_users_is_called_so() -> None:
    wanted = {"placement": {"site": "east"}, "addons": [{"name": CLOUD_ADDON, "inline": "a: b"}]}
    with pytest.raises(ValidationError, match="which is quarterdeck's own"):
        ControlPlaneSpec.model_validate(wanted, strict=False)


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [(None, MANAGER, True), (MANAGER, None, True), (MANAGER, MANAGER, False), (None, None, False)],
)
def test_a_change_has_come_to_its_end_when_it_may_do_that(
    before: CloudControllerManager | None, after: CloudControllerManager | None, asks: bool
) -> None:
    one, other = (goal_of(asked(each)) for each in (before, after))
    spec = OperationSpec(plane="demo", type=OperationType.APPLY, from_=one, to=other)
    assert asks_for_addons(Operation(metadata=asked(None).metadata, spec=spec, status=OperationStatus())) is asks
