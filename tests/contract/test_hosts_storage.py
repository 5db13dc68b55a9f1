"""Volumes of hosts that commands of people's attach: what is cut short, deleted, and back after a boot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from support.conditions import eventually
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import HostsUnderTest, LabSite, hosts_site
from support.site_harness import keeps_writing, runs, status

from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.units import MachineState, UnitSpec, UnitState
from quarterdeck.sites.endings import why_unit_ended
from quarterdeck.sites.ssh.hosts import SshStorageClass, VolumeCommands

pytestmark = [pytest.mark.hosts, pytest.mark.skipif(bool(why_not()), reason=why_not())]

A, B, C = "east-a1", "east-b1", "east-c1"


@pytest.fixture
async def lab(machines: HostsLab) -> AsyncIterator[HostsUnderTest]:
    async with hosts_site(machines) as made:
        yield made


@pytest.fixture
def site(lab: HostsUnderTest) -> LabSite:
    return lab.site


async def in_use(site: LabSite) -> None:
    volume = await site.create_volume(A, "data", "shared")
    await site.start_unit(A, keeps_writing(volume.path, fresh=True))
    await eventually(lambda: site.list_volume(A, "data", "log"), lambda seen: seen == ("1.wal",))


@contextmanager
def no_connections(lab: HostsLab) -> Iterator[None]:
    """The storage is out of order."""
    mark = lab.storage / ".full"
    mark.touch()
    try:
        yield
    finally:
        mark.unlink()


async def has(site: LabSite, machine: str) -> tuple[str, ...] | None:
    facts = (await site.facts("log")).machine(machine)
    assert facts is not None
    return facts.holds("data")


async def test_what_was_cut_short_is_nobodys_and_goes_on(lab: HostsUnderTest, site: LabSite) -> None:
    await in_use(site)
    await site.stop_unit(A, "keeps-writing")
    with no_connections(lab.lab):
        with pytest.raises(Unavailable, match="of storage class shared: /usr/bin/env ended with 1: the storage takes"):
            await site.attach_volume(B, "data", A)
        assert (await has(site, A), await has(site, B)) == ((), ())
        assert (await site.facts()).away_from(A, "data") == B
        with pytest.raises(Unavailable, match="is not attached here"):
            await site.start_unit(A, keeps_writing(site.storage_class("", "shared").folder / "data", fresh=True))
        await site.remove_unit(A, "keeps-writing")
    moved = await site.attach_volume(B, "data", A)
    assert (await has(site, A), await has(site, B)) == ((), ("1.wal",))
    assert moved.used_bytes > 0


async def test_a_host_that_boots_has_its_volume_again_once_it_is_attached(lab: HostsUnderTest, site: LabSite) -> None:
    await in_use(site)
    await site.kill_machine(A)
    await site.boot_machine(A)
    seen = await eventually(lambda: status(site, A, "keeps-writing"), lambda seen: bool(seen.refused))
    assert "is not attached here" in seen.refused
    assert (await site.facts()).away_from(A, "data") == A, "it is on its way"
    await site.attach_volume(A, "data", A)
    await eventually(lambda: status(site, A, "keeps-writing"), lambda seen: seen.state is UnitState.RUNNING)


async def test_a_host_that_was_away_has_no_claim_to_what_another_one_has(lab: HostsUnderTest, site: LabSite) -> None:
    await in_use(site)
    await site.kill_machine(A)
    await site.attach_volume(B, "data", A)
    await site.boot_machine(A)
    assert (await site.facts()).away_from(B, "data") == ""
    assert (await site.facts()).away_from(A, "data") == B
    assert await site.stands_at("", "data", site.host(A)) == {}
    with pytest.raises(Conflict, match=f"host {B} has it"):
        await site.create_volume(A, "data", "shared")
    with pytest.raises(NotFound):
        await site.attach_volume(C, "data", A)


async def test_what_is_mounted_still_on_a_host_that_was_cut_off_is_not_its_own(
    lab: HostsUnderTest, site: LabSite
) -> None:
    """Storage may take a host's access away, and leave what is mounted there."""
    volume = await site.create_volume(A, "data", "shared")
    lab.put_text(A, volume.path, "log/1.wal", "x")
    lab.lab.cut(A)
    await site.attach_volume(B, "data", A)
    lab.lab.sh(A, 'mount -t tmpfs -o ro tmpfs "$1"', str(volume.path))
    lab.lab.mend(A)
    await eventually(site.machines, lambda seen: all(each.state is MachineState.UP for each in seen))
    assert (await has(site, A), await has(site, B)) == ((), ("1.wal",))
    assert (await site.facts()).away_from(A, "data") == B
    assert (await site.attach_volume(B, "data", A)).storage_class == "shared", "and can be repeated"
    spec = keeps_writing(volume.path, fresh=True)
    with pytest.raises(Unavailable, match="is not attached here"):
        await site.start_unit(A, spec)
    lab.lab.sh(A, 'umount "$1"', str(volume.path))
    assert (await site.facts()).away_from(A, "data") == B


async def test_of_which_class_a_volume_of_a_dead_host_is_its_commands_say(site: LabSite) -> None:
    await site.create_volume(A, "data", "shared")
    await site.create_volume(A, "own", "standard")
    none = VolumeCommands(attach=("sh", "-c", "exit 3"), detach=("sh", "-c", "exit 3"))
    other = SshStorageClass(name="other", commands=none)
    await site.kill_machine(A)
    started = with_classes(site, (*site._settings.storage_classes, other))
    with pytest.raises(NotFound, match=f"machine {A} has no such volume"):
        await started.attach_volume(B, "own", A)
    assert (await started.attach_volume(B, "data", A)).storage_class == "shared"
    assert await started.stands_at("", "own", started.host(B)) == {}


async def test_what_is_deleted_is_empty_and_detached(lab: HostsUnderTest, site: LabSite) -> None:
    volume = await site.create_volume(A, "data", "shared")
    lab.put_file(A, volume.path, "log/1.wal", 8 * 2**20)
    await site.delete_volume(A, "data")
    await site.delete_volume(A, "data")
    assert not list((lab.lab.storage / "data").iterdir())
    assert lab.lab.sh(A, 'ls "$1"', str(volume.path.parent)) == ""
    assert await site.volumes(A) == ()
    await site.create_volume(B, "data", "shared")
    assert await has(site, B) == ()


async def test_a_snapshot_stays_as_it_was(lab: HostsUnderTest, site: LabSite) -> None:
    volume = await site.create_volume(A, "data", "shared")
    lab.put_text(A, volume.path, "file", "before")
    await site.snapshot_volume(A, "data", "one")
    lab.put_text(A, volume.path, "file", "after")
    await site.snapshot_volume(A, "data", "one")
    assert (lab.lab.storage / ".snapshot-data-one/file").read_text() == "before"
    await site.create_volume(A, "local", "standard")
    with pytest.raises(PreconditionFailed, match="storage class standard has no command that takes snapshots"):
        await site.snapshot_volume(A, "local", "one")


async def test_the_promises_of_good_commands_are_kept(lab: HostsUnderTest, site: LabSite) -> None:
    promises = [each async for each in site.check_storage("shared", "check-1", A, B)]
    assert [(each.words, each.seen) for each in promises if not each.kept] == []
    assert len(promises) == 11
    assert lab.lab.sh(A, "findmnt --noheadings | grep check-1 || true") == ""


async def test_promises_that_are_not_kept_are_said(lab: HostsUnderTest, site: LabSite) -> None:
    """Commands that mount wherever they are asked to, and leave whatever uses it."""
    enter = lab.lab._machines[A].enter_argv(), lab.lab._machines[B].enter_argv()
    script = lab.lab.folder / "careless"
    script.write_text(_CARELESS.format(a=" ".join(enter[0]), b=" ".join(enter[1])))
    careless = VolumeCommands(
        attach=("sh", str(script), "attach", "{host}", "{volume}", "{path}"),
        detach=("sh", str(script), "detach", "{host}", "{volume}", "{path}"),
    )
    promises = [each async for each in with_commands(site, careless).check_storage("shared", "check-2", A, B)]
    seen = {each.words: each.seen for each in promises}
    assert seen["attach ends with 3 when there is no such volume, and it must create none"] == "it ended with 0"
    assert seen["attach refuses a host while another one has it"] == "it ended with 0"
    assert "it grew from" in seen["detach refuses, or leaves nothing on the host that can write to it"]
    assert [each.kept for each in promises][-1] is False, "nothing else was tried"


def with_commands(site: LabSite, commands: VolumeCommands) -> LabSite:
    """The same site, with other commands, as a process knows it that has just been started."""
    return with_classes(
        site,
        tuple(
            replace(each, commands=commands) if each.name == "shared" else each
            for each in site._settings.storage_classes
        ),
    )


def with_classes(site: LabSite, classes: tuple[SshStorageClass, ...]) -> LabSite:
    other = LabSite(replace(site._settings, storage_classes=classes), site._hosts, site._sender)
    other.lab = site.lab
    return other


_CARELESS = """
case $2 in east-a1) enter='{a}' ;; *) enter='{b}' ;; esac
case $1 in
  attach) exec $enter sh -c 'mkdir -p "/srv/storage/$0" "$1"; mountpoint -q "$1" || mount --bind "/srv/storage/$0" "$1"' "$3" "$4" ;;
  detach) exec $enter sh -c '! mountpoint -q "$0" || umount --lazy "$0"' "$4" ;;
esac
"""  # noqa: E501


async def test_a_host_is_cleared_of_units_by_what_is_there_and_not_by_what_is_known(
    lab: HostsUnderTest, site: LabSite
) -> None:
    """A unit whose folder is gone, and one that only a link starts at boot; not one of somebody else's."""
    await site.start_unit(A, runs())
    await site.start_unit(A, UnitSpec(name="left", argv=("/bin/sleep", "1000"), restart_pause=0.25))
    foreign = "[Service]\nExecStart=/bin/sleep 1000\n"
    script = """
      rm -rf /var/lib/quarterdeck/units/left
      ln -s /etc/systemd/system/quarterdeck-linked.service /etc/systemd/system/multi-user.target.wants/
      cat > /etc/systemd/system/quarterdeck-foreign.service
      systemctl daemon-reload && systemctl enable --quiet --now quarterdeck-foreign
    """
    lab.lab.sh(A, script, stdin=foreign.encode())
    try:
        await site.destroy()
        names = "ls /etc/systemd/system /etc/systemd/system/multi-user.target.wants | grep ^quarterdeck- | sort -u"
        assert lab.lab.sh(A, names).split() == ["quarterdeck-foreign.service"]
        assert lab.lab.sh(A, "systemctl is-active quarterdeck-foreign || true").strip() == "active"
        assert (
            lab.lab.sh(A, "systemctl is-active quarterdeck-left quarterdeck-linked || true").split() == ["inactive"] * 2
        )
    finally:
        lab.lab.sh(
            A, "systemctl disable --quiet --now quarterdeck-foreign; rm /etc/systemd/system/quarterdeck-foreign*"
        )


async def test_a_program_that_cannot_be_executed_is_refused_and_later_named_in_the_words_of_systemd(
    lab: HostsUnderTest, site: LabSite
) -> None:
    lab.lab.sh(A, "printf '#!/bin/sh\\nexec sleep 1000\\n' > /usr/local/bin/program; chmod 644 /usr/local/bin/program")
    broken = UnitSpec(name="broken", argv=("/usr/local/bin/program",), restart_pause=0.25)
    with pytest.raises(
        PreconditionFailed, match=r"program /usr/local/bin/program is not executable: its mode is -rw-r--r--"
    ):
        await site.start_unit(A, broken)
    lab.lab.sh(A, "chmod 755 /usr/local/bin/program")
    await site.start_unit(A, broken)
    lab.lab.sh(A, "chmod 644 /usr/local/bin/program; systemctl kill --signal KILL quarterdeck-broken")
    why = await eventually(lambda: why_unit_ended(site, A, "broken"), lambda seen: "Permission denied" in seen)
    assert why.startswith("exit code 203 (systemd: EXEC)")
