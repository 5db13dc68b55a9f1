"""The parts of an upgrade: what follows what, by hand, with a soak, and over several minor versions."""

from __future__ import annotations

import pytest
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlaneSpec, new_control_plane
from quarterdeck.api.plane.upgrade import UpgradeSettings, UpgradeWindow
from quarterdeck.components.minors import KUBERNETES
from quarterdeck.components.transitions.upgrade_path import finished, first_part, next_part, stopped
from quarterdeck.errors import InvalidInput

EMULATING, RAISED, FINAL = UpgradeWindow


def at(version: str, upgrade: UpgradeSettings | None = None) -> ControlPlaneSpec:
    spec = new_control_plane("demo", site="east").spec
    return spec.model_copy(update={"kubernetes_version": f"v{version}", "upgrade": upgrade})


def parts(spec: ControlPlaneSpec, to: str, soak: float | None = None) -> list[tuple[str, UpgradeWindow]]:
    """The version and the window of each part."""
    found: list[tuple[str, UpgradeWindow]] = []
    following: ControlPlaneSpec | None = first_part(spec, f"v{to}", soak)
    while following is not None:
        settings = following.upgrade or UpgradeSettings()
        found.append((following.kubernetes_version.removeprefix("v"), settings.window))
        following = next_part(following)
    return found


def newest(minor: int) -> str:
    return f"1.{minor}.{KUBERNETES[1, minor].newest}"


def test_a_patch_release_and_the_next_minor_version_are_one_part() -> None:
    assert parts(at("1.36.0"), "1.36.3") == [("1.36.3", RAISED)]
    assert parts(at("1.36.3"), "1.37.1") == [("1.37.1", RAISED)]


def test_a_patch_release_keeps_the_window() -> None:
    spec = first_part(at("1.36.0", UpgradeSettings(window=FINAL)), "v1.36.3", None)
    assert spec.upgrade == UpgradeSettings(window=FINAL)


def test_minor_versions_between_are_parts_with_their_newest_patch_release() -> None:
    assert parts(at("1.34.1"), "1.37.1") == [(newest(35), RAISED), (newest(36), RAISED), ("1.37.1", RAISED)]


def test_with_a_soak_each_window_is_a_part_and_the_last_one_is_final() -> None:
    assert parts(at("1.36.3"), "1.37.1", 60.0) == [("1.37.1", EMULATING), ("1.37.1", RAISED), ("1.37.1", FINAL)]
    assert parts(at("1.35.1"), "1.37.1", 60.0) == [
        (newest(36), EMULATING),
        (newest(36), RAISED),
        ("1.37.1", EMULATING),
        ("1.37.1", RAISED),
        ("1.37.1", FINAL),
    ]


def test_versions_without_a_final_window_end_in_the_one_before() -> None:
    assert parts(at("1.33.5"), "1.34.4", 60.0) == [("1.34.4", EMULATING), ("1.34.4", RAISED)]


def test_the_former_minor_version_is_one_part_and_older_ones_are_refused(golden: Golden) -> None:
    assert parts(at("1.37.1", UpgradeSettings(window=EMULATING)), "1.36.3") == [("1.36.3", RAISED)]
    with golden.raises(InvalidInput):
        first_part(at("1.37.1"), "v1.35.4", None)


def test_nothing_is_stored_of_an_upgrade_that_has_ended_in_the_usual_window() -> None:
    assert first_part(at("1.36.3"), "v1.37.1", None).upgrade is None


@pytest.mark.parametrize("soak", [None, 60.0])
def test_an_upgrade_that_is_stopped_stays_in_its_window(soak: float | None) -> None:
    settings = UpgradeSettings(window=EMULATING, to="v1.37.1", soak=soak)
    spec = stopped(at("1.36.3", settings))
    assert spec.upgrade == UpgradeSettings(window=EMULATING)
    assert next_part(spec) is None
    assert stopped(at("1.36.3")) == at("1.36.3")


def test_a_finished_version_is_in_its_final_window() -> None:
    spec = finished(at("1.37.1"))
    assert spec.upgrade == UpgradeSettings(window=FINAL)
    assert next_part(spec) is None
