"""Units, volumes and machines: what runs where, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath


class UnitState(StrEnum):
    """What the machine's supervisor says of a unit."""

    ABSENT = "absent"  # the machine knows nothing of it
    STOPPED = "stopped"  # known, if only by files that are there, not running, and not wanted to run
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"  # wanted to run, but it exits again and again
    UNKNOWN = "unknown"  # the machine did not answer


#: A unit in one of these states does not run, and is not meant to.
IDLE = (UnitState.ABSENT, UnitState.STOPPED)


@dataclass(frozen=True, slots=True)
class Fence:
    """In whose name something is changed on a machine: the token of the lease of ``plane``, which only grows."""

    plane: str
    token: int


class Priority(StrEnum):
    """How a unit shares its machine with the others that are there."""

    SERVING = "serving"  # others depend on it: its full share
    BACKGROUND = "background"  # it gives way a little: requests go before reconciliation


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A file that a unit needs, written atomically with ``mode`` before the unit starts."""

    path: PurePosixPath
    content: bytes = field(repr=False)
    mode: int = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSpec:
    """A program that a machine keeps running. ``argv[0]`` is an absolute path; times are in seconds.

    ``boot_argv`` are arguments that matter only at the very first start (etcd's initial cluster): they are
    not part of ``digest``, so that a change of them never looks like a change of the unit. Nor is ``priority``.

    ``needs`` is an absolute path whose last part may have a ``*``: unless such a file is there, the machine does not
    start the unit, neither again nor after a boot, except for a start that is asked for with ``fresh``, and that only
    as long as there never was such a file. A start that ends soon, and before there is any, does not use that up.
    Neither is part of the digest.

    ``owns`` are folders that no other unit uses: a machine that can runs the unit as a user of its own, to whom they
    belong then. No part of the digest either.

    ``writes`` are folders besides that it writes to: whoever confines the unit lets it, and gives them to its user. No
    part of the digest either.

    ``restart_pause``: seconds that the machine lets pass before it starts the unit again when that ended by itself, so
    that whoever leads clients to it has found it gone before it listens again. No part of the digest either.

    ``after``: units of its machine that it depends on. Where these and it are stopped, or started, at once, as when the
    machine boots, it ends before them and starts after them. No part of the digest either.

    ``low_ports``: it listens at a port below 1024, and is let do so where it does not run as root. No part of the
    digest either.

    ``note``: a line of plain words that its machine tells in each look (``UnitStatus.note``), for whoever wrote it.
    """

    name: str
    argv: tuple[str, ...]
    boot_argv: tuple[str, ...] = ()
    files: tuple[UnitFile, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    stop_timeout: float = 10.0
    priority: Priority = Priority.SERVING
    needs: PurePosixPath | None = None
    fresh: bool = False
    owns: tuple[PurePosixPath, ...] = ()
    writes: tuple[PurePosixPath, ...] = ()
    restart_pause: float = 0.0
    after: tuple[str, ...] = ()
    low_ports: bool = False
    note: str = ""

    def differs_in_files_alone(self, other: UnitSpec) -> bool:
        """Whether another spec is of the same program with the same arguments."""
        return (self.name, self.argv, self.env, self.stop_timeout) == (
            other.name,
            other.argv,
            other.env,
            other.stop_timeout,
        )

    @property
    def digest(self) -> str:
        """Equal for equal specs: tells a running unit from the one wanted."""
        parts = [
            self.name,
            *self.argv,
            *(f"{key}={value}" for key, value in self.env),
            repr(self.stop_timeout),
            *([self.note] if self.note else []),
        ]
        state = hashlib.sha256("\0".join(parts).encode())
        for file in sorted(self.files, key=lambda each: each.path):
            state.update(f"\0{file.path}\0{file.mode}\0".encode())
            state.update(hashlib.sha256(file.content).digest())
        return state.hexdigest()[:16]


def hashes_of(files: Iterable[UnitFile]) -> tuple[tuple[str, str], ...]:
    """The files of a unit by path, each with a hash (SHA-256) of its content."""
    return tuple((str(each.path), hashlib.sha256(each.content).hexdigest()) for each in files)


def without_flags(argv: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """Arguments without those (``--flag=value``) of whose flags there are others."""
    flags = {each.partition("=")[0] for each in others}
    return tuple(each for each in argv if each.partition("=")[0] not in flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStatus:
    """What was seen of a unit. ``digest`` is that of the spec it was last started, or reloaded, with. ``refused``: why
    its machine does not start it, in a sentence (it FAILED then; "" in any other state); see ``UnitSpec.needs``.
    ``altered``: somebody else has changed its files, or how it is started, since. ``files_only``: it is STOPPED, and
    its files are all that there is of it: it was never started, or not removed wholly. ``note``: that of its spec.
    """

    name: str
    state: UnitState
    digest: str = ""
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0
    refused: str = ""
    altered: bool = False
    files_only: bool = False
    note: str = ""


def with_files(known: Iterable[UnitStatus], folders: Iterable[str]) -> tuple[UnitStatus, ...]:
    """The units of a machine: those that its supervisor knows, and those of which it has only files, in ``folders`` of
    their names.
    """
    units = {each.name: each for each in known}
    for name in folders:
        units.setdefault(name, UnitStatus(name=name, state=UnitState.STOPPED, files_only=True))
    return tuple(units.values())


class MachineState(StrEnum):
    """Whether a machine answers."""

    UP = "up"
    DOWN = "down"  # seen to be off
    UNREACHABLE = "unreachable"  # does not answer: nothing is known of its units


class MachineRole(StrEnum):
    """What a machine is for."""

    CONTROL = "control"  # hosts replicas
    EDGE = "edge"  # hosts the site's load balancers
    DNS = "dns"  # hosts a DNS server of planes


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine of a site. ``address`` is an IP address that clients and peers reach it by. ``declared``: the site is
    meant to have it; one that it was taken from gets nothing new, and may have something left. Machines of one ``host``
    share its processors and memory ("": it is a host of its own). ``why``: why one does not answer, or what made it
    slow to, as far as that is known, for people.
    """

    name: str
    site: str
    zone: str
    address: str
    role: MachineRole = MachineRole.CONTROL
    state: MachineState = MachineState.UP
    declared: bool = True
    host: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A named folder on a machine that outlives the units that use it.

    ``changed``: when a file in it was last written (seconds since the epoch); None when that is not known, or never.
    """

    name: str
    storage_class: str
    path: PurePosixPath
    used_bytes: int = 0
    changed: float | None = None


# Programs that machines run, as they can be had.


@dataclass(frozen=True, slots=True)
class Program:
    """A program by its ``name``: a file at ``path`` on the caller's host (``Capability.PATHS``), or an ``image`` of a
    registry (``Capability.IMAGES``).
    """

    name: str
    path: PurePosixPath | None = None
    image: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a released program can be had by whoever needs it: at ``url``, whose content has the SHA-256 ``digest``
    (hex; "": it is not known). ``member``: the name of its file in the gzipped tar there; "": it is what is there.
    """

    url: str
    digest: str = ""
    member: str = ""
