"""Units, volumes and machines, as data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath


class UnitState(StrEnum):
    """The state of a unit, as the machine's supervisor reports it."""

    ABSENT = "absent"  # the machine does not know it
    STOPPED = "stopped"  # known, if only by its files, not running, and not supposed to run
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"  # supposed to run, but it exits repeatedly
    UNKNOWN = "unknown"  # the machine did not answer


#: A unit in one of these states does not run, and is not supposed to.
IDLE = (UnitState.ABSENT, UnitState.STOPPED)


@dataclass(frozen=True, slots=True)
class Fence:
    """The fencing token of a change on a machine: that of the lease of ``plane``, which only grows."""

    plane: str
    token: int


class Priority(StrEnum):
    """How a unit shares its machine with others."""

    SERVING = "serving"  # others depend on it: its full share
    BACKGROUND = "background"  # a smaller share: requests come before reconciliation


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A file that a unit needs, written atomically with ``mode`` before the unit starts."""

    path: PurePosixPath
    content: bytes = field(repr=False)
    mode: int = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitSpec:
    """A program that a machine keeps running. Times are in seconds. Only ``name``, ``argv``, ``files``, ``env``,
    ``stop_timeout`` and ``note`` are part of the ``digest``: changes of the other fields do not change the unit.
    """

    name: str
    #: The first one is an absolute path.
    argv: tuple[str, ...]
    #: Arguments that matter only at the very first start (etcd's initial cluster).
    boot_argv: tuple[str, ...] = ()
    files: tuple[UnitFile, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    stop_timeout: float = 10.0
    priority: Priority = Priority.SERVING
    #: An absolute path whose last part may have a ``*``: the machine does not start the unit without such a file,
    #: neither again nor after a boot, except for a start with ``fresh``.
    needs: PurePosixPath | None = None
    #: The unit may start without the file of ``needs`` as long as there never was one. A start that ends soon, and
    #: before there is any, does not use that up.
    fresh: bool = False
    #: Folders that no other unit uses: a machine that can runs the unit as a separate user, which then owns them.
    owns: tuple[PurePosixPath, ...] = ()
    #: Further folders to which it writes: a sandbox allows that, and gives them to the unit's user.
    writes: tuple[PurePosixPath, ...] = ()
    #: The pause before the machine starts the unit again after it exited by itself, so that load balancers have found
    #: it gone before it listens again.
    restart_pause: float = 0.0
    #: Units of its machine on which it depends. Where all are stopped, or started, at once, as when the machine boots,
    #: it stops before them and starts after them.
    after: tuple[str, ...] = ()
    #: It listens at a port below 1024, which must be allowed where it does not run as root.
    low_ports: bool = False
    #: A line of plain text that its machine returns in each observation (``UnitStatus.note``).
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
        """Equal for equal specs: shows whether a running unit is up to date."""
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
    """Arguments without those (``--flag=value``) whose flag is in ``others`` as well."""
    flags = {each.partition("=")[0] for each in others}
    return tuple(each for each in argv if each.partition("=")[0] not in flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStatus:
    """The observed status of a unit."""

    name: str
    state: UnitState
    #: The digest of the spec with which it was last started, or reloaded.
    digest: str = ""
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0
    #: Why its machine does not start it, in a sentence (its state is FAILED then; "" in any other state); see
    #: ``UnitSpec.needs``.
    refused: str = ""
    #: Its files, or the way it is started, were changed by hand since.
    altered: bool = False
    #: It is STOPPED, and only its files exist: it was never started, or not removed completely.
    files_only: bool = False
    #: The note of its spec.
    note: str = ""


def with_files(known: Iterable[UnitStatus], folders: Iterable[str]) -> tuple[UnitStatus, ...]:
    """The units of a machine: those that its supervisor knows, and those that have only files, in ``folders`` of their
    names.
    """
    units = {each.name: each for each in known}
    for name in folders:
        units.setdefault(name, UnitStatus(name=name, state=UnitState.STOPPED, files_only=True))
    return tuple(units.values())


class MachineState(StrEnum):
    """Whether a machine answers."""

    UP = "up"
    DOWN = "down"  # observed to be off
    UNREACHABLE = "unreachable"  # does not answer: its units are unknown


class MachineRole(StrEnum):
    """What a machine is for."""

    CONTROL = "control"  # hosts replicas
    EDGE = "edge"  # hosts the site's load balancers
    DNS = "dns"  # hosts a DNS server of planes


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine of a site."""

    name: str
    site: str
    zone: str
    #: The IP address at which clients and peers reach it.
    address: str
    role: MachineRole = MachineRole.CONTROL
    state: MachineState = MachineState.UP
    #: The site's spec has it; one that was removed from the spec gets nothing new, and may have leftovers.
    declared: bool = True
    #: Machines of one host share its processors and memory; "": it is a host of its own.
    host: str = ""
    #: Why it does not answer, or is slow to, as far as known, for people.
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A named folder on a machine that outlives the units that use it.

    ``changed``: when a file in it was last written (seconds since the epoch); None if that is unknown, or never.
    """

    name: str
    storage_class: str
    path: PurePosixPath
    used_bytes: int = 0
    changed: float | None = None


# Sources of the programs that machines run.


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
    """The download of a released program: at ``url``, whose content has the SHA-256 ``digest`` (hex; "": unknown).
    ``member``: the name of its file in the gzipped tar there; "": the content is the program itself.
    """

    url: str
    digest: str = ""
    member: str = ""
