"""Every error that a person may see.

Each says what was being done, what was seen, and what to do next, and prints as one line.
"""

from __future__ import annotations


class QuarterdeckError(Exception):
    """The root of the tree. ``exit_code`` is what the command line ends with."""

    exit_code = 1

    def __init__(self, doing: str, seen: str, next_step: str = "") -> None:
        self.doing = doing
        self.seen = seen
        self.next_step = next_step
        super().__init__(f"{doing}: {seen}" + (f"; {next_step}" if next_step else ""))


class InvalidInput(QuarterdeckError):
    """What the user gave cannot be right: a spec, a name, a flag."""

    exit_code = 2


class NotFound(QuarterdeckError):
    """The thing named does not exist."""

    exit_code = 3


class Gone(NotFound):
    """The plane does not exist, or no longer."""


class Conflict(QuarterdeckError):
    """Somebody else changed it first, holds it, or it exists already."""

    exit_code = 4


class LeaseLost(Conflict):
    """Another process drives, or may drive, the plane now: nothing more may be done here."""


class Paused(Conflict):
    """The user wants nothing done."""


class PreconditionFailed(QuarterdeckError):
    """A check before the first change said no; nothing was changed."""

    exit_code = 5


class NotApplied(PreconditionFailed):
    """The plane is as wanted, but for objects that were to be in it: what they need is not there."""


class Unavailable(QuarterdeckError):
    """A machine, server or network did not answer; trying again later may work."""

    exit_code = 6


class TimedOut(Unavailable):
    """A condition did not come true before its deadline."""

    exit_code = 7


class Corrupt(QuarterdeckError):
    """Stored data is not what was written, or was written by a newer version."""

    exit_code = 8
