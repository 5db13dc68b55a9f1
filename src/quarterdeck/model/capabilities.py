"""What a site can do besides running units: its capabilities, jobs, measurements, searches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.errors import InvalidInput


class Capability(StrEnum):
    """A feature that not every driver has: checked before it is used."""

    HOLDS = "holds"  # units can be paused, and resume by themselves (``Holds``)
    FLOATS = "floats"  # its edges take over each other's addresses (``Floats``)
    LEADS = "leads"  # an address can be moved from machine to machine (``Leads``)
    ONE_ADDRESS = "one-address"  # replicas may share the address of load balancers, not their ports
    FAULTS = "faults"  # faults can be injected, for tests and drills (``Faults``)


#: What a plane needs of a site that it moves to: clients are paused during the leadership transfer.
NEEDED = frozenset({Capability.HOLDS})


#: Bytes of a job's output that are kept.
MOST_OUTPUT = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A program that runs to its end, with its arguments. ``argv[0]`` is what ``SitePort.install`` returned, or an
    absolute path on each machine. ``name`` is for people. ``deadline``: seconds that it may take. The last
    ``most_output`` bytes of its stdout and stderr are kept.
    """

    name: str
    argv: tuple[str, ...]
    deadline: float
    env: tuple[tuple[str, str], ...] = ()
    most_output: int = MOST_OUTPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of a job: ``exit_code`` is negative for the signal that ended it. ``cut``: output is missing."""

    exit_code: int
    output: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Seconds that a TCP connection to a listener takes: the median of a few. Unavailable if nothing answers there."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class DiskSync:
    """Seconds until a small write to a disk of that storage class is durable: the median of a few."""

    storage_class: str


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Seconds by which the machine's clock is ahead of the caller's (negative: behind)."""


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Bytes of memory that new units may use on the machine and all other machines of the same host (``Machine.host``)
    together.
    """


Measure = RoundTrip | DiskSync | ClockOffset | FreeMemory


#: Bytes of found lines that are kept per machine.
MOST_FOUND = 16 * 2**20
_FILES = re.compile(r"[A-Za-z0-9._*-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """All lines that contain any of ``texts`` literally, in the files directly in the volume whose names match
    ``files`` (``*``: anything), and that were written at ``since`` (seconds since the epoch) or later. At most the last
    ``most`` bytes are kept. Raises InvalidInput for texts that no line can have.
    """

    files: str
    texts: tuple[str, ...]
    since: float
    most: int = MOST_FOUND

    def __post_init__(self) -> None:
        doing = f"looking for lines in {self.files}"
        if not _FILES.fullmatch(self.files):
            raise InvalidInput(doing, "it is not a pattern of file names", "use letters, digits and . _ - *")
        if not self.texts or any(not each or "\n" in each for each in self.texts):
            raise InvalidInput(doing, f"no line can contain {self.texts!r}", "give texts without line breaks")


@dataclass(frozen=True, slots=True)
class Found:
    """The ``lines`` that were found, file by file in the order of their names; ``cut``: there were too many, and the
    first ones are missing.
    """

    lines: tuple[str, ...]
    cut: bool = False


def found(output: bytes, most: int) -> Found:
    """The last whole lines of ``output`` within ``most`` bytes."""
    cut = len(output) > most
    if cut:
        output = output[len(output) - most - 1 :].partition(b"\n")[2]
    return Found(tuple(output.decode(errors="replace").splitlines()), cut)
