"""The parts of an upgrade of etcd."""

from __future__ import annotations

import pytest

from quarterdeck.api.controlplane import ControlPlaneSpec, new_control_plane
from quarterdeck.api.plane.etcd import Etcd, EtcdUpgrade
from quarterdeck.components.minors import ETCD
from quarterdeck.components.transitions import upgrade_parts
from quarterdeck.components.transitions.etcd_path import finished, first_part, stopped, too_old
from quarterdeck.errors import InvalidInput

MIDDLE = f"3.6.{ETCD[3, 6].newest}"


def at(version: str, upgrade: EtcdUpgrade | None = None) -> ControlPlaneSpec:
    return new_control_plane("demo", site="east").spec.model_copy(
        update={"etcd": Etcd(version=version, upgrade=upgrade)}
    )


def told(spec: ControlPlaneSpec | None) -> list[tuple[str, bool]]:
    """The version of each part, and whether one member keeps the former one."""
    if spec is None:
        return []
    keeps = spec.etcd.upgrade is not None and spec.etcd.upgrade.keep_one
    return [(spec.etcd.version, keeps), *told(upgrade_parts.next_part(spec))]


@pytest.mark.parametrize("to", ["3.6.15", "3.6.17"])
def test_a_patch_release_is_one_part(to: str) -> None:
    assert told(first_part(at("3.6.16"), to, None)) == [(to, False)]


def test_minor_versions_come_one_after_the_other() -> None:
    assert told(first_part(at("3.5.35"), "3.7.3", None)) == [(MIDDLE, False), ("3.7.3", False)]


def test_each_minor_version_soaks_with_one_member_of_the_former_one() -> None:
    first = first_part(at("3.5.35"), "3.7.3", 60.0)
    assert told(first) == [(MIDDLE, True), (MIDDLE, False), ("3.7.3", True), ("3.7.3", False)]
    assert upgrade_parts.soak(first) == 60.0
    assert upgrade_parts.soak(finished(first)) == 0.0
    assert finished(finished(at("3.7.3", EtcdUpgrade(keep_one=True, soak=60.0)))).etcd.upgrade is None


def test_a_person_who_named_no_time_ends_the_soak() -> None:
    assert told(at("3.7.3", EtcdUpgrade(keep_one=True))) == [("3.7.3", True)]


def test_the_way_back_is_one_minor_version() -> None:
    assert told(first_part(at("3.7.3", EtcdUpgrade(keep_one=True)), "3.6.16", None)) == [("3.6.16", False)]
    with pytest.raises(InvalidInput, match="one minor version at a time"):
        first_part(at("3.7.3"), "3.5.35", None)


def test_an_abort_ends_what_follows_by_itself() -> None:
    assert told(stopped(first_part(at("3.5.35"), "3.7.3", None))) == [(MIDDLE, False)]
    assert stopped(at("3.7.3", EtcdUpgrade(keep_one=True, soak=5.0))).etcd.upgrade == EtcdUpgrade(keep_one=True)


def test_members_must_be_new_enough_before_the_next_minor_version() -> None:
    assert too_old("3.5.31", "3.6.16") == "3.5.32"
    assert too_old("3.5.32", "3.6.16") == ""
    assert too_old("3.6.10", "3.7.3") == "3.6.11"
    assert too_old("3.7.3", "3.6.16") == ""
    assert too_old("3.6.10", "3.6.16") == ""
