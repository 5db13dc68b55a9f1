"""One name for all states that are alike: what nobody goes by any more is left out of it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from operator import is_

from model.leases.world import Act, Call, Phase, Process, Search, Token, World
from quarterdeck.leases.protocol import LockView, Running, Terms, Write, WriteKind
from quarterdeck.leases.record import Record

_OLD, _STORED = "old", "stored"
#: Tokens that are older than the stored one by more are one.
_OLDEST = -3
_LONG_AGO = -20
#: As long as a lock of any search is held without news.
_LONGEST = 20


def canonical(search: Search, world: World, before: World | None = None) -> World:
    """The state that stands for all that are alike. What is as it was ``before``, in such a state, stays as it is."""
    records = world.records
    base = [record.transitions if record is not None else 0 for record in records]
    same = before is not None and all(map(is_, records, before.records))
    return World(
        records=records if same else tuple(record and _stored(record) for record in records),
        processes=tuple(
            each
            if not each.alive or (same and before and each is before.processes[number])
            else _process(search, world, number)
            for number, each in enumerate(world.processes)
        ),
        tokens=tuple(Token(max(_OLDEST, each.token - base[at]), each.process) for at, each in enumerate(world.tokens)),
        late=frozenset(
            (lock, _write(write, records[lock])) for lock, write in world.late if _counts(write, records[lock])
        ),
        acts=frozenset(Act(each.lock, max(_OLDEST, each.token - base[each.lock]), each.process) for each in world.acts),
        crashes=world.crashes,
        losses=world.losses,
        changes=world.changes,
        freezes=world.freezes,
    )


@lru_cache(maxsize=10_000)
def _stored(record: Record) -> Record:
    return replace(record, version=_STORED, transitions=0, renewed=0, acquired=0)


def _seen(record: Record | None, stored: Record | None) -> Record | None:
    """What somebody has seen, beside what is stored now."""
    if record is None:
        return None
    if stored is not None and record.version == stored.version:
        return _stored(record)
    if stored is not None and record.term == stored.term:
        return replace(record, version=_OLD, transitions=0, renewed=0, acquired=0)
    return replace(record, version=_OLD, transitions=-1, renewed=-1, acquired=-1)


def _counts(write: Write, stored: Record | None) -> bool:
    """Whether a write can still be stored."""
    if write.kind is WriteKind.CREATE:
        return stored is None
    return stored is not None and write.record.version == stored.version


def _write(write: Write, stored: Record | None) -> Write:
    """A write that can still be stored: what it makes of the token, and that it is a renewal."""
    base = stored.transitions if stored is not None else write.record.transitions
    renewed = 0 if write.kind is WriteKind.ASK else 1
    record = replace(
        write.record,
        version="" if stored is None else _STORED,
        transitions=write.record.transitions - base,
        renewed=renewed if stored is None else min(renewed, write.record.renewed - stored.renewed),
        acquired=0,
    )
    return Write(write.kind, record)


def _process(search: Search, world: World, number: int) -> Process:
    process = world.processes[number]
    stored = [world.records[lock] for lock in search.members[number].locks]
    terms = search.members[number].terms[process.terms]
    return process._replace(
        locks=tuple(_lock(lock, terms[at], stored[at]) for at, lock in enumerate(process.locks)),
        calls=tuple(call and _call(call, stored[at]) for at, call in enumerate(process.calls)),
    )


@lru_cache(maxsize=500_000)
def _lock(lock: LockView, terms: Terms, stored: Record | None) -> LockView:
    """A lock as its process knows it. What counts only in some of its states is left out in the others."""
    base = stored.transitions if stored is not None else 0
    mine = lock.record is not None and lock.record.holder == terms.identity
    longest = int(lock.record.duration) if lock.record is not None and lock.record.holder else int(terms.timing.first)
    return replace(
        lock,
        record=_seen(lock.record, stored),
        since=_time(lock.since, longest) if lock.record is not None and not mine else 0,
        until=max(0, _whole(lock.until)) if lock.until > 0 else 0,
        renewed=_time(lock.renewed, int(terms.timing.renew)) if mine else _LONG_AGO,
        asked=_time(lock.asked, int(terms.timing.duration)) if terms.precedence else _LONG_AGO,
        failed=_time(lock.failed, int(terms.timing.retry)) if not lock.known else _LONG_AGO,
        stopped=_time(lock.stopped, int(terms.timing.stop_within)) if lock.running is Running.STOPPING else _LONG_AGO,
        token=0 if lock.running is Running.OFF else max(_OLDEST, lock.token - base),
    )


@lru_cache(maxsize=500_000)
def _call(call: Call, stored: Record | None) -> Call:
    if call.write is None:
        return Call(call.phase, 0, None, _seen(call.found, stored))
    if call.phase is Phase.SENT and not _counts(call.write, stored):
        call = call._replace(phase=Phase.REFUSED)
    if call.phase is Phase.REFUSED:
        return Call(call.phase, 0, Write(WriteKind.RENEW, Record(holder="", duration=0)), None)
    if call.phase is Phase.SENT:
        return Call(call.phase, _time(call.sent, _LONGEST), _write(call.write, stored), None)
    assert call.write is not None
    done = Write(call.write.kind, replace(call.write.record, version="", transitions=0, renewed=0, acquired=0))
    return Call(call.phase, _time(call.sent, _LONGEST), done, _seen(call.found, stored))


def _time(time: float, longest: int) -> int:
    """A time of before, or as long ago as counts."""
    return _whole(max(-longest, time))


def _whole(time: float) -> int:
    assert time == int(time), time
    return int(time)
