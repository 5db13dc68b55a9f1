"""Sets of controllers: their holders now, and whether two processes ever ran the same set."""

from __future__ import annotations

from typing_extensions import override

from quarterdeck.api.output.base import Instant, NamedOutput, OutputModel


class ControllerSetRow(NamedOutput):
    """A controller set, and the holder of its lock."""

    #: The set's name.
    name: str
    #: Its own lock: a Lease in kube-system.
    lock: str
    #: The manager that is to run it.
    owner: str
    #: The lock under which it runs, or is to run: its own, or the main lock of its owner.
    guarded_by: str
    #: The manager that holds that lock; null where none does, or it is not known.
    manager: str | None
    #: The replica of that manager; null where it is not known.
    replica: str | None
    #: The holderIdentity of the lock; null where nobody holds it.
    identity: str | None
    #: How many holders the lock had before.
    transitions: int
    #: The controllers of the set.
    controllers: tuple[str, ...]
    #: When the holder took the lock, by its own clock.
    acquired_at: Instant | None
    #: Seconds since the lock was renewed.
    renewed_seconds_ago: float | None
    #: Whether its owner runs it.
    held_by_owner: bool
    #: What is wrong with it.
    reasons: tuple[str, ...]

    @property
    @override
    def full_name(self) -> str:
        return f"controllerset/{self.name}"


class HolderSpan(OutputModel):
    """One process held one lock."""

    #: The lock.
    lock: str
    #: The holder's program; empty where it is not known.
    component: str
    #: The holder's replica; empty where it is not known.
    replica: str
    #: What the holder calls itself.
    holder: str
    #: When it took the lock, or the start of the time that was checked.
    from_at: Instant
    #: When it lost or released the lock; null where it still holds it.
    to_at: Instant | None
    #: Whether it released the lock.
    released: bool
    #: Writes that it made under the lock.
    acts: int


class LockGap(OutputModel):
    """A time in which no process held the set."""

    #: When it began.
    from_at: Instant
    #: When it ended.
    to_at: Instant
    #: How long it was.
    duration_seconds: float
    #: How long it was at most, counted from the last renewal.
    at_most_seconds: float


class LockOverlap(OutputModel):
    """A time in which two processes held or ran the set."""

    #: When it began.
    from_at: Instant
    #: When it ended.
    to_at: Instant
    #: The one process.
    first: str
    #: The other process.
    second: str
    #: What was seen.
    message: str


class UnguardedAct(OutputModel):
    """A write without a held lock."""

    #: When it was made.
    at: Instant
    #: The program that made it.
    component: str
    #: The replica of that program.
    replica: str
    #: The verb of the request.
    verb: str
    #: The object.
    object: str
    #: The process that had taken over before; empty where there was none.
    after: str


class SetVerdictRow(NamedOutput):
    """What was found about one set."""

    #: The set's name.
    name: str
    #: Its lock.
    lock: str
    #: Its controllers.
    controllers: tuple[str, ...]
    #: `no overlap`, `overlap` or `unknown`.
    finding: str
    #: The finding in a sentence.
    message: str
    #: By how much the clocks of two machines may differ.
    slack_seconds: float
    #: Writes of the set's controllers.
    acts: int
    #: Writes that may be of the set's controllers.
    perhaps: int
    #: The holders of its locks, in order.
    holders: tuple[HolderSpan, ...]
    #: Times without a holder.
    gaps: tuple[LockGap, ...]
    #: Times with two.
    overlaps: tuple[LockOverlap, ...]
    #: Writes without a held lock.
    outside: tuple[UnguardedAct, ...]
    #: What could not be read, and so is not known.
    reasons: tuple[str, ...]

    @property
    @override
    def full_name(self) -> str:
        return f"controllerset/{self.name}"


class VerificationResult(OutputModel):
    """Whether two processes ever ran the same set of a plane in a time."""

    #: The plane.
    plane: str
    #: The operation whose time was checked; null where it was another time.
    operation: str | None
    #: The start of that time.
    from_at: Instant
    #: The end of that time.
    to_at: Instant
    #: The worst finding: `no overlap`, `overlap` or `unknown`.
    finding: str
    #: The finding of each set.
    sets: tuple[SetVerdictRow, ...]
