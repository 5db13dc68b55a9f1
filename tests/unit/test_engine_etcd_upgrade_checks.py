"""What stands in the way of another version of etcd."""

from __future__ import annotations

from typing import cast

import pytest
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.etcd import Etcd, EtcdUpgrade
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.engine.preflight.etcd_upgrade_checks import require_etcd_upgradable, upgrades_etcd
from quarterdeck.engine.preflight.upgrade_checks import require_upgradable
from quarterdeck.errors import InvalidInput, PreconditionFailed


def plane(version: str = "3.6.16", *, keep_one: bool = False, to: str | None = None, replicas: int = 3) -> ControlPlane:
    upgrade = EtcdUpgrade(keep_one=keep_one, to=to) if keep_one or to else None
    made = new_control_plane("demo", site="east", replicas=replicas)
    return cast("ControlPlane", made.with_spec(etcd=Etcd(version=version, upgrade=upgrade)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (plane(), plane("3.6.12")),
        (plane(), plane("3.7.3")),
        (plane(), plane("3.7.3", keep_one=True)),
        (plane(), plane("3.5.35")),
        (plane("3.7.3", keep_one=True), plane("3.7.3")),
        (plane("3.7.3", keep_one=True), plane("3.6.16")),
        (plane("3.7.2", keep_one=True), plane("3.7.3", keep_one=True)),
        (plane(replicas=1), plane("3.7.3", replicas=1)),
    ],
)
def test_patch_releases_and_neighbouring_minor_versions_can_follow(before: ControlPlane, after: ControlPlane) -> None:
    require_etcd_upgradable(before, after)
    assert upgrades_etcd(before, after) == (before.spec.etcd.version != after.spec.etcd.version)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (plane("3.5.35"), plane("3.7.3")),
        (plane("3.7.3"), plane("3.5.35")),
        (plane(), plane("3.6.15", keep_one=True)),
        (plane(replicas=1), plane("3.7.3", keep_one=True, replicas=1)),
        (plane(), plane("3.7.3").with_spec(placement=plane().spec.placement.model_copy(update={"site": "west"}))),
    ],
)
def test_what_no_change_can_be_is_refused(before: ControlPlane, after: ControlPlane, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        require_etcd_upgradable(before, after)


def test_one_upgrade_ends_before_another_begins(golden: Golden) -> None:
    kept = plane("3.6.16", keep_one=True)
    with golden.raises(PreconditionFailed):
        require_etcd_upgradable(kept, plane("3.7.3"))
    going_on = UpgradeSettings(window=UpgradeWindow.EMULATING, soak=60.0)
    kubernetes = plane().with_spec(kubernetes_version="v1.36.3", upgrade=going_on)
    with golden.raises(PreconditionFailed):
        require_etcd_upgradable(kubernetes, kubernetes.with_spec(etcd=Etcd(version="3.7.3")))
    for each in (kept, plane("3.6.16", to="3.7.3")):
        older = each.with_spec(kubernetes_version="v1.36.3")
        with golden.raises(PreconditionFailed):
            require_upgradable(older, older.with_spec(kubernetes_version="v1.37.2"))
