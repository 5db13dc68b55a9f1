"""What stands in the way of another version of Kubernetes, as the checks before an upgrade see it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from support.golden import Golden
from support.small_plane import SmallPlane, small_plane
from support.stored_values import protobuf
from support.templates import template

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.api.controlplane import ControlPlane, ExtraArgs
from quarterdeck.api.plane.backup import BackupSettings, BackupStatus
from quarterdeck.api.plane.etcd import Etcd
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.components.template import Revisions
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.preflight.preconditions import checks
from quarterdeck.engine.preflight.site_checks import answer
from quarterdeck.engine.preflight.upgrade_checks import (
    UPGRADING,
    backups,
    custom_resources,
    flags,
    kubelets,
    removed_apis,
    require_upgradable,
    stored,
    webhooks,
)
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.kube.port import DeprecatedUse
from quarterdeck.model.findings import Finding, Verdict

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def at(plane: ControlPlane, version: str, window: UpgradeWindow | None = None) -> ControlPlane:
    settings = UpgradeSettings(window=window) if window is not None else None
    return plane.with_spec(kubernetes_version=version, upgrade=settings)


@pytest.fixture
async def small() -> SmallPlane:
    made = await small_plane()
    made.plane.resource = at(made.plane.resource, "v1.36.3")
    return made


def move(small: SmallPlane, version: str = "v1.37.2", window: UpgradeWindow | None = None) -> Move:
    return _move(small, at(small.plane.resource, version, window))


def _move(small: SmallPlane, wanted: ControlPlane) -> Move:
    nothing = {"source": (), "target": (), "target_site": None, "allow_distance": False}
    return Move(plane=small.plane, wanted=wanted, world=small.world, **nothing)  # type: ignore[arg-type]


async def node(small: SmallPlane, name: str, version: str) -> None:
    await put(small, f"/api/v1/nodes/{name}", {"status": {"nodeInfo": {"kubeletVersion": version}}})


async def put(small: SmallPlane, path: str, fields: dict[str, object]) -> None:
    """Have an object below a path whose last part is its name."""
    apiserver = apiserver_address(small.record("east-1"))
    manifest = {"metadata": {"name": path.rpartition("/")[2]}, **fields}
    await small.plane.kube.apply(apiserver, path, manifest, manager="a test")  # type: ignore[arg-type]


def told(found: Finding) -> str:
    return f"{found.verdict}: {'; '.join(filter(None, (found.seen, found.next_step)))}"


@pytest.mark.parametrize("version", ["v1.37.0", "v1.34.9", "v1.36.3-gke.1+abc"])
async def test_nodes_within_three_minor_versions_are_well(version: str, small: SmallPlane) -> None:
    await node(small, "n1", version)
    assert (await answer(kubelets, move(small))).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("version", "window"), [("v1.33.9", None), ("v1.38.0", None), ("v1.37.0", UpgradeWindow.EMULATING)]
)
async def test_nodes_that_are_too_old_or_newer_than_what_the_plane_behaves_as_are_named(
    version: str, window: UpgradeWindow | None, small: SmallPlane, golden: Golden
) -> None:
    for number in range(7):
        await node(small, f"n{number}", version)
    found = await answer(kubelets, move(small, window=window))
    assert found.verdict is Verdict.REFUSE
    golden(told(found))


async def test_removed_apis_that_clients_use_are_named_once(small: SmallPlane, golden: Golden) -> None:
    gone = DeprecatedUse(group="storage.k8s.io", version="v1beta1", resource="volumeattributesclasses", removed=(1, 37))
    later = replace(gone, resource="later", removed=(1, 38))
    kept = replace(gone, resource="kept", removed=None)
    for each in small.kube.apiservers.values():
        each.deprecated = (gone, later, kept)
    golden(told(await answer(removed_apis, move(small))))
    assert (await answer(removed_apis, move(small, window=UpgradeWindow.EMULATING))).verdict is Verdict.OK


async def test_an_apiserver_that_does_not_answer_is_no_proof_that_nobody_uses_an_api(small: SmallPlane) -> None:
    next(iter(small.kube.apiservers.values())).up = False
    assert (await answer(removed_apis, move(small))).verdict is Verdict.REFUSE


@pytest.mark.parametrize(
    "given",
    [
        {"kube_controller_manager": {"concurrent-service-syncs": "2"}},
        {"kube_apiserver": {"feature-gates": "SidecarContainers=true"}},
        {"kube_apiserver": {"runtime-config": "resource.k8s.io/v1alpha3=true"}},
    ],
)
async def test_flags_that_one_window_refuses_are_named(
    given: dict[str, dict[str, str]], small: SmallPlane, golden: Golden
) -> None:
    args = ExtraArgs(**given)
    small.plane.resource = small.plane.resource.with_spec(extra_args=args)
    found = await answer(flags, move(small))
    assert found.verdict is Verdict.REFUSE
    golden(told(found))


async def test_webhooks_that_match_exact_versions_are_named(small: SmallPlane, golden: Golden) -> None:
    assert (await answer(webhooks, move(small))).verdict is Verdict.OK
    hooks = [{"name": "exact.example", "matchPolicy": "Exact"}, {"name": "other.example"}]
    await put(small, f"{WEBHOOKS}/policies", {"webhooks": hooks})
    golden(told(await answer(webhooks, move(small))))


async def test_definitions_that_lost_a_stored_version_are_named(small: SmallPlane, golden: Golden) -> None:
    spec, status = {"versions": [{"name": "v1"}]}, {"storedVersions": ["v1beta1", "v1"]}
    await put(small, f"{DEFINITIONS}/widgets.example.com", {"spec": spec, "status": status})
    found = await answer(custom_resources, move(small))
    assert found.verdict is Verdict.REFUSE
    golden(told(found))


async def test_what_an_older_version_cannot_read_is_refused_before_anything_is_changed(
    small: SmallPlane, golden: Golden
) -> None:
    plane = small.plane
    plane.resource = at(plane.resource, "v1.37.2")
    goal = template(kubernetes_version="v1.37.2")
    plane.revisions = Revisions(goal="", templates={"": goal})
    small.cluster.put(b"/registry/pods/default/one", protobuf("v1", "Pod", b""))
    back = move(small, "v1.36.3")
    golden(told(await answer(stored, back)))
    newer = protobuf("storagemigration.k8s.io/v1", "StorageVersionMigration", b"")
    small.cluster.put(b"/registry/storageversionmigrations/one", newer)
    found = await answer(stored, back)
    assert found.verdict is Verdict.REFUSE
    golden(told(found))
    assert (await answer(stored, move(small, "v1.37.3"))).verdict is Verdict.OK


async def test_what_backups_lack_is_said(small: SmallPlane, golden: Golden) -> None:
    now = datetime.now(UTC)
    fresh = BackupStatus(revision=7, restorable_at=now, fulls=1, size_bytes=1)
    verified = fresh.model_copy(update={"verified_revision": 7, "verified_at": now})
    old = verified.model_copy(update={"verified_at": now - timedelta(days=2)})
    for status in (None, fresh, old):
        small.plane.resource = small.plane.resource.with_status(backup=status)
        golden(told(await answer(backups, move(small))))
    small.plane.resource = small.plane.resource.with_status(backup=verified)
    assert (await answer(backups, move(small))).verdict is Verdict.OK
    small.plane.resource = small.plane.resource.with_spec(backup=BackupSettings(enabled=False))
    golden(told(await answer(backups, move(small))))


async def test_only_another_version_or_window_is_checked_as_an_upgrade(small: SmallPlane) -> None:
    for changed in (move(small), move(small, "v1.36.4"), move(small, "v1.36.3", UpgradeWindow.FINAL)):
        assert set(UPGRADING) <= set(checks(changed))
    same = _move(small, small.plane.resource.with_spec(replicas=5))
    assert not set(UPGRADING) & set(checks(same))


@pytest.mark.parametrize(
    ("version", "window", "fits"),
    [
        ("v1.36.9", None, True),
        ("v1.37.2", None, True),
        ("v1.37.2", UpgradeWindow.EMULATING, True),
        ("v1.35.4", None, True),
        ("v1.34.4", None, False),
    ],
)
async def test_versions_of_neighbouring_minors_can_be_applied(
    version: str, window: UpgradeWindow | None, fits: bool, small: SmallPlane, golden: Golden
) -> None:
    wanted = at(small.plane.resource, version, window)
    if fits:
        require_upgradable(small.plane.resource, wanted)
        return
    with golden.raises(InvalidInput):
        require_upgradable(small.plane.resource, wanted)


@pytest.mark.parametrize("wanted", [("v1.35.4", None), ("v1.36.3", None), ("v1.36.3", UpgradeWindow.EMULATING)])
async def test_from_a_final_window_only_a_restore_leads_back(
    wanted: tuple[str, UpgradeWindow | None], small: SmallPlane, golden: Golden
) -> None:
    final = at(small.plane.resource, "v1.36.3", UpgradeWindow.FINAL)
    with golden.raises(PreconditionFailed):
        require_upgradable(final, at(final, *wanted))
    require_upgradable(final, at(final, "v1.37.2"))


async def test_a_version_is_not_final_at_once(small: SmallPlane, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        require_upgradable(small.plane.resource, at(small.plane.resource, "v1.37.2", UpgradeWindow.FINAL))


async def test_one_thing_changes_at_a_time(small: SmallPlane, golden: Golden) -> None:
    wanted = at(small.plane.resource, "v1.37.2")
    with golden.raises(InvalidInput):
        require_upgradable(small.plane.resource, wanted.with_spec(etcd=Etcd(version="3.5.35")))
    elsewhere = wanted.spec.placement.model_copy(update={"site": "west"})
    with golden.raises(InvalidInput):
        require_upgradable(small.plane.resource, cast("ControlPlane", wanted.with_spec(placement=elsewhere)))
