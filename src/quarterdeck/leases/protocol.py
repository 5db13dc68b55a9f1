"""PURE: one process's knowledge of one lock, the events that change it, and the next move.

Nothing here reads a clock or the store: time comes as an argument, in seconds by the process's own monotonic clock,
which is never compared with another process's. ``tests/model`` searches every sequence of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from quarterdeck.leases.record import Record, Timing, dated, usable

_NEVER = -math.inf


class Running(Enum):
    """Whether the controllers of a lock run here."""

    OFF = auto()
    ON = auto()
    STOPPING = auto()  # they were asked to stop, and may still act


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """One process's requirements of one lock. ``identity`` is of this run alone: no other process, and no earlier run,
    has ever written it. A process asks a holder of a lower ``precedence`` to release.
    """

    identity: str
    controllers: tuple[str, ...] = ()
    precedence: int = 0
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """The state that a lock depends on."""

    #: Whether it must be held, if possible.
    wanted: bool
    #: Nothing may be done under it after that time, whatever becomes of the lock itself.
    until: float = math.inf
    #: Whether nothing depends on this lock any more.
    clear: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LockView:
    """One process's knowledge of one lock."""

    #: As last seen, unchanged ``since`` it was received; without a version if it was deleted after that, None if there
    #: was none.
    record: Record | None = None
    #: Whether nothing suggests that it has changed since.
    known: bool = False
    since: float = _NEVER
    #: No other process acquires the lock before that.
    until: float = _NEVER
    #: When the last acknowledged renewal was sent.
    renewed: float = _NEVER
    #: When the last acknowledged request of this process was sent.
    asked: float = _NEVER
    #: The time of the last failure.
    failed: float = _NEVER
    running: Running = Running.OFF
    #: That of the controllers that run, or ran last.
    token: int = 0
    #: When they were asked to stop.
    stopped: float = _NEVER

    def holds(self, now: float) -> bool:
        """Whether no other process can have the lock."""
        return now < self.until


class WriteKind(Enum):
    """The purpose of a write."""

    CREATE = auto()
    TAKE = auto()
    RENEW = auto()
    ASK = auto()
    RELEASE = auto()


@dataclass(frozen=True, slots=True)
class Read:
    """Read the stored record."""


@dataclass(frozen=True, slots=True)
class Write:
    """Store ``record`` in place of the one of its ``version``; its times are not set yet (``stamped``)."""

    kind: WriteKind
    record: Record


@dataclass(frozen=True, slots=True)
class Start:
    """Start the controllers."""

    token: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Tell the controllers to stop."""


@dataclass(frozen=True, slots=True)
class End:
    """The controllers have not stopped, and the lock is not held any more: only the end of the process helps."""


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Nothing to do before this time, or before an event."""

    until: float


Move = Read | Write | Start | Stop | End | WaitUntil


# events


def saw(lock: LockView, terms: Terms, record: Record | None, now: float) -> LockView:
    """The stored record was received; ``now`` is the time after that."""
    if record is None and lock.record is not None:
        record = replace(lock.record, version="")  # it was deleted: its holder may not know yet, and its token counts
    same = record is not None and lock.record is not None and record.term == lock.record.term
    return replace(
        lock,
        record=record,
        known=True,
        since=lock.since if same else now,
        failed=_NEVER,
        # No process takes it from us in time, but a person may.
        until=lock.until if _mine(record, terms) else _NEVER,
    )


def stamped(lock: LockView, write: Write, wall: float) -> Write:
    """A write with its times, by the wall clock (seconds). A request is no sign of life of the holder: its renewal time
    stays.
    """
    return write if write.kind is WriteKind.ASK else replace(write, record=dated(write.record, lock.record, wall))


def sending(lock: LockView, terms: Terms, write: Write, now: float) -> LockView:
    """A write is about to be sent. Its outcome may never be known: what it gives up is lost from now on."""
    if write.kind is WriteKind.RELEASE:
        return replace(lock, until=_NEVER)
    if write.kind is WriteKind.RENEW:
        return replace(lock, until=min(lock.until, _end(write, terms, now)))
    return lock


def wrote(lock: LockView, terms: Terms, write: Write, record: Record, sent: float, now: float) -> LockView:
    """The store has acknowledged, ``now``, a write that was ``sent`` at that time: it has ``record``."""
    lock = replace(lock, record=record, known=True, failed=_NEVER)
    if write.kind is WriteKind.ASK:
        return replace(lock, asked=sent)  # the holder has given no sign of life: ``since`` stays
    lock = replace(lock, since=now)
    return lock if write.kind is WriteKind.RELEASE else replace(lock, until=_end(write, terms, sent), renewed=sent)


def refused(lock: LockView) -> LockView:
    """The store has another record than the write expected."""
    return replace(lock, known=False, failed=_NEVER)


def failed(lock: LockView, now: float) -> LockView:
    """The outcome of a call is unknown: a write may have been stored, or may be stored later."""
    return replace(lock, known=False, failed=now)


def started(lock: LockView, token: int) -> LockView:
    """The controllers start."""
    return replace(lock, running=Running.ON, token=token)


def stopping(lock: LockView, now: float) -> LockView:
    """The controllers were asked to stop."""
    return replace(lock, running=Running.STOPPING, stopped=now)


def ended(lock: LockView) -> LockView:
    """None of the controllers acts any more."""
    return replace(lock, running=Running.OFF)


# the state that a lock depends on


def above(children: tuple[LockView, ...], now: float, *, wanted: bool) -> Under:
    """The state that the primary lock of a process depends on. It is released after all that needs it."""
    return Under(wanted=wanted, clear=not any(each.running is not Running.OFF or each.holds(now) for each in children))


def below(primary: LockView, *, wanted: bool) -> Under:
    """The state that a migration lock depends on: it is wanted while the primary one is held, and not being
    released.
    """
    return Under(wanted=wanted and primary.running is Running.ON, until=primary.until)


def may_act_until(lock: LockView, under: Under) -> float:
    """The controllers of a lock may act before this time."""
    return min(lock.until, under.until)


def to_stop_at(lock: LockView, terms: Terms, under: Under) -> float:
    """At this time controllers are asked to stop, unless an event comes before."""
    return may_act_until(lock, under) - terms.timing.stop_within


def to_end_at(lock: LockView, terms: Terms, under: Under) -> float:
    """At this time controllers that were asked to stop must have done so. A frozen process asks them late."""
    return max(may_act_until(lock, under), lock.stopped + terms.timing.stop_within)


def next_safety(lock: LockView, terms: Terms, under: Under) -> float:
    """Until this time a process may wait for something else."""
    if lock.running is Running.OFF:
        return math.inf
    return (to_stop_at if lock.running is Running.ON else to_end_at)(lock, terms, under)


# the next move


def next_move(lock: LockView, terms: Terms, under: Under, now: float) -> Move:
    """The next move of a process. First the moves that keep it from acting at the same time as another one."""
    if lock.running is Running.ON and _has_to_stop(lock, terms, under, now):
        return Stop()
    if lock.running is Running.STOPPING and now >= to_end_at(lock, terms, under):
        return End()
    if not lock.known:
        again = lock.failed + terms.timing.retry
        return Read() if now >= again else _wait(lock, terms, under, again)
    if _mine(lock.record, terms):
        return _holding(lock, terms, under, now)
    return _waiting(lock, terms, under, now)


def _has_to_stop(lock: LockView, terms: Terms, under: Under, now: float) -> bool:
    record = lock.record
    lost = not under.wanted or not _mine(record, terms)
    return lost or _asked(record, terms) or now >= to_stop_at(lock, terms, under)


def _holding(lock: LockView, terms: Terms, under: Under, now: float) -> Move:
    record = lock.record
    assert record is not None
    stays = under.wanted and not _asked(record, terms)
    if not stays and lock.running is Running.OFF and under.clear:
        return Write(WriteKind.RELEASE, replace(record, holder="", answers="", precedence=0))
    again = lock.renewed + terms.timing.renew
    if now >= again:
        return Write(WriteKind.RENEW, _held(record, terms))
    if stays and lock.running is Running.OFF and now < to_stop_at(lock, terms, under):
        return Start(record.transitions)
    return _wait(lock, terms, under, again)


def _waiting(lock: LockView, terms: Terms, under: Under, now: float) -> Move:
    record = lock.record
    if not under.wanted or lock.running is not Running.OFF or mismatch(record, terms):
        return _wait(lock, terms, under, math.inf)
    if record is None:
        return Write(WriteKind.CREATE, _held(Record(holder="", duration=0.0), terms))
    free = lock.since + (_behind(record, terms) if not record.holder else record.duration)
    if now >= free:
        taken = replace(record, transitions=record.transitions + 1, asked_by="")
        return Write(WriteKind.TAKE if record.version else WriteKind.CREATE, _held(taken, terms))
    if _wants_more(record, terms) and now >= lock.asked + record.duration:
        return Write(WriteKind.ASK, replace(record, asked_by=terms.identity))
    # Once more at the end of the holder's time to release: problems are reported then.
    patience = lock.asked + record.duration
    return _wait(lock, terms, under, min(free, patience) if now < patience else free)


def _wait(lock: LockView, terms: Terms, under: Under, until: float) -> WaitUntil:
    """Wait until then, or until the controllers must be asked to stop, or must have stopped."""
    return WaitUntil(min(until, next_safety(lock, terms, under)))


def mismatch(record: Record | None, terms: Terms) -> bool:
    """Whether something else runs under the lock than expected: then this process must not take it."""
    return record is not None and bool(record.controllers) and record.controllers != terms.controllers


def in_the_way(lock: LockView, terms: Terms) -> bool:
    """Whether the lock has a holder which this process would replace, and that does not release."""
    record = lock.record
    if record is None or record.holder in ("", terms.identity) or mismatch(record, terms):
        return False
    return terms.precedence > (record.precedence if record.can_be_asked else 0)


def overdue(lock: LockView, terms: Terms, now: float) -> bool:
    """Whether that holder was asked longer ago than a release takes, or cannot be asked."""
    record = lock.record
    if record is None or not in_the_way(lock, terms):
        return False
    return not record.can_be_asked or (record.asked_by == terms.identity and now >= lock.asked + record.duration)


def _wants_more(record: Record, terms: Terms) -> bool:
    """Whether to ask the holder. A holder that was asked already releases, for whichever process."""
    return record.can_be_asked and bool(record.version) and not record.asked_by and terms.precedence > record.precedence


def _behind(record: Record, terms: Terms) -> float:
    """For how long a free lock is left to the process that asked for it."""
    return 0.0 if record.asked_by in ("", terms.identity) else terms.timing.first


def _held(record: Record, terms: Terms) -> Record:
    return replace(
        record,
        holder=terms.identity,
        duration=terms.timing.duration,
        answers=terms.identity,
        precedence=terms.precedence,
        controllers=terms.controllers,
    )


def _mine(record: Record | None, terms: Terms) -> bool:
    return record is not None and record.holder == terms.identity and bool(record.version)


def _asked(record: Record | None, terms: Terms) -> bool:
    return record is not None and record.asked_by not in ("", terms.identity)


def _end(write: Write, terms: Terms, sent: float) -> float:
    return sent + usable(write.record.duration, terms.timing.drift)
