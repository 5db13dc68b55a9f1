"""Locks of sets of controllers: who may hold them, and that they are handed on with the process that held them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, cast

import pytest
from support.golden import Golden
from support.joining_lab import JoiningLab
from support.resources import with_spec
from support.small_plane import SmallPlane
from unit.test_engine_cloud import in_a_cloud

from quarterdeck.actions.addons import allow_locks, kept_for_locks
from quarterdeck.actions.addresses import server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.units import stop_unit
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.addons import LOCKS_ADDON
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram, ControllerSetSpec
from quarterdeck.api.revision import ControllerSetTemplate, Guard
from quarterdeck.components.template import Revisions
from quarterdeck.engine.controller_sets import handover_checks
from quarterdeck.engine.controller_sets.handover_checks import taken_up
from quarterdeck.errors import NotApplied, QuarterdeckError
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.stores.port import amend

KUBE, CLOUD = ControllerProgram
IPAM = ControllerSetSpec(name="ipam", lock="ipam-migration", controllers=("node-ipam-controller",), owner=KUBE)
ROLE = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/quarterdeck:controller-locks"
PORTS = {
    Component.CONTROLLER_MANAGER: PortName.CONTROLLER_MANAGER,
    Component.CLOUD_CONTROLLER_MANAGER: PortName.CLOUD_CONTROLLER_MANAGER,
}


def with_set(revisions: Revisions, owner: ControllerProgram, guard: Guard) -> Revisions:
    """All of them with that set."""
    one = ControllerSetTemplate(**{**IPAM.model_dump(), "owner": owner}, guard=guard)
    cloud = CloudControllerManager(program=PurePosixPath("/opt/ccm"))
    changes = {"controller_sets": (one,), "cloud_controller_manager": cloud}
    templates = {name: each.model_copy(update=changes) for name, each in revisions.templates.items()}
    return replace(revisions, templates=templates)


async def small(owner: ControllerProgram, guard: Guard = Guard.SET) -> SmallPlane:
    made = await in_a_cloud()
    made.plane.revisions = with_set(made.plane.revisions, owner, guard)
    sets = (IPAM.model_copy(update={"owner": owner}),)

    def declared(seen: ControlPlane) -> ControlPlane:
        return with_spec(seen, controller_sets=sets)

    made.plane.resource = await amend(made.plane.store, ControlPlane, made.plane.name, declared)
    return made


def holds(of: SmallPlane, component: Component, *locks: str, identity: str = "vm_1") -> None:
    """A program of the first replica says that it holds these."""
    of.kube.leaders[server_address(of.record("east-1"), PORTS[component])] = frozenset(locks)
    for lock in locks:
        of.kube.set_lease(lock, identity)


async def stopped(of: SmallPlane, component: Component) -> dict[str, str]:
    """Who holds what after the program was stopped."""
    await stop_unit(of.plane, StopUnit(site="east", why="", replica="east-1", component=component), of.world)
    return {name: lease.holder for name, lease in of.kube.leases.items()}


@pytest.mark.parametrize("owner", ControllerProgram)
async def test_a_manager_that_is_stopped_hands_on_the_lock_of_its_set_too(owner: ControllerProgram) -> None:
    plane = await small(owner)
    holds(plane, owner.component, "ipam-migration", owner.value)
    assert await stopped(plane, owner.component) == {"ipam-migration": "", owner.value: ""}


async def test_it_hands_on_nothing_that_somebody_else_holds() -> None:
    plane = await small(CLOUD)
    holds(plane, CLOUD.component, CLOUD.value)
    plane.kube.set_lease("ipam-migration", "vm_2")
    assert await stopped(plane, CLOUD.component) == {"ipam-migration": "vm_2", CLOUD.value: ""}


# rights


async def lab(owner: ControllerProgram, guard: Guard = Guard.SET) -> JoiningLab:
    made = await JoiningLab.made()
    made.plane.revisions = with_set(made.plane.revisions, owner, guard)
    return made


async def test_a_kube_controller_manager_may_hold_the_lock_of_its_set_before_it_is_started() -> None:
    made = await lab(KUBE)
    record = made.plane.memory.replicas[0]
    await allow_locks(made.plane, record, Component.CONTROLLER_MANAGER)
    (rule,) = cast("list[dict[str, list[str]]]", made.value(ROLE, "rules"))
    assert (rule["resourceNames"], rule["verbs"]) == (["ipam-migration"], ["get", "update"])
    written = list(made.fake.kube.objects.calls)
    await allow_locks(made.plane, record, Component.CONTROLLER_MANAGER)
    assert made.fake.kube.objects.calls == written, "it is there already"


@pytest.mark.parametrize(("owner", "guard"), [(CLOUD, Guard.SET), (KUBE, Guard.MANAGER), (KUBE, Guard.NONE)])
async def test_one_that_holds_no_lock_of_a_set_needs_no_rights(owner: ControllerProgram, guard: Guard) -> None:
    made = await lab(owner, guard)
    assert kept_for_locks(made.plane) is None
    await allow_locks(made.plane, made.plane.memory.replicas[0], Component.CONTROLLER_MANAGER)
    assert not made.there(ROLE)


async def test_the_rights_are_an_add_on_and_go_with_the_last_revision_that_needs_them() -> None:
    made = await lab(KUBE)
    assert LOCKS_ADDON in await made.turn()
    made.plane.revisions = with_set(made.plane.revisions, CLOUD, Guard.SET)
    assert LOCKS_ADDON not in await made.turn()
    assert not made.there(ROLE)


# the end of a hand-over


class Clock:
    """A second passes with each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


async def end_of(
    plane: Plane, reported: list[str], monkeypatch: pytest.MonkeyPatch, *, pause: Callable[[], None]
) -> None:
    async def tell(error: QuarterdeckError) -> None:
        reported.append(error.seen)

    async def sleep(_: float) -> None:
        pause()

    monkeypatch.setattr(
        handover_checks, "asyncio", type("asyncio", (), {"sleep": staticmethod(sleep), "gather": _gather})
    )
    await taken_up(plane, changed=lambda _: False, tell=tell, monotonic=Clock())


async def _gather(*asked: Any) -> list[Any]:
    return [await each for each in asked]


async def test_a_hand_over_has_ended_when_its_new_owner_says_that_it_holds_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane, reported = await small(CLOUD), []
    await end_of(plane.plane, reported, monkeypatch, pause=lambda: holds(plane, CLOUD.component, "ipam-migration"))
    assert reported == []


@pytest.mark.parametrize(
    ("holder", "says"),
    [("", "set ipam: lock ipam-migration has no holder"), ("pod_7", "set ipam: .*pod_7")],
)
async def test_a_hand_over_that_nobody_takes_up_has_failed_and_says_who_is_in_the_way(
    holder: str, says: str, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    plane, reported = await small(CLOUD), []
    if holder:
        plane.kube.set_lease("ipam-migration", holder)
    with golden.raises(NotApplied):
        await end_of(plane.plane, reported, monkeypatch, pause=lambda: None)
    assert len(reported) == 1
    assert re.search(says, reported[0]), "it is told once"
