"""Sites that a plane cannot move to: what is in the way is named, with what a person does about it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fakes.site import FakeSite
from fakes.site_machines import Behaviour
from support.small_plane import SmallPlane, small_plane

from quarterdeck.api.site import Site
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.preflight.preconditions import machines, ports
from quarterdeck.engine.preflight.room import free_disk, storage_class
from quarterdeck.engine.preflight.site_checks import answer
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.model.units import MachineRole, UnitSpec
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass

LOAD_BALANCER = 6443


def of_class(name: str, settings: LocalSiteSettings, number: int, *, limit: int | None = None) -> FakeSite:
    """A site with one storage class, and what listens where its load balancers do."""
    classes = {name: LocalStorageClass(limit_bytes=limit)}
    return FakeSite(
        replace(settings, storage_classes=classes), number=number, behave=lambda _: Behaviour(listens=(LOAD_BALANCER,))
    )


async def to_west(small: SmallPlane, *, wants_class: str = "standard") -> Move:
    """A move of the plane to the other site, which has what that site has now."""
    plane, west = small.plane, small.sites["west"]
    spec = plane.resource.spec
    etcd = spec.etcd.model_copy(update={"storage_class": wants_class})
    placement = spec.placement.model_copy(update={"site": "west"})
    wanted = plane.resource.model_copy(update={"spec": spec.model_copy(update={"etcd": etcd, "placement": placement})})
    classes = tuple({"name": each} for each in await west.storage_classes())
    return Move(
        plane=plane,
        wanted=wanted,
        world=small.world,
        source=(),
        target=tuple(each for each in await west.machines() if each.role is MachineRole.CONTROL),
        target_site=Site.model_validate({"metadata": {"name": "west"}, "spec": {"storageClasses": classes}}),
        allow_distance=False,
    )


def refused(found: Finding, check: str, seen: str, next_step: str) -> None:
    assert (found.check, found.verdict) == (check, Verdict.REFUSE)
    assert seen in found.seen
    assert next_step in found.next_step


async def test_a_target_without_the_storage_class_is_refused() -> None:
    small = await small_plane()
    found = await answer(storage_class, await to_west(small, wants_class="fast"))
    refused(found, "storage class", "no storage class 'fast' at west", "choose one of: standard")


async def test_a_target_without_room_for_the_database_is_refused_and_each_machine_named() -> None:
    small = await small_plane(site=partial(of_class, "standard", limit=16 * 2**20))
    found = await answer(free_disk, await to_west(small))
    refused(found, "free disk", "MiB of class standard are needed: west-a1 has 16 MiB, ", "make room")


async def test_a_target_with_room_for_the_database_is_fine() -> None:
    small = await small_plane(site=partial(of_class, "standard"))
    assert (await answer(free_disk, await to_west(small))).verdict is Verdict.OK


async def test_a_target_where_somebody_listens_at_the_load_balancers_port_is_refused() -> None:
    small = await small_plane(site=partial(of_class, "standard"))
    assert (await answer(ports, await to_west(small))).verdict is Verdict.OK
    await small.sites["west"].start_unit("west-edge", UnitSpec(name="listens", argv=("/bin/listens",)))
    found = await answer(ports, await to_west(small))
    refused(found, "ports", f"in use: west-edge:{LOAD_BALANCER}", "stop the programs that listen there")


async def test_a_target_of_which_too_few_machines_are_up_is_refused() -> None:
    small = await small_plane()
    west = small.sites["west"]
    up = [each.name for each in await west.machines() if each.role is MachineRole.CONTROL]
    for name in up[2:]:
        await west.kill_machine(name)
    found = await answer(machines, await to_west(small))
    refused(found, "machines", "2 machines are up at west, 3 are needed", "see 'site machines west'")
