"""Programs that run to their end on a machine: to restore, to copy, to measure."""

from __future__ import annotations

from dataclasses import dataclass

#: Bytes: what is kept of what a job says.
MOST_OUTPUT = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A program with what it is given. ``argv[0]`` is what ``Site.install`` returned, or an absolute path that each
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
