"""Homes side by side never share an address of 127.0.0.0/8."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.errors import Conflict, Corrupt, PreconditionFailed, Unavailable
from quarterdeck.sites.isolation import MachinePlace
from quarterdeck.sites.local.loopback import HIGHEST, Loopback, open_loopback
from quarterdeck.sites.local.site_files import site_number


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "registry"


def home(tmp_path: Path, name: str = "home") -> Path:
    path = tmp_path / name
    path.mkdir(exist_ok=True)
    return path


def test_an_address_is_made_of_the_numbers_of_home_site_and_machine() -> None:
    place = MachinePlace(site="east", site_number=2, machine="east-a1", machine_number=3, zone="a")
    assert Loopback(77).address(place) == "127.77.2.3"


def test_a_home_keeps_its_number(tmp_path: Path, registry: Path) -> None:
    first = open_loopback(home(tmp_path), registry)
    assert open_loopback(home(tmp_path), registry) == first
    shutil.rmtree(registry)  # as when /tmp is emptied
    assert open_loopback(home(tmp_path), registry) == first


def occupy(tmp_path: Path, registry: Path, number: int, *, with_site: bool = True) -> Path:
    """A home that has claimed a number earlier."""
    path = tmp_path / f"home-{number}"
    (path / "sites/east").mkdir(parents=True)
    (path / "sites/loopback").write_text(str(number))
    (registry / str(number)).write_text(str(path))
    if with_site:
        (path / "sites/east/number").write_text("1")
    return path


def test_the_last_free_number_is_found_and_after_it_none(tmp_path: Path, registry: Path, golden: Golden) -> None:
    registry.mkdir(mode=0o700)
    for number in set(range(1, HIGHEST + 1)) - {200}:
        occupy(tmp_path, registry, number)
    last = home(tmp_path, "last")
    assert open_loopback(last, registry).home_number == 200
    site_number(last, "east")
    with golden.raises(PreconditionFailed):
        open_loopback(home(tmp_path, "one-too-many"), registry)
    shutil.rmtree(tmp_path / "home-3")
    assert open_loopback(home(tmp_path, "one-too-many"), registry).home_number == 3


def test_a_home_without_sites_gives_its_number_up_only_when_there_is_no_other(tmp_path: Path, registry: Path) -> None:
    registry.mkdir(mode=0o700)
    for number in set(range(1, HIGHEST + 1)) - {200}:
        occupy(tmp_path, registry, number, with_site=number != 100)
    assert open_loopback(home(tmp_path, "first"), registry).home_number == 200
    site_number(home(tmp_path, "first"), "east")
    assert open_loopback(home(tmp_path, "second"), registry).home_number == 100
    site_number(home(tmp_path, "second"), "east")
    with pytest.raises(PreconditionFailed):
        open_loopback(tmp_path / "home-100", registry)


def test_a_copy_of_a_home_with_sites_cannot_run_beside_the_original(tmp_path: Path, registry: Path) -> None:
    original = home(tmp_path)
    open_loopback(original, registry)
    site_number(original, "east")
    shutil.copytree(original, tmp_path / "copy")
    with pytest.raises(Conflict, match="copied home"):
        open_loopback(tmp_path / "copy", registry)
    shutil.rmtree(tmp_path / "copy/sites/east")
    number = open_loopback(original, registry).home_number
    assert open_loopback(tmp_path / "copy", registry).home_number != number


def test_a_spoilt_number_is_reported_and_bothers_no_other_home(tmp_path: Path, registry: Path) -> None:
    number = open_loopback(home(tmp_path), registry).home_number
    (tmp_path / "home/sites/loopback").write_text("300")
    with pytest.raises(Corrupt, match="300"):
        open_loopback(home(tmp_path), registry)
    assert open_loopback(home(tmp_path, "other"), registry).home_number != number


def test_a_registry_that_others_can_write_to_is_not_trusted(tmp_path: Path, registry: Path, golden: Golden) -> None:
    registry.mkdir(mode=0o700)
    registry.chmod(0o770)
    with golden.raises(Unavailable):
        open_loopback(home(tmp_path), registry)
    registry.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    registry.symlink_to(tmp_path / "elsewhere")
    with golden.raises(Unavailable):
        open_loopback(home(tmp_path), registry)
