"""What the contract suite of sites needs of each site under test: tiny programs, and hands inside its machines."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

import pytest
from fakes.site import FakeSite
from fakes.site_machines import Behaviour

from quarterdeck.model.capabilities import Job
from quarterdeck.model.units import MachineState, UnitFile, UnitSpec, UnitState, UnitStatus
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.processes import JOB
from quarterdeck.sites.local.settings import LocalSiteSettings, LocalStorageClass
from quarterdeck.sites.local.site import LocalSite, open_local_site
from quarterdeck.sites.netns.lab import Lab, NetnsIsolation
from quarterdeck.sites.port import Faults, Holds, SitePort, Switches
from support.conditions import eventually as eventually
from support.hosts_lab import HostsLab, why_not
from support.hosts_site import hosts_site
from support.tiers import smoke

LIMIT = 50 * 2**20  # bytes, of the storage class "small"

# All of what machines run is there on every Debian, which need not have Python.
LISTENER = """
use IO::Socket::INET;
my $s = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => $ARGV[1], Listen => 128, ReuseAddr => 1) or die $@;
sleep 1000;
"""
#: Gives a file its size and has it synced, again and again; says who took how many seconds for it.
SYNCER = """
mkdir -p "$0/log"
while true; do
  since=$(date +%s%N)
  truncate --size=4096 "$0/log/1.wal"
  sync --data "$0/log/1.wal"
  took=$(($(date +%s%N) - since))
  printf '%d %d.%09d\\n' $$ $((took / 1000000000)) $((took % 1000000000))
  sleep 0.05
done
"""


def settings(name: str = "east") -> LocalSiteSettings:
    classes = {
        "standard": LocalStorageClass(),
        "small": LocalStorageClass(limit_bytes=LIMIT),
        "shared": LocalStorageClass(reattachable=True),
    }
    return LocalSiteSettings(name=name, storage_classes=classes)


def shell(name: str, script: str, **more: object) -> UnitSpec:
    return UnitSpec(name=name, argv=("/bin/sh", "-c", script), **more)  # type: ignore[arg-type]


def runs(name: str = "runs", **more: object) -> UnitSpec:
    return shell(name, "exec sleep 1000", **more)


def fails(exit_code: int) -> UnitSpec:
    return shell(f"fails-{exit_code}", f"exit {exit_code}")


def prints(text: str) -> UnitSpec:
    return shell(f"prints-{text}", f"echo {text}; echo {text} to stderr >&2; exec sleep 1000")


def complains(line: str, exit_code: int | None = None) -> UnitSpec:
    """It says that and goes on, or ends a moment later. (Now and then, systemd takes a program that ends at once for
    one that it could not execute.)
    """
    ends = f"sleep 0.2; exit {exit_code}"
    return shell("complains", f"echo '{line}'; {'exec sleep 1000' if exit_code is None else ends}")


def listens(address: str, port: int) -> UnitSpec:
    return UnitSpec(name=f"listens-{port}", argv=("/usr/bin/perl", "-e", LISTENER, address, str(port)))


def keeps_data(volume: PurePosixPath, **more: object) -> UnitSpec:
    """It makes a log in its volume and goes on."""
    script = f"mkdir -p {volume}/log && echo x > {volume}/log/1.wal && exec sleep 1000"
    return shell("keeps-data", script, needs=volume / "log/*.wal", owns=(volume,), **more)


def keeps_writing(volume: PurePosixPath, **more: object) -> UnitSpec:
    """It goes on writing to a log that it keeps open."""
    script = f"mkdir -p {volume}/log && exec >> {volume}/log/1.wal; while echo x; do sleep 0.02; done"
    return shell("keeps-writing", script, needs=volume / "log/*.wal", owns=(volume,), **more)


def keeps_syncing(volume: PurePosixPath, **more: object) -> UnitSpec:
    """See SYNCER; it ends where there is no room."""
    argv = ("/bin/sh", "-euc", SYNCER, str(volume))
    return UnitSpec(name="keeps-syncing", argv=argv, needs=volume / "log/*.wal", owns=(volume,), **more)  # type: ignore[arg-type]


def has_no_data_yet(volume: PurePosixPath, **more: object) -> UnitSpec:
    """It would make a log, but has not come to it."""
    return shell("has-no-data", "exec sleep 1000", needs=volume / "log/*.wal", owns=(volume,), **more)


def job(name: str, script: str, **more: object) -> Job:
    return Job(name=name, argv=("/bin/sh", "-c", script), **{"deadline": 20.0, **more})  # type: ignore[arg-type]


def job_prints(text: str, **more: object) -> Job:
    return job(f"prints-{text}", f"echo {text}; echo {text} to stderr >&2", **more)


def job_fails(exit_code: int) -> Job:
    return job(f"fails-{exit_code}", f"exit {exit_code}")


def job_hangs(**more: object) -> Job:
    """It goes on for ever, with children that flee its session."""
    return job("hangs", "setsid sleep 1000 & sleep 1000 & sleep 1000", **more)


def behave(spec: UnitSpec) -> Behaviour:
    """The fake's idea of the programs above."""
    kind, _, detail = spec.name.partition("-")
    if kind == "fails":
        return Behaviour(exit_code=int(detail))
    if kind == "prints":
        runs_on = "sleep" in spec.argv[-1]  # a unit, not a job
        return Behaviour(exit_code=None if runs_on else 0, output=f"{detail}\n{detail} to stderr\n")
    if kind == "complains":
        line, _, end = spec.argv[-1].removeprefix("echo '").partition("'; ")
        return Behaviour(exit_code=int(end.split()[-1]) if "exit" in end else None, output=f"{line}\n")
    if kind == "listens":
        return Behaviour(listens=(int(detail),))
    if kind == "keeps" and spec.needs is not None:
        return Behaviour(writes=(spec.needs.with_name("1.wal"),))
    return Behaviour()


class SiteFaults(SitePort, Holds, Faults, Switches, Protocol):
    """A site that can be hurt."""


async def written(site: SitePort, machine: str, unit: str) -> str:
    """What a unit's own program wrote."""
    lines = (await site.logs(machine, unit)).splitlines(keepends=True)
    return "".join(each for each in lines if not each.startswith("quarterdeck: "))


async def status(site: SitePort, machine: str, unit: str) -> UnitStatus:
    found = [each for each in await site.units(machine) if each.name == unit]
    return found[0] if found else UnitStatus(name=unit, state=UnitState.ABSENT)


class SiteUnderTest(Protocol):
    """A site and the hands that the suite needs inside it."""

    dead: MachineState
    """What a machine without power is seen to be: who asks it over a network cannot tell."""

    @property
    def site(self) -> SiteFaults: ...

    def crash(self, machine: str, unit: UnitStatus) -> None: ...

    def alive(self, machine: str, pid: int) -> bool: ...

    def file(self, machine: str, path: PurePosixPath) -> UnitFile: ...

    def names(self, machine: str, folder: PurePosixPath) -> list[str]:
        """The names of all files in a folder of a unit."""
        ...

    def put_file(self, machine: str, volume: PurePosixPath, path: str, size: int) -> None: ...

    def take_file(self, machine: str, volume: PurePosixPath, path: str) -> None: ...

    def put_text(self, machine: str, volume: PurePosixPath, path: str, text: str) -> None: ...

    def text(self, machine: str, volume: PurePosixPath, path: str) -> str: ...

    async def job_processes(self, machine: str) -> int:
        """How much of any job runs there."""
        ...


@dataclass
class FakeUnderTest:
    site: FakeSite = field(default_factory=lambda: FakeSite(settings(), behave=behave))
    dead: MachineState = MachineState.DOWN

    def crash(self, machine: str, unit: UnitStatus) -> None:
        self.site.crash(machine, unit.name)

    def alive(self, machine: str, pid: int) -> bool:
        return self.site.alive(pid)

    def file(self, machine: str, path: PurePosixPath) -> UnitFile:
        return self.site.files(machine)[path]

    def names(self, machine: str, folder: PurePosixPath) -> list[str]:
        return sorted(path.name for path in self.site.files(machine) if path.parent == folder)

    def put_file(self, machine: str, volume: PurePosixPath, path: str, size: int) -> None:
        self.site.put_file(machine, volume.name, path, size)

    def take_file(self, machine: str, volume: PurePosixPath, path: str) -> None:
        self.site.take_file(machine, volume.name, path)

    def put_text(self, machine: str, volume: PurePosixPath, path: str, text: str) -> None:
        self.put_file(machine, volume, path, len(text))
        self.site._machine(machine).disk.texts[volume / path] = text

    def text(self, machine: str, volume: PurePosixPath, path: str) -> str:
        return self.site._machine(machine).disk.texts[volume / path]

    async def job_processes(self, machine: str) -> int:
        return len(self.site.jobs(machine))


@dataclass
class LocalUnderTest:
    site: LocalSite
    dead: MachineState = MachineState.DOWN

    def crash(self, machine: str, unit: UnitStatus) -> None:
        assert unit.pid is not None
        os.kill(unit.pid, signal.SIGKILL)

    def alive(self, machine: str, pid: int) -> bool:
        return process_alive(pid)

    def file(self, machine: str, path: PurePosixPath) -> UnitFile:
        real = Path(path)
        return UnitFile(path, real.read_bytes(), real.stat().st_mode & 0o7777)

    def names(self, machine: str, folder: PurePosixPath) -> list[str]:
        return sorted(path.name for path in Path(folder).iterdir())

    def put_file(self, machine: str, volume: PurePosixPath, path: str, size: int) -> None:
        real = Path(volume, path)
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_bytes(b"x" * size)

    def take_file(self, machine: str, volume: PurePosixPath, path: str) -> None:
        shutil.rmtree(Path(volume, path))

    def put_text(self, machine: str, volume: PurePosixPath, path: str, text: str) -> None:
        real = Path(volume, path)
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text(text)

    def text(self, machine: str, volume: PurePosixPath, path: str) -> str:
        return Path(volume, path).read_text()

    async def job_processes(self, machine: str) -> int:
        return len([pid for pid in await self.site.processes(machine) if of_a_job(pid)])


#: A machine differs only by the network that it is on: what networks have to do with is tried on both in each tier.
NETNS = pytest.param("netns", marks=pytest.mark.soak)
ISOLATIONS = ("loopback", NETNS)


@asynccontextmanager
async def local_lab(isolation: str, home: Path) -> AsyncIterator[LocalUnderTest]:
    """A local site with one of ISOLATIONS, of which nothing is left in the end."""
    network = open_loopback(home) if isolation == "loopback" else NetnsIsolation(home)
    site = open_local_site(home, settings(), network, patience=1.0)
    try:
        yield LocalUnderTest(site)
    finally:
        await site.destroy()
        if isolation == "netns":
            await Lab(home).close()


#: On hosts of their own, whose tests say so where such cannot be.
HOSTS = pytest.param("hosts", marks=[pytest.mark.hosts, pytest.mark.skipif(bool(why_not()), reason=why_not())])
KINDS = ("fake", *ISOLATIONS, HOSTS)
#: The same, of which the smoke tier has those that take no root and little time.
SMOKE_KINDS = (*smoke("fake", "loopback"), NETNS, HOSTS)


@asynccontextmanager
async def any_lab(request: pytest.FixtureRequest, home: Path) -> AsyncIterator[SiteUnderTest]:
    """The same, or one in memory, or on the hosts that tests share: of the kind (of KINDS) that a fixture is for."""
    match request.param:
        case "fake":
            yield FakeUnderTest()
        case "hosts":
            machines: HostsLab = request.getfixturevalue("machines")
            async with hosts_site(machines) as hosts:
                yield hosts
        case isolation:
            async with local_lab(isolation, home) as local:
                yield local


def of_a_job(pid: int) -> bool:
    try:
        return f"{JOB}=".encode() in Path("/proc", str(pid), "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def process_alive(pid: int) -> bool:
    try:
        stat = Path("/proc", str(pid), "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat[stat.rindex(b")") + 2 :].split()[0] not in b"ZX"
