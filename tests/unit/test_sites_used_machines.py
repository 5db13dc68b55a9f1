"""Machines that were used stay where they are, and in sight, whatever becomes of the settings of their site."""

from __future__ import annotations

from pathlib import Path

from support.golden import Golden

from quarterdeck.errors import Corrupt
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.settings import LocalSiteSettings
from quarterdeck.sites.local.site import LocalSite, open_local_site


def site(home: Path, *zones: str, machines: int = 1) -> LocalSite:
    settings = LocalSiteSettings(name="east", zones=zones, machines_per_zone=machines)
    return open_local_site(home, settings, open_loopback(home))


def use(home: Path, *machines: str) -> None:
    for name in machines:
        (home / "sites" / "east" / "machines" / name).mkdir(parents=True)


async def seen(site: LocalSite) -> dict[str, Machine]:
    return {each.name: each for each in await site.machines()}


async def test_no_change_of_the_zones_moves_a_machine_that_was_used(tmp_path: Path) -> None:
    before = await seen(site(tmp_path, "a", "b", "c"))
    use(tmp_path, "east-b1", "east-c1")
    site(tmp_path, "a", "b", "c")  # opened by every command
    for zones in (("b", "c"), ("c", "b", "a"), ("x", "c", "y", "b")):
        after = await seen(site(tmp_path, *zones))
        assert {name: after[name].address for name in ("east-b1", "east-c1")} == {
            name: before[name].address for name in ("east-b1", "east-c1")
        }
        assert len({each.address for each in after.values()}) == len(after), "no two machines meet"
        assert all(each.declared for each in after.values())


async def test_a_machine_that_was_used_stays_in_sight_when_the_settings_have_no_place_for_it(tmp_path: Path) -> None:
    site(tmp_path, "a", "b", machines=2)
    use(tmp_path, "east-b2")
    before = await seen(site(tmp_path, "a", "b", machines=2))
    after = await seen(site(tmp_path, "a"))
    assert set(after) == {"east-a1", "east-edge", "east-b2"}
    former = after["east-b2"]
    assert (former.address, former.zone, former.role) == (before["east-b2"].address, "b", MachineRole.CONTROL)
    assert [each.name for each in after.values() if not each.declared] == ["east-b2"]
    assert await site(tmp_path, "a").units("east-b2") == ()


async def test_a_machine_that_was_never_used_leaves_nothing(tmp_path: Path) -> None:
    site(tmp_path, "a", "b")
    assert set(await seen(site(tmp_path, "a"))) == {"east-a1", "east-edge"}


async def test_a_stand_that_cannot_be_read_is_reported_not_guessed(tmp_path: Path, golden: Golden) -> None:
    use(tmp_path, "east-a1")
    site(tmp_path, "a")
    (tmp_path / "sites/east/machines/east-a1/seat.json").write_text("{}")
    with golden.raises(Corrupt):
        site(tmp_path, "a")
