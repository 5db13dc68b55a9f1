"""Restores as another plane: what it has of the one that was backed up, what it must not, and that nothing else is
touched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakes.objects import MemoryObjects
from support.golden import Golden
from support.resources import with_spec
from support.restoring_lab import URL, RestoringLab
from support.small_plane import secrets

from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.epochs import NewEpoch, RestoreFrom
from quarterdeck.api.site import Site
from quarterdeck.app.backup import copies, restores
from quarterdeck.app.backup.copied_plane import CopyRequest, copied_plane
from quarterdeck.app.backup.copies import Copies, ForeignBackup
from quarterdeck.app.backup.restores import Restores
from quarterdeck.engine.workspace import backups, belongings, operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import RestoredDatabase
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed

BETA = CopyRequest(name="beta")


@dataclass
class Built:
    """What was asked for of the parts that need programs; ``free`` is the room of each machine."""

    folder: Path
    admitted: list[ControlPlane] = field(default_factory=list)
    databases: list[tuple[str, str, int]] = field(default_factory=list)

    async def admit(self, _: object, plane: ControlPlane) -> None:
        self.admitted.append(plane)

    async def database(
        self, _: Home, upstream: object, plane: ControlPlane, origin: Any, revision: int, *, by_replay: bool
    ) -> RestoredDatabase:
        self.databases.append((plane.name, origin.folder, revision))
        self.path.write_bytes(bytes(4096))
        return RestoredDatabase(self.path, None)

    @property
    def path(self) -> Path:
        return self.folder / "restore.db"


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    objects, made = MemoryObjects(), Built(tmp_path)
    for module in (backups, restores, copies):
        monkeypatch.setattr(module, "open_backup_store", lambda *_: objects)
    monkeypatch.setattr(copies, "admit", made.admit)
    monkeypatch.setattr(copies, "restored_database", made.database)
    return made


@pytest.fixture
async def lab(tmp_path: Path, built: Built) -> AsyncIterator[RestoringLab]:
    async with AsyncExitStack() as stack:
        yield RestoringLab(tmp_path, stack)


def copies_of(home: Home, its: Restores) -> Copies:
    engine = SimpleNamespace(upstream=None, requester=operations.Requester(name="a test"))
    return Copies(home, lambda: cast("Any", engine), its)


async def lost(lab: RestoringLab) -> tuple[ControlPlane, Home, Copies]:
    """The plane that is backed up, in its own home."""
    plane, _ = await lab.backed_up()
    home, its = await lab.home("lost")
    return plane, home, copies_of(home, its)


# --- the new plane, and the old one -----------------------------------------------------------------------------------


async def test_the_copy_begins_with_the_backup_and_has_everything_else_of_its_own(
    lab: RestoringLab, built: Built
) -> None:
    alpha, home, its = await lost(lab)
    operation = await its.start(await its.plan("alpha", BETA))
    beta = await home.store.get(ControlPlane, "beta")
    url, folder = backups.default_store(home.folder), f"alpha/{alpha.metadata.uid}"
    moment = RestoreFrom(store=url, folder=folder, epoch=0, revision=40)
    assert beta.spec.new_epoch == NewEpoch(epoch=1, restore=moment), "a driver begins its etcd as in each restore"
    assert (beta.status.memory.epoch, beta.status.memory.replicas, beta.status.awaits_data) == (0, (), False)
    assert beta.metadata.uid not in (None, alpha.metadata.uid)
    assert (beta.host, beta.status.port_offset) == ("beta.quarterdeck.internal", 0)
    assert backups.folder_of(beta) == f"beta/{beta.metadata.uid}"
    assert beta.status.revision != alpha.status.revision
    assert (operation.spec.type, operation.spec.plane) == (OperationType.CREATE, "beta")
    assert built.databases == [("beta", folder, 40)]


async def test_the_first_driver_of_the_copy_finds_the_keys_that_the_data_needs(lab: RestoringLab) -> None:
    _, home, its = await lost(lab)
    await its.start(await its.plan("alpha", BETA))
    beta = await home.store.get(ControlPlane, "beta")
    got, had = await belongings.secrets_of(home.store, beta), secrets()
    assert got.encryption_keys == had.encryption_keys
    assert got.service_account == had.service_account
    assert (got.kubernetes_ca, got.front_proxy_ca) == (had.kubernetes_ca, had.front_proxy_ca)
    assert got.etcd_ca != had.etcd_ca, "no member of one plane is a peer of the other's"
    assert got.etcd_manager != had.etcd_manager
    assert got.replicas == ()


async def test_the_plane_that_was_backed_up_is_not_written_to(lab: RestoringLab) -> None:
    _, home, its = await lost(lab)
    before = [await home.store.get(kind, "alpha") for kind in (ControlPlane, PlaneSecrets)]
    sites = await home.store.list(Site)
    await its.start(await its.plan("alpha", BETA))
    assert [await home.store.get(kind, "alpha") for kind in (ControlPlane, PlaneSecrets)] == before
    assert await home.store.list(Site) == sites


async def test_a_plan_stores_nothing_and_leaves_no_database_once_it_is_discarded(
    lab: RestoringLab, built: Built
) -> None:
    _, home, its = await lost(lab)
    plan = await its.plan("alpha", BETA)
    assert [each.name for each in await home.store.list(ControlPlane)] == ["alpha"]
    with pytest.raises(NotFound):
        await home.store.get(PlaneSecrets, "beta")
    assert built.path.exists()
    await its.discard(plan)
    assert not built.path.exists()
    assert "PRIVATE KEY" not in repr(plan)


async def test_two_that_copy_at_once_make_one_plane(lab: RestoringLab, golden: Golden) -> None:
    _, home, its = await lost(lab)
    first, second = await its.plan("alpha", BETA), await its.plan("alpha", BETA)
    await its.start(first)
    made = await home.store.get(PlaneSecrets, "beta")
    with golden.raises(Conflict):
        await its.start(second)
    assert await home.store.get(PlaneSecrets, "beta") == made


async def test_keys_that_an_interrupted_attempt_has_stored_are_replaced(
    lab: RestoringLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, home, its = await lost(lab)
    create = home.store.create

    async def dies(resource: Any, **given: Any) -> Any:
        if isinstance(resource, ControlPlane):
            raise KeyboardInterrupt
        return await create(resource, **given)

    plan = await its.plan("alpha", BETA)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(home.store, "create", dies)
        await its.start(plan)
    left = await home.store.get(PlaneSecrets, "beta")
    await its.start(plan)
    beta = await home.store.get(ControlPlane, "beta")
    assert (await home.store.get(PlaneSecrets, "beta")).plane_uid == beta.metadata.uid != left.plane_uid


# --- out of a backup of another home ----------------------------------------------------------------------------------


async def test_a_plane_that_this_home_does_not_have_is_copied_from_its_store_and_key(lab: RestoringLab) -> None:
    alpha, key = await lab.backed_up()
    home, its = await lab.home("home")
    found = copies_of(home, its)
    await found.start(await found.plan("alpha", BETA, source=ForeignBackup(URL, key)))
    assert [each.name for each in await home.store.list(ControlPlane)] == ["beta"]
    beta = await home.store.get(ControlPlane, "beta")
    assert beta.spec.backup.store == URL
    assert beta.spec.new_epoch is not None
    assert beta.spec.new_epoch.restore == RestoreFrom(
        store=URL, folder=f"alpha/{alpha.metadata.uid}", epoch=0, revision=40
    )
    keys = (await backups.backup_keys(home.folder)).identities.keys
    assert set(backups.read_identities(key)) <= set(keys), "a driver can build the database again"


# --- refusals -------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_copied_is_one_clear_error(lab: RestoringLab, built: Built, golden: Golden) -> None:
    _, home, its = await lost(lab)
    with golden.raises(Conflict):
        await its.plan("alpha", CopyRequest(name="alpha"))
    with golden.raises(NotFound):
        await its.plan("gamma", BETA)
    with golden.raises(NotFound):
        await its.plan("alpha", replace(BETA, site="north"))
    with golden.raises(InvalidInput):
        await its.plan("alpha", CopyRequest(name="Beta!"))
    assert not built.databases
    assert [each.name for each in await home.store.list(ControlPlane)] == ["alpha"]


async def test_a_backup_of_data_alone_makes_no_plane(lab: RestoringLab, built: Built, golden: Golden) -> None:
    await lab.backed_up(whole=False)
    home, its = await lab.home("lost")
    with golden.raises(PreconditionFailed):
        await copies_of(home, its).plan("alpha", BETA)
    assert not built.databases


async def test_a_site_without_room_for_the_database_is_refused_and_the_database_deleted(
    lab: RestoringLab, built: Built, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, home, its = await lost(lab)
    site = home.sites.open(await home.site("east"))

    async def free_bytes(machine: str, _: str) -> int:
        return 8192 if machine == "east-a1" else 8191

    monkeypatch.setattr(type(site), "free_bytes", lambda _, machine, named: free_bytes(machine, named))
    with golden.raises(PreconditionFailed):
        await its.plan("alpha", BETA)
    assert not built.path.exists()


# --- its declaration ------------------------------------------------------------------------------------------------


def plane_with(**spec: object) -> ControlPlane:
    document = {
        "apiVersion": "quarterdeck.dev/v1alpha1",
        "kind": "ControlPlane",
        "metadata": {"name": "alpha", "labels": {"team": "blue"}, "annotations": {"tool": "x"}},
        "spec": {"placement": {"site": "east"}, **spec},
    }
    return ControlPlane.model_validate(document, strict=False)


def site(name: str, *classes: str) -> Site:
    spec = {"driver": "local", "zones": ["a", "b"], "storageClasses": [{"name": each} for each in classes]}
    return Site.model_validate({"metadata": {"name": name}, "spec": spec}, strict=False)


EAST, WEST = site("east", "standard", "fast"), site("west", "slow")
CLOUD = {"program": "/opt/ccm", "provider": "aws"}
SETS = [
    {"name": "routes", "lock": "route-migration", "controllers": ["route"], "owner": "cloud-controller-manager"},
]


def test_requests_about_replicas_of_the_original_are_not_copied() -> None:
    original = with_spec(
        plane_with(replaceReplicas=["east-1"]),
        paused=True,
        new_epoch=NewEpoch(epoch=4),
    )
    spec = copied_plane(original, BETA, EAST).plane.spec
    assert (spec.replace_replicas, spec.cordoned_replicas, spec.paused, spec.new_epoch) == ((), (), False, None)


def test_what_the_data_depends_on_stays_the_same() -> None:
    original = plane_with(
        serviceCidrs=["10.64.0.0/16"], kubernetesVersion="1.35.6", encryption={"secrets": False}, replicas=5
    )
    copied = copied_plane(original, BETA, EAST)
    assert copied.plane.spec == with_spec(original, endpoint=original.spec.endpoint).spec
    assert copied.plane.metadata.labels == {"team": "blue"}
    assert copied.differences == ()


@pytest.mark.parametrize(
    ("endpoint", "own"),
    [
        ({"name": "k8s.example.com"}, "k9s.example.com"),
        ({"mode": "address", "address": "10.0.0.9"}, "10.0.0.10"),
        ({"mode": "unmanaged", "name": "k8s.example.com"}, "k9s.example.com"),
    ],
)
def test_a_name_or_address_that_is_declared_belongs_to_one_plane(
    endpoint: dict[str, object], own: str, golden: Golden
) -> None:
    original = plane_with(endpoint=endpoint)
    for given in (None, original.host):
        with golden.raises(InvalidInput):
            copied_plane(original, replace(BETA, endpoint=given), EAST)
    assert copied_plane(original, replace(BETA, endpoint=own), EAST).plane.host == own


def test_a_name_that_follows_from_that_of_the_plane_needs_no_word() -> None:
    rfc2136 = {
        "server": "ns.example.com",
        "zone": "example.com",
        "tsig": {"keyName": "update", "secretFile": "/etc/tsig"},
    }
    original = plane_with(endpoint={"mode": "rfc2136", "rfc2136": rfc2136, "takeOver": True})
    copied = copied_plane(original, BETA, EAST).plane
    assert copied.host == "beta.example.com"
    assert not copied.spec.endpoint.take_over, "the record of the original is never taken over"


def test_a_port_is_shared_with_a_plane_at_another_site_alone() -> None:
    original = plane_with(endpoint={"port": 6443})
    here = copied_plane(original, BETA, EAST)
    assert here.plane.spec.endpoint.port is None
    assert len(here.differences) == 1
    assert copied_plane(original, replace(BETA, site="west"), WEST).plane.spec.endpoint.port == 6443


def test_flags_that_name_the_original_name_the_copy(golden: Golden) -> None:
    flags = {"external-hostname": "alpha.quarterdeck.internal", "audit-log-format": "json"}
    copied = copied_plane(plane_with(extraArgs={"kubeApiserver": flags}), BETA, EAST)
    assert copied.plane.spec.extra_args.kube_apiserver == {**flags, "external-hostname": "beta.quarterdeck.internal"}
    golden(copied.differences[0])


def test_nothing_acts_on_the_world_of_the_original_unless_that_is_asked_for(golden: Golden) -> None:
    original = plane_with(cloudControllerManager=CLOUD, controllerSets=SETS)
    copied = copied_plane(original, BETA, EAST)
    assert (copied.plane.spec.cloud_controller_manager, copied.plane.spec.controller_sets) == (None, ())
    for each in copied.differences:
        golden(each)
    asked = copied_plane(original, replace(BETA, external_controllers=True), EAST)
    assert asked.plane.spec.cloud_controller_manager == original.spec.cloud_controller_manager
    assert asked.plane.spec.controller_sets == original.spec.controller_sets
    assert asked.differences == ()


def test_a_copy_has_no_standby_and_can_be_at_the_site_of_that(golden: Golden) -> None:
    original = plane_with(standby={"site": "west"})
    copied = copied_plane(original, replace(BETA, site="west"), WEST)
    assert (copied.plane.spec.placement.site, copied.plane.spec.standby) == ("west", None)
    golden(copied.differences[0])


def test_at_another_site_it_has_zones_and_storage_classes_that_the_site_has(golden: Golden) -> None:
    original = plane_with(
        placement={"site": "east", "zones": ["a"], "storageClass": "fast"},
        etcd={"events": {"separate": True, "storageClass": "slow"}},
    )
    copied = copied_plane(original, replace(BETA, site="west"), WEST)
    spec = copied.plane.spec
    assert (spec.placement.site, spec.placement.zones) == ("west", None)
    assert (spec.etcd_storage_class, spec.events_storage_class) == (None, "slow")
    for each in copied.differences:
        golden(each)
    same = copied_plane(original, BETA, EAST).plane.spec
    assert same.placement == original.spec.placement


def test_a_plane_is_declared_by_its_document_alone() -> None:
    """What is not set stays unset: the defaults of a later version apply to it as to any new plane."""
    copied = copied_plane(new_control_plane("alpha", site="east"), BETA, EAST).plane
    assert copied.host == "beta.quarterdeck.internal"
    assert not {"healing", "backup", "recovery"} & copied.spec.model_fields_set
