"""The site of a standby is checked before a plane gets one there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.site import FakeSite
from fakes.site_machines import Behaviour
from support.golden import Golden
from support.resources import with_spec
from support.small_plane import SmallPlane, small_plane
from typing_extensions import override

from quarterdeck.actions.addresses import client_url
from quarterdeck.api.apply import applied_plane
from quarterdeck.api.controlplane import ControlPlane, Encryption, new_control_plane
from quarterdeck.api.plane.epochs import StandbyPlacement
from quarterdeck.api.site import Site
from quarterdeck.app import changes
from quarterdeck.app.changes import examined
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.preflight.preconditions import health
from quarterdeck.engine.preflight.requests import Apply, Create
from quarterdeck.engine.preflight.standby_site import examine_standby
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.capabilities import Measure, RoundTrip
from quarterdeck.model.findings import Finding, Verdict, enforce
from quarterdeck.model.membership import Health, MemberFact
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineRole, UnitSpec
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass

#: The port of members for their peers.
PEER = 2380
WEST = StandbyPlacement(site="west")


class Beside(FakeSite):
    """A site from which the members at another one can be reached."""

    other: FakeSite | None = None

    @override
    async def measure(self, machine: str, what: Measure) -> float:
        if not isinstance(what, RoundTrip) or self.other is None:
            return await super().measure(machine, what)
        there = next(each.name for each in await self.other.machines() if each.address == what.address)
        if not await self.other.ports_in_use(there, (what.port,)):
            raise Unavailable(f"reaching {what.address}:{what.port} from {machine}", "nothing answers there")
        return 0.002


@dataclass
class Lab:
    """The plane alpha at east, which serves, and a home with what west is."""

    small: SmallPlane
    home: Home

    @property
    def plane(self) -> ControlPlane:
        return self.small.plane.resource

    async def found(self, current: bool = True, **spec: object) -> tuple[Finding, ...]:
        """The findings for the plane with a standby at west, for a new one or for alpha."""
        plane = self.plane if current else new_control_plane("beta", site="east")
        return await examine_standby(self.home, with_spec(plane, standby=WEST, **spec), self.plane if current else None)


async def lab(west: Mapping[str, object] | None = None, *, limit: int | None = None) -> Lab:
    """``west``: the spec of that site; ``limit``: bytes of its storage class."""
    small = await small_plane(site=partial(_site, limit=limit))
    store = small.plane.store
    for name, spec in (("east", {}), ("west", west or {})):
        await store.create(Site.model_validate_json(json.dumps({"metadata": {"name": name}, "spec": spec})))
    east, west_site = small.sites["east"], small.sites["west"]
    assert isinstance(west_site, Beside)
    west_site.other = east
    for record in small.plane.memory.replicas:
        await east.start_unit(record.machine, UnitSpec(name=f"{record.name}-etcd", argv=("/bin/etcd",)))

    async def site(name: str) -> Site:
        return await store.get(Site, name)

    async def plane(resource: ControlPlane, stack: object) -> object:
        return small.plane

    sites = SimpleNamespace(open=lambda resource: small.sites[resource.name])
    return Lab(small, cast("Home", SimpleNamespace(store=store, site=site, plane=plane, sites=sites)))


def _site(settings: LocalSiteSettings, number: int, *, limit: int | None) -> FakeSite:
    limits = limit if settings.name == "west" else None
    classes = {"standard": LocalStorageClass(limit_bytes=limits)}

    def behave(_: UnitSpec) -> Behaviour:
        return Behaviour(listens=(PEER,))

    return Beside(replace(settings, storage_classes=classes), number=number, behave=behave)


def refusals(found: tuple[Finding, ...]) -> list[str]:
    return [each.check for each in found if each.verdict is Verdict.REFUSE]


async def test_a_site_that_has_what_a_standby_needs_is_fine_for_a_new_plane_and_for_one_that_serves() -> None:
    it = await lab()
    names = ["machines", "storage class", "free disk", "host limits", "reach", "clocks"]
    for current in (False, True):
        found = await it.found(current)
        assert [each.check for each in found] == [f"standby {name}" for name in names]
        assert refusals(found) == []


async def test_a_standby_that_stays_as_it_is_and_one_that_goes_are_not_examined() -> None:
    it = await lab()
    there = with_spec(it.plane, standby=WEST)
    assert await examine_standby(it.home, with_spec(there, encryption=Encryption(secrets=False)), there) == ()
    assert await examine_standby(it.home, it.plane, there) == ()
    assert await examine_standby(it.home, with_spec(there, standby=StandbyPlacement(site="west")), there) == ()


async def test_an_etcd_of_one_learner_has_no_standby(golden: Golden) -> None:
    it = await lab()
    etcd = it.plane.spec.etcd.model_copy(update={"version": "3.5.35"})
    found = await examine_standby(it.home, with_spec(it.plane, standby=WEST, etcd=etcd), None)
    with golden.raises(PreconditionFailed):
        enforce(found, "changing plane alpha")


async def test_a_site_that_does_not_exist_is_named() -> None:
    it = await lab()
    nowhere = with_spec(it.plane, standby=StandbyPlacement(site="north"))
    with pytest.raises(NotFound):
        await examine_standby(it.home, nowhere, it.plane)


@pytest.mark.parametrize(
    ("west", "refused"),
    [
        ({"isolation": "netns"}, ["standby network"]),
        ({"storageClasses": [{"name": "fast"}]}, ["standby storage class"]),
    ],
    ids=["another network", "no such storage class"],
)
async def test_a_site_that_can_have_no_standby_of_the_plane_is_refused(
    west: dict[str, object], refused: list[str], golden: Golden
) -> None:
    it = await lab(west)
    for current in (False, True):
        found = await it.found(current)
        assert refusals(found) == refused
        with golden.raises(PreconditionFailed):
            enforce(found, "changing plane alpha")


async def cordoned(it: Lab) -> None:
    site = await it.home.site("west")
    cordons = [{"machine": each.name} for each in await it.small.sites["west"].machines()]
    spec = type(site.spec).model_validate_json(json.dumps({"cordons": cordons}))
    await it.home.store.update(site.model_copy(update={"spec": spec}))


async def dead(it: Lab) -> None:
    west = it.small.sites["west"]
    for each in await west.machines():
        if each.role is MachineRole.CONTROL:
            await west.kill_machine(each.name)


@pytest.mark.parametrize("gone", [cordoned, dead])
async def test_without_a_machine_that_is_up_and_not_cordoned_there_is_no_standby(
    gone: Callable[[Lab], object], golden: Golden
) -> None:
    it = await lab()
    await gone(it)  # type: ignore[misc]
    found = await it.found()
    assert "standby machines" in refusals(found)
    golden(next(each.seen for each in found if each.check == "standby machines"))


async def test_each_machine_without_room_for_the_database_is_named(golden: Golden) -> None:
    it = await lab(limit=16 * 2**20)
    for current in (False, True):
        found = await it.found(current)
        assert refusals(found) == ["standby free disk"]
        golden(next(each.seen for each in found if each.check == "standby free disk"))


async def test_a_database_of_unknown_size_and_members_that_do_not_answer_are_refused(golden: Golden) -> None:
    it = await lab()
    for record in it.small.plane.memory.replicas:
        it.small.cluster.stop(client_url(record))
        await it.small.sites["east"].stop_unit(record.machine, f"{record.name}-etcd")
    found = await it.found()
    assert refusals(found) == ["standby free disk", "standby reach"]
    for each in found:
        if each.verdict is Verdict.REFUSE:
            golden(each.seen)


async def test_creating_and_applying_show_what_was_found_and_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    it = await lab(limit=16 * 2**20)

    async def admitted(*_: object, **__: object) -> None:
        """Programs are not tried here."""

    async def nothing(*_: object) -> tuple[object, ...]:
        return ()

    monkeypatch.setattr(changes, "admit", admitted)
    monkeypatch.setattr(changes, "compared", nothing)
    engine = cast("Engine", SimpleNamespace(home=it.home))
    new = with_spec(new_control_plane("beta", site="east"), standby=WEST)
    declared = with_spec(new_control_plane("alpha", site="east"), standby=WEST)
    assert applied_plane(it.plane, declared).spec.standby == WEST
    for request in (Create(new), Apply(declared)):
        found = await examined(it.home, lambda: engine, request)
        assert refusals(tuple(found.findings)) == ["standby free disk"]
        with pytest.raises(PreconditionFailed, match="standby free disk"):
            found.require()


async def test_a_standby_that_is_not_healthy_is_a_warning_for_other_changes(golden: Golden) -> None:
    it = await lab()
    world, first = it.small.world, it.small.record("east-1")
    assert world.membership is not None
    record = replace(first, name="west-4", standby=True, slot=Slot(site="west", zone="a"))
    ill = MemberFact(id=9, replica="west-4", learner=True, health=Health.DOWN, lag=None)
    membership = replace(world.membership, members=(*world.membership.members, ill))
    memory = replace(world.memory, replicas=(*world.memory.replicas, record))
    down = replace(world, membership=membership, memory=memory)
    move = SimpleNamespace(world=down, plane=it.small.plane, wanted=it.plane)
    found = await health(cast("Move", move))
    assert found.verdict is Verdict.WARN
    golden(found.seen)
