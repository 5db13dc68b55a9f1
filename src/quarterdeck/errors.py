"""All errors that a person may see.

Each names the action, the observation and the next step, and prints as one line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar


class QuarterdeckError(Exception):
    """The root of the tree. ``exit_code``: the exit code of the command line. ``kind`` names the class in stored data
    and between processes: it never changes, even if the class is renamed. A class without one has its parent's.

    ``doing`` is "" where the observation is a whole sentence.
    """

    kind: ClassVar[str] = "error"
    exit_code = 1

    def __init__(self, doing: str, seen: str, next_step: str = "") -> None:
        self.doing = doing
        self.seen = seen
        self.next_step = next_step
        super().__init__((f"{doing}: {seen}" if doing else seen) + (f"; {next_step}" if next_step else ""))


class InvalidInput(QuarterdeckError):
    """The user's input is invalid: a spec, a name, a flag."""

    kind = "invalid-input"
    exit_code = 2


class NotFound(QuarterdeckError):
    """The thing named does not exist."""

    kind = "not-found"
    exit_code = 3


class Gone(NotFound):
    """The plane does not exist, or no longer."""

    kind = "gone"


class Conflict(QuarterdeckError):
    """Another process changed it first or holds it, or it exists already."""

    kind = "conflict"
    exit_code = 4


class LeaseLost(Conflict):
    """Another process drives, or may drive, the plane now: this one must stop."""

    kind = "lease-lost"


class Paused(Conflict):
    """The user paused the plane."""

    kind = "paused"


class PreconditionFailed(QuarterdeckError):
    """A check before the first change failed; nothing was changed."""

    kind = "precondition-failed"
    exit_code = 5


class NotApplied(PreconditionFailed):
    """The plane is up to date, except for objects that could not be applied: what they need is missing."""

    kind = "not-applied"


class Unavailable(QuarterdeckError):
    """A machine, server or network did not answer; a retry may succeed."""

    kind = "unavailable"
    exit_code = 6


class TimedOut(Unavailable):
    """A condition did not come true before its deadline."""

    kind = "timed-out"
    exit_code = 7


class Corrupt(QuarterdeckError):
    """Stored data is not what was written, or was written by a newer version."""

    kind = "corrupt"
    exit_code = 8


def kind_of(error: BaseException) -> str:
    """The kind under which an error is stored; "internal" for errors of other packages."""
    return error.kind if isinstance(error, QuarterdeckError) else "internal"


def error_class(kind: str) -> type[QuarterdeckError]:
    """The class of a stored kind; the root of the tree for unknown kinds."""
    return next((each for each in _tree(QuarterdeckError) if vars(each).get("kind") == kind), QuarterdeckError)


def _tree(root: type[QuarterdeckError]) -> Iterator[type[QuarterdeckError]]:
    yield root
    for each in root.__subclasses__():
        yield from _tree(each)
