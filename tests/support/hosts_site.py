"""A site of the ssh driver on the machines of a lab, and hands inside of these."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from quarterdeck.errors import Unavailable
from quarterdeck.model.units import MachineRole, MachineState, UnitFile, UnitStatus
from quarterdeck.sites.ssh.connections import HostConnections
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings, SshStorageClass
from quarterdeck.sites.ssh.programs import Sender
from quarterdeck.sites.ssh.site import SshSite
from support.conditions import CALL, eventually
from support.hosts_lab import HostsLab, LabHost
from support.lab_storage import commands

_LIMIT = 50 * 2**20
EDGE = "east-edge"
#: The machines of the suite of the site port.
EAST = (
    *(LabHost(f"east-{zone}{number}", "east", zone) for number in (1, 2) for zone in "abc"),
    LabHost(EDGE, "east", "a"),
)
_UP = MachineState.UP
#: Those that nearly all tests ask: where this host is busy a first connection takes longer than who asks waits for it.
_FIRST = ("east-a1", "east-b1")
_LIB = PurePosixPath("/var/lib/quarterdeck")
_ROOTS = {"east-b1", "east-b2"}
"""Where one logs in as root; elsewhere as one who becomes root by sudo."""


def settings(lab: HostsLab) -> SshSettings:
    """Site east on all machines of a lab."""
    classes = (
        SshStorageClass(name="standard"),
        SshStorageClass(name="small", limit_bytes=_LIMIT),
        SshStorageClass(name="shared", commands=commands(lab.folder)),
    )
    return SshSettings(name="east", hosts=tuple(_host(lab, name) for name in lab.names), storage_classes=classes)


def _host(lab: HostsLab, name: str) -> SshHost:
    place = lab.place(name)
    role = MachineRole.EDGE if name == EDGE else MachineRole.CONTROL
    user = "root" if name in _ROOTS else "deck"
    return SshHost(name=name, address=place.address, zone=place.zone, roles=(role,), login=Login(host=name, user=user))


class LabSite(SshSite):
    """With the switches of its machines, which the lab has."""

    lab: HostsLab

    async def kill_machine(self, machine: str) -> None:
        """See Switches."""
        await asyncio.to_thread(self.lab.power_off, self.host(machine).name)

    async def boot_machine(self, machine: str) -> None:
        """See Switches."""
        if self.lab.is_on(name := self.host(machine).name):
            return
        await asyncio.to_thread(self.lab.power_on, name)
        # It has yet to be seen that the connection from before is gone.
        await eventually(self.machines, lambda seen: any(each.name == machine and each.state is _UP for each in seen))

    async def freeze_machine(self, machine: str) -> None:
        """See Switches."""
        await asyncio.to_thread(self.lab.freeze, self.host(machine).name)

    async def thaw_machine(self, machine: str) -> None:
        """See Switches."""
        await asyncio.to_thread(self.lab.thaw, self.host(machine).name)


@dataclass
class HostsUnderTest:
    """See SiteUnderTest."""

    site: LabSite
    dead: MachineState = MachineState.UNREACHABLE

    @property
    def lab(self) -> HostsLab:
        """The lab of the machines."""
        return self.site.lab

    def crash(self, machine: str, unit: UnitStatus) -> None:
        self.lab.sh(machine, 'kill -9 "$1"', str(unit.pid))

    def alive(self, machine: str, pid: int) -> bool:
        if not self.lab.is_on(machine):
            return False
        return self.lab.run(machine, ("grep", "-q", r"^State:\s[^ZX]", f"/proc/{pid}/status")).returncode == 0

    def file(self, machine: str, path: PurePosixPath) -> UnitFile:
        mode = self.lab.run(machine, ("stat", "--format=%a", str(path)))
        if mode.returncode != 0:
            raise FileNotFoundError(path)
        return UnitFile(path, self.lab.run(machine, ("cat", str(path))).stdout, int(mode.stdout, 8))

    def names(self, machine: str, folder: PurePosixPath) -> list[str]:
        return sorted(self.lab.sh(machine, 'ls -A "$1"', str(folder)).split())

    def put_file(self, machine: str, volume: PurePosixPath, path: str, size: int) -> None:
        self._put(machine, volume, path, b"x" * size)

    def take_file(self, machine: str, volume: PurePosixPath, path: str) -> None:
        """Also from the disk of a machine that is off."""
        shutil.rmtree(self.lab.disk(machine, volume / path))

    def put_text(self, machine: str, volume: PurePosixPath, path: str, text: str) -> None:
        self._put(machine, volume, path, text.encode())

    def text(self, machine: str, volume: PurePosixPath, path: str) -> str:
        return self.lab.sh(machine, 'cat "$1"', str(volume / path))

    async def job_processes(self, machine: str) -> int:
        """Those that have the user of jobs and are in no unit."""
        script = "ps -eo user:32,cgroup | grep '^quarterdeck-' | grep -vc quarterdeck.slice || true"
        return int(await asyncio.to_thread(self.lab.sh, machine, script))

    def _put(self, machine: str, volume: PurePosixPath, path: str, content: bytes) -> None:
        self.lab.sh(machine, _PUT, str(volume), path, stdin=content)


@asynccontextmanager
async def hosts_site(lab: HostsLab) -> AsyncIterator[HostsUnderTest]:
    """The site, of which nothing is left in the end, while this process is a client of the lab."""
    home = os.environ["HOME"]
    os.environ["HOME"] = str(lab.access.folder)
    hosts = HostConnections("tests")
    try:
        with lab.inside():
            site = LabSite(settings(lab), hosts, Sender())
            site.lab = lab
            try:
                await asyncio.gather(*(eventually(partial(_answers, site, name), bool, CALL) for name in _FIRST))
                yield HostsUnderTest(site)
                await hosts.close()  # faults that were made here end with it
            finally:
                off = await asyncio.to_thread(_made_well, lab)
                for name in off:
                    await eventually(partial(_answers, site, name), bool, CALL)
                await eventually(partial(_cleared, site), bool, CALL)
                await hosts.close()
                await asyncio.gather(
                    *(eventually(partial(_left, lab, name), lambda left: not left) for name in lab.names)
                )
    finally:
        os.environ["HOME"] = home


async def _left(lab: HostsLab, name: str) -> str:
    """What is left on a machine, with its name."""
    left = await asyncio.to_thread(lab.sh, name, _LEFT)
    return left and f"{name}: {left}"


async def _cleared(site: LabSite) -> bool:
    """Whether all hosts that have anything could be cleared: where the host is busy, connections take their time."""
    used = [each for each in site._settings.hosts if _is_used(site.lab.disk(each.name, _LIB))]
    try:
        await asyncio.gather(*(site._destroyed(each) for each in used))
    except Unavailable:
        return False
    return True


def _is_used(folder: Path) -> bool:
    """Whether a host has more in its folder than it has from the first session on."""
    for root, folders, files in os.walk(folder):  # what a host deletes meanwhile is passed over
        for name in (*folders, *files):
            match Path(root, name).relative_to(folder).parts:
                case ("owner",) | ("locks" | "tmp", *_) | ("volumes", _):
                    continue
                case (_,) if name in folders:
                    continue
                case _:
                    return True
    return False


def _made_well(lab: HostsLab) -> tuple[str, ...]:
    """Whatever a test did to the machines; those that it left off."""
    for name in lab.names:
        if lab.is_on(name):
            lab.thaw(name)
            lab.mend(name)
    off = tuple(name for name in lab.names if not lab.is_on(name))
    lab.power_on(*off)
    return off


async def _answers(site: LabSite, name: str) -> bool:
    """Whether a host can be asked by now."""
    try:
        await site.ask(next(machine for machine in site._machines if site.host(machine).name == name), "ping", doing="")
    except Unavailable:
        return False
    return True


#: As whoever the volume belongs to would have written it.
_PUT = """
cd "$1"
mkdir -p "$(dirname "$2")"
cat > "$2"
chown --recursive --reference=. .
"""
_LEFT = """
set +e
cd /var/lib/quarterdeck 2>/dev/null && find units volumes/* fences -mindepth 1 2>/dev/null
systemctl list-units --plain --no-legend --all 'quarterdeck-*.service' 'quarterdeck-*.timer'
pgrep --list-full --uid quarterdeck-etcd,quarterdeck-api,quarterdeck-edge || true
"""
