"""The names and numbers of the machines of a local site."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.errors import Corrupt, InvalidInput
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.local.settings import LocalSiteSettings, stands
from quarterdeck.sites.local.site_files import site_number


def numbers(settings: LocalSiteSettings) -> dict[str, int]:
    return {name: stand.place.machine_number for name, stand in stands(settings, 1).items()}


def test_a_machine_keeps_its_number_when_the_site_grows() -> None:
    small = numbers(LocalSiteSettings(name="east", zones=("a", "b"), machines_per_zone=1))
    large = numbers(LocalSiteSettings(name="east", zones=("a", "b", "c"), machines_per_zone=3))
    assert small.items() <= large.items()


def test_the_largest_site_has_different_numbers_that_fit_an_address() -> None:
    zones = ("z", *(f"z{each}" for each in range(15)))
    found = numbers(LocalSiteSettings(name="east", zones=zones, machines_per_zone=15, edges=8))
    assert len(found) == 16 * 15 + 8
    assert len(set(found.values())) == len(found)
    assert set(found.values()) <= set(range(1, 255))


def test_each_edge_has_another_zone_and_the_first_the_name_that_it_had_when_it_was_alone() -> None:
    found = stands(LocalSiteSettings(name="east", zones=("edge", "b"), edges=2), 1).values()
    edges = {each.place.machine: each.place.zone for each in found if each.role is MachineRole.EDGE}
    assert edges == {"east-edge": "edge", "east-edge-2": "b"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "East"},
        {"name": "a/b"},
        {"name": "e", "zones": ()},
        {"name": "e", "zones": ("a", "a")},
        {"name": "e", "machines_per_zone": 0},
        {"name": "e", "zones": ("a",), "edges": 2},
        {"name": "e", "storage_classes": {}},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object], golden: Golden) -> None:
    with golden.raises(InvalidInput):
        LocalSiteSettings(**wrong)  # type: ignore[arg-type]


def test_each_site_of_a_home_has_a_number_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    assert [site_number(tmp_path, name) for name in ("east", "west", "east", "north", "west")] == [1, 2, 1, 3, 2]


def test_the_number_of_a_removed_site_is_given_again(tmp_path: Path) -> None:
    site_number(tmp_path, "east")
    site_number(tmp_path, "west")
    (tmp_path / "sites/east/number").unlink()
    assert site_number(tmp_path, "north") == 1


def test_a_spoilt_number_is_reported_not_guessed(tmp_path: Path, golden: Golden) -> None:
    site_number(tmp_path, "east")
    (tmp_path / "sites/east/number").write_text("one")
    with golden.raises(Corrupt):
        site_number(tmp_path, "east")
