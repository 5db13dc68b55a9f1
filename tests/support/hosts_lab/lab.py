"""A lab of real machines."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from quarterdeck.sites.netns.layout import Cut
from support.hosts_lab.guard import dismissed, group_of, guarded, network_of
from support.hosts_lab.image import image
from support.hosts_lab.keys import Access, KeyPair
from support.hosts_lab.machine import LabHost, Machine
from support.hosts_lab.network import Network, Place

_BOOTING = 90.0  # seconds, on a busy machine
_PROGRAMS = ("apt-get", "debootstrap", "nft", "nsenter", "systemd-nspawn", "unshare")


def why_not() -> str:
    """Why this host and user can have no such lab; "" if they can."""
    if os.geteuid() != 0:
        return "real machines take root"
    missing = [each for each in _PROGRAMS if shutil.which(each) is None]
    return f"real machines take programs that are not installed (see .ci/run): {', '.join(missing)}" if missing else ""


class HostsLab:
    """Machines with names, sites and zones, that run while the block does.

    All calls return when what they do has been done. They may be made in any thread, and in one that has a loop, which
    then stands still meanwhile. ``arguments`` are further ones for systemd-nspawn, such as ``--bind-ro=FOLDER``.

    Machines have cgroups of version 2, as hosts have today. Where this host's own controllers are those of version 1
    there are none in it, and limits of memory and processes are not kept; not ``unified`` they have both versions,
    limits of memory and processes are kept, and systemd freezes no units.
    """

    def __init__(self, hosts: Sequence[LabHost], *, unified: bool = True, arguments: Sequence[str] = ()) -> None:
        self._wanted, self._unified, self._arguments = tuple(hosts), unified, tuple(arguments)
        self._machines: dict[str, Machine] = {}
        self._numbers: dict[tuple[str, str], int] = {}

    def __enter__(self) -> Self:
        self._image = image()
        self.folder, self._guard = guarded(secrets.token_hex(4))
        try:
            self.access = Access.made(self.folder / "access")
            self.storage.mkdir()
            self.network = Network(network_of(self.folder))
            self.network.folder.mkdir()
            self.network.open()
            group_of(self.folder).make()
            self.add(*self._wanted)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        code = dismissed(self._guard)
        for machine in self._machines.values():
            machine.power_off()
        assert code == 0, f"the guard of the lab ended with {code}: see {self.folder}"

    # Machines

    @property
    def names(self) -> tuple[str, ...]:
        """All machines, in the order in which they came."""
        return tuple(self._machines)

    def place(self, name: str) -> Place:
        """Where a machine is: its site, its zone and its address."""
        return self._machines[name].place

    def address(self, name: str) -> str:
        """A machine's address."""
        return self.place(name).address

    @property
    def storage(self) -> Path:
        """A folder of this host that all machines have at /srv/storage, as if it were a network of storage."""
        return self.folder / "storage"

    def is_on(self, name: str) -> bool:
        """Whether a machine has power."""
        return self._machines[name].is_on

    def add(self, *hosts: LabHost) -> None:
        """More machines, which are booted."""
        for each in hosts:
            zone = self._numbers.setdefault((each.site, each.zone), len(self._numbers) + 1)
            number = 1 + sum(1 for known in self._machines.values() if known.place.numbers[0] == zone)
            self._machines[each.name] = Machine(
                Place(each.site, each.zone, each.name, (zone, number)),
                self.folder / "machines" / each.name,
                group_of(self.folder).below(each.name),
                self._image,
                self.access.people.public,
                self._unified,
                (*self._arguments, f"--bind={self.storage}:/srv/storage"),
            )
        for each in hosts:
            self._machines[each.name].make_disk()
        self._tell()
        self.power_on(*(each.name for each in hosts))

    def power_on(self, *names: str) -> None:
        """Boot machines that are off, with the disks that they had, until people can log in."""
        for name in names:
            self._start(name)
        self.wait_for(*names)

    def wait_for(self, *names: str) -> None:
        """Wait until people can log in at machines that boot."""
        deadline = time.monotonic() + _BOOTING
        for name in names:
            machine = self._machines[name]
            machine.wait_until("sshd", lambda name=name: self._greets(name), deadline)
            machine.wait_until("the end of its boot", lambda machine=machine: machine.is_open, deadline)
            if not self._unified:
                self.sh(name, _CONTROLLERS)

    def power_off(self, *names: str) -> None:
        """Take the power from machines: their peers hear nothing of it, and nothing any more."""
        for name in names:
            self.network.unplug(self.place(name))
        for name in names:
            self._machines[name].power_off()

    def reboot(self, name: str) -> None:
        """Have a machine reboot by itself, until people can log in again."""
        machine = self._machines[name]
        leader = machine.leader
        self.sh(name, "systemctl reboot")
        machine.wait_until("its end", lambda: machine.leader != leader, time.monotonic() + _BOOTING)
        self.wait_for(name)

    def replace(self, name: str) -> None:
        """Put a new machine in the place of one: another disk, and another key of its own, which is made known."""
        self.power_off(name)
        self._machines[name].throw_away()
        self._machines[name].make_disk()
        self._tell()
        self.power_on(name)

    def freeze(self, name: str) -> None:
        """Have all programs of a machine stand still. Its kernel still answers: ``cut`` it too for one that hangs."""
        self._machines[name].group.below("machine").freeze(frozen=True)

    def thaw(self, name: str) -> None:
        """Let them go on."""
        self._machines[name].group.below("machine").freeze(frozen=False)

    # Networks

    def cut(self, name: str) -> None:
        """Pull a machine's cable out."""
        self.network.unplug(self.place(name))

    def mend(self, name: str) -> None:
        """Put it back in."""
        self.network.plug(self.place(name))

    def cut_between(self, a: str, b: str, cut: Cut = Cut.BOTH) -> None:
        """Lose what goes between two machines, in both directions or in one (``Cut.NONE``: in none any more)."""
        ways = ((a, b, {Cut.BOTH, Cut.A_TO_B}), (b, a, {Cut.BOTH, Cut.B_TO_A}))
        for source, target, when in ways:
            self.network.cut(self.address(source), self.address(target), lost=cut in when)

    def cut_sites(self, a: str, b: str, cut: Cut = Cut.BOTH) -> None:
        """The same for two sites; one of them may be ``OUTSIDE``, where clients are."""
        self.network.between(a, b, cut=cut)

    def delay(self, a: str, b: str, rtt_ms: float) -> None:
        """Have two sites (or ``OUTSIDE`` and one) so far apart: milliseconds for a round trip."""
        self.network.between(a, b, rtt_ms=rtt_ms)

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """Have this thread, and those that it starts, be a client of the lab, who reaches machines and nothing else.

        Threads that run already stay where they are, and so do sockets.
        """
        return self.network.entered()

    def enter_argv(self) -> tuple[str, ...]:
        """What to put before an argv to run it as a client of the lab."""
        return self.network.enter_argv()

    def connect(self, name: str, port: int, timeout: float = 2.0) -> socket.socket:
        """A connection of a client to a machine. Raises OSError."""
        with self.inside():
            connection = socket.socket()
        try:
            connection.settimeout(timeout)
            connection.connect((self.address(name), port))
        except BaseException:
            connection.close()
            raise
        return connection

    # Hands inside machines

    def run(
        self, name: str, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program as root inside a machine to its end, also in one that is cut off or stands still."""
        return self._machines[name].run(argv, stdin, timeout)

    def sh(self, name: str, script: str, *arguments: str, stdin: bytes = b"") -> str:
        """What a script says that must succeed; ``arguments`` are its $1 and so on."""
        done = self.run(name, ("/bin/sh", "-euc", script, "sh", *arguments), stdin=stdin)
        assert done.returncode == 0, f"{name}: {script!r} ended with {done.returncode}: {done.stdout!r} {done.stderr!r}"
        return done.stdout.decode()

    def disk(self, name: str, path: PurePosixPath) -> Path:
        """Where a file below /var/lib of a machine is on this host, whether the machine is on or off."""
        return self._machines[name].folder / "disk" / path.relative_to("/var/lib")

    def limit_disk(self, name: str, folder: str, limit_bytes: int) -> None:
        """Have a folder of a machine be a disk of its own with so much room, and with what is in it now, until
        ``lift_limit``, or until the machine is off. What is written meanwhile is gone then.
        """
        self.sh(name, _LIMIT, folder, str(limit_bytes))

    def lift_limit(self, name: str, folder: str) -> None:
        """Let go of it: the folder is as it was before."""
        self.sh(name, 'umount --lazy "$1"', folder)

    def kill_ssh(self, name: str) -> None:
        """End all ssh sessions of a machine; it lets new ones in."""
        self.sh(name, _KILL_SSH)

    def set_sudo(self, name: str, *, allowed: bool) -> None:
        """Whether ``deck`` may become root there."""
        self.sh(name, 'echo "deck ALL=(ALL:ALL) $1" > /etc/sudoers.d/deck', "NOPASSWD: ALL" if allowed else "!ALL")

    def change_host_key(self, name: str) -> KeyPair:
        """Have a machine show another key than the one that is known."""
        key = KeyPair.new()
        file = "/etc/ssh/ssh_host_ed25519_key"
        self.sh(name, f'cat > {file}; echo "$1" > {file}.pub; systemctl restart ssh', key.public, stdin=key.private)
        self.wait_for(name)
        return key

    def _start(self, name: str) -> None:
        # Connections that it had are forgotten with its namespace; until now its kernel, which is ours, has kept them.
        self.network.replace(self.place(name))
        network = self.network.descriptor(self.place(name))
        try:
            self._machines[name].power_on(network)
        finally:
            os.close(network)

    def _greets(self, name: str) -> bool:
        try:
            with self.connect(name, 22, 1.0) as connection:
                return connection.recv(4) == b"SSH-"
        except OSError:
            return False

    def _tell(self) -> None:
        self.access.tell(
            tuple((each.name, each.place.address, each.host_key.public) for each in self._machines.values())
        )


#: nspawn lets no machine write to the controllers of version 1; systemd sees at its start which ones it has.
_CONTROLLERS = """
for each in memory pids; do
  ! [ -d /sys/fs/cgroup/$each ] || mount -o remount,bind,rw /sys/fs/cgroup/$each
done
systemctl daemon-reexec
"""
_LIMIT = """
mkdir -p "$1"
mount -t tmpfs -o "size=$2,mode=$(stat -c %a "$1")" tmpfs /mnt
chown --reference="$1" /mnt
cp -a "$1/." /mnt
mount --bind /mnt "$1"
umount /mnt
"""
_KILL_SSH = """
main=$(systemctl show --property=MainPID --value ssh)
for pid in $(pgrep sshd); do
  [ "$pid" = "$main" ] || kill -9 "$pid" || [ ! -e "/proc/$pid" ]
done
"""
