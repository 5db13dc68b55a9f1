"""What a site can do besides running units: its capabilities, programs that run to their end, measures, searches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from quarterdeck.errors import InvalidInput


class Capability(StrEnum):
    """One thing that not every driver can do: asked for before it is relied on."""

    HOLDS = "holds"  # units can be held where they stand, and are let go by themselves (``Holds``)
    FLOATS = "floats"  # its edges take over each other's addresses (``Floats``)
    LEADS = "leads"  # an address can be led from machine to machine (``Leads``)
    ONE_ADDRESS = "one-address"  # replicas may have the address of load balancers, and so no port that these have
    FAULTS = "faults"  # things can be made to fail, for tests and drills (``Faults``)


#: What a plane needs of a site that it moves to: clients wait while it hands over.
NEEDED = frozenset({Capability.HOLDS})


#: Bytes: what is kept of what a job says.
MOST_OUTPUT = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A program with what it is given. ``argv[0]`` is what ``SitePort.install`` returned, or an absolute path that each
    machine has. ``name`` is for people. ``deadline``: seconds that it may take. Of what it writes to stdout and stderr
    the last ``most_output`` bytes are kept.
    """

    name: str
    argv: tuple[str, ...]
    deadline: float
    env: tuple[tuple[str, str], ...] = ()
    most_output: int = MOST_OUTPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended: ``exit_code`` is negative for the signal that ended it. ``cut``: it said more than was kept."""

    exit_code: int
    output: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Seconds that a TCP connection to something that listens takes: the median of a few. Unavailable if nothing
    answers there.
    """

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class DiskSync:
    """Seconds until a small write to a disk of that storage class will survive a loss of power: the median of a few."""

    storage_class: str


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Seconds by which the machine's clock is ahead of the caller's (negative: behind)."""


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Bytes of memory that new units may take there, and on all other machines of the same host (``Machine.host``)
    together.
    """


Measure = RoundTrip | DiskSync | ClockOffset | FreeMemory


#: Bytes: what is kept of what was found on a machine.
MOST_FOUND = 16 * 2**20
_FILES = re.compile(r"[A-Za-z0-9._*-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """All lines that have any of ``texts`` in them, as they stand, of the files right in the volume whose names are of
    the form ``files`` (``*``: anything), and that were written to at ``since`` (seconds since the epoch) or later. Of
    more than ``most`` bytes the last are kept. Raises InvalidInput for texts that no line can have.
    """

    files: str
    texts: tuple[str, ...]
    since: float
    most: int = MOST_FOUND

    def __post_init__(self) -> None:
        doing = f"looking for lines in {self.files}"
        if not _FILES.fullmatch(self.files):
            raise InvalidInput(doing, "that names no files", "use letters, digits and . _ - *")
        if not self.texts or any(not each or "\n" in each for each in self.texts):
            raise InvalidInput(doing, f"no line has {self.texts!r} in it", "name texts of one line")


@dataclass(frozen=True, slots=True)
class Found:
    """The ``lines`` that were found, file by file in the order of their names; ``cut``: the first ones are not there,
    since there were too many.
    """

    lines: tuple[str, ...]
    cut: bool = False


def found(said: bytes, most: int) -> Found:
    """The last whole lines of ``said`` that are no more than ``most`` bytes."""
    cut = len(said) > most
    if cut:
        said = said[len(said) - most - 1 :].partition(b"\n")[2]
    return Found(tuple(said.decode(errors="replace").splitlines()), cut)
