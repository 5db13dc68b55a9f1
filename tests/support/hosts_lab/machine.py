"""One machine: its disk, its power, and programs that are run inside of it by nobody's leave."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.hosts_lab.cgroups import Group
from support.hosts_lab.keys import KeyPair
from support.hosts_lab.network import Place

_POWER = Path(__file__).with_name("power.sh")
_DYING = 20.0  # seconds
#: How many sessions of this host a machine is worth, where processors are short: those of a replica's programs, as many
#: as these are at a site on this host. A lab is one group of the kernel's, and would be worth one session.
SESSIONS = 4
_ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}


@dataclass(frozen=True, slots=True)
class LabHost:
    """A machine that a lab is to have."""

    name: str
    site: str
    zone: str


@dataclass
class Machine:
    """A machine of a lab. ``group`` is its control group, ``people`` the public key of its users; ``unified`` and
    ``arguments`` are as ``HostsLab`` says.
    """

    place: Place
    folder: Path
    group: Group
    image: Path
    people: str
    unified: bool = True
    arguments: Sequence[str] = ()
    host_key: KeyPair = field(default_factory=KeyPair.new)
    _power: subprocess.Popen[bytes] | None = None
    _uuid: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def name(self) -> str:
        """Its name."""
        return self.place.machine

    @property
    def is_on(self) -> bool:
        """Whether it runs, or boots."""
        return self._power is not None and self._power.poll() is None

    def make_disk(self) -> None:
        """A new disk: what the image has, and what makes it this very machine."""
        for name in ("upper", "work", "root"):
            (self.folder / name).mkdir(parents=True)
        subprocess.run(["cp", "-a", str(self.image / "var/lib"), str(self.folder / "disk")], check=True)
        etc = self.folder / "upper/etc"
        (etc / "ssh").mkdir(parents=True)
        (etc / "machine-id").write_text(f"{self._uuid}\n")
        (etc / "hostname").write_text(f"{self.name}\n")
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {self.name}\n::1 localhost\n")
        (etc / "ssh/lab_keys").write_text(f"{self.people}\n")
        self.host_key.save(etc / "ssh/ssh_host_ed25519_key")
        for path in (self.folder / "upper", etc, *etc.rglob("*")):
            if path.name != "ssh_host_ed25519_key":
                path.chmod(0o755 if path.is_dir() else 0o644)

    def throw_away(self) -> None:
        """Nothing of it is left but its name and its place; it is off."""
        shutil.rmtree(self.folder)
        self.host_key = KeyPair.new()
        self._uuid = uuid.uuid4().hex

    def power_on(self, network: int) -> None:
        """Let it boot; ``network`` is a descriptor of its namespace."""
        assert not self.is_on, f"{self.name} is on"
        power, system = self.group.below("power"), self.group.below("machine")
        self.group.make()
        power.make(leaf=True)
        system.make(leaf=True)
        groups = " ".join(map(str, self.group.folders))
        own = (self.name, self._uuid, str(self.folder), str(self.image), str(network), str(int(self.unified)), groups)
        with (self.folder / "console.log").open("ab") as log:
            self._power = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "/bin/sh", str(_POWER), *own, *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(network,),
                start_new_session=True,
            )

    def power_off(self) -> None:
        """End all of it in one instant. What has been written is on its disk."""
        self.group.end(time.monotonic() + _DYING)
        if self._power is not None:
            self._power.wait(_DYING)

    def wait_until(self, what: str, good: Callable[[], bool], deadline: float) -> None:
        """Wait for something of it; fails with what its console shows, at ``deadline`` (monotonic seconds)."""
        while not good():
            if not self.is_on or time.monotonic() > deadline:
                console = (self.folder / "console.log").read_text(errors="replace")[-3000:]
                raise AssertionError(f"machine {self.name}: waited in vain for {what}; its console:\n{console}")
            time.sleep(0.01)

    @property
    def leader(self) -> int | None:
        """The number that its first process has here; None while there is none."""
        depth = len(_numbers(os.getpid())) + 1
        for pid in self.group.below("machine").pids():
            numbers = _numbers(pid)
            if len(numbers) == depth and numbers[-1] == 1:
                return pid
        return None

    @property
    def is_open(self) -> bool:
        """Whether it lets in others than root, as it does when it has booted."""
        leader = self.leader
        return leader is not None and not Path(f"/proc/{leader}/root/run/nologin").exists()

    def enter_argv(self) -> tuple[str, ...]:
        """What to put before an argv to run it as root inside, whatever its network and its sshd do."""
        leader = self.leader
        assert leader is not None, f"{self.name} is off"
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd")
        # A root of this host could set its clock from in there, and more; what comes in may do what the machine's may.
        return (
            "nsenter",
            f"--target={leader}",
            *spaces,
            "--",
            "setpriv",
            f"--bounding-set={_capabilities(leader)}",
            "--",
        )

    def run(self, argv: Sequence[str], stdin: bytes = b"", timeout: float = 30.0) -> subprocess.CompletedProcess[bytes]:
        """Run a program as root inside, to its end."""
        program = shutil.which("nsenter")
        assert program is not None
        return subprocess.run(
            [*self.enter_argv(), *argv],
            executable=program,
            input=stdin,
            capture_output=True,
            env=_ENVIRONMENT,
            timeout=timeout,
            check=False,
        )


def _numbers(pid: int) -> tuple[int, ...]:
    """What a process is called in each PID namespace that it is in, ours first; none if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return next((tuple(map(int, line.split()[1:])) for line in lines if line.startswith("NSpid:")), ())


def _capabilities(pid: int) -> str:
    """All that a process may ever be able to do, as setpriv takes it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("CapBnd:"))
    return ",".join(("-all", *(f"+cap_{each}" for each in range(mask.bit_length()) if mask >> each & 1)))
