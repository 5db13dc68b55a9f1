"""Processes, what they have asked a store for, and the store: all that can come next, one small step at a time.

Times are whole units of each process's own clock, counted from its now: what is equal but for the time of day is one
state. Versions, tokens and times of renewal are only told apart as far as anybody goes by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from quarterdeck.leases import protocol, sets
from quarterdeck.leases.protocol import (
    End,
    LockView,
    Move,
    Read,
    Running,
    Start,
    Stop,
    Terms,
    Under,
    WaitUntil,
    Write,
    WriteKind,
)
from quarterdeck.leases.record import Record, Timing
from quarterdeck.leases.sets import ControllerSet, Held

#: Units that a clock counts of a tick: one that runs slow, one that runs fast. A clock that is right is between them.
SLOW, FAST = 6, 10
DRIFT = 0.25
_STORED = "stored"
#: Longer ago than anything that is counted.
_LONG_AGO = -20


class Phase(Enum):
    """How far a call has come."""

    SENT = auto()
    DONE = auto()  # it is stored, or read; the answer is under way
    REFUSED = auto()


class Call(NamedTuple):
    """What a process waits for. ``write``: None if it reads. ``found``: what was read."""

    phase: Phase
    sent: int
    write: Write | None = None
    found: Record | None = None


class Process(NamedTuple):
    """``prompt``: since its controllers began no time has passed while it had something to do. ``terms``: which of its
    terms it goes by. Its primary lock is its first one.
    """

    locks: tuple[LockView, ...]
    calls: tuple[Call | None, ...]
    alive: bool = True
    wanted: bool = True
    prompt: bool = True
    terms: int = 0


class Act(NamedTuple):
    """What a controller was allowed to do, and has not come to its end yet."""

    lock: int
    token: int
    process: int


class Token(NamedTuple):
    """The newest under which anything was done."""

    token: int
    process: int


class World(NamedTuple):
    """``late``: writes that nobody waits for and that may be stored yet, with the lock of the store that they are of.
    ``crashes``, ``losses``, ``changes``: how many of each may still come.
    """

    records: tuple[Record | None, ...]
    processes: tuple[Process, ...]
    tokens: tuple[Token, ...]
    late: frozenset[tuple[int, Write]] = frozenset()
    acts: frozenset[Act] = frozenset()
    crashes: int = 0
    losses: int = 0
    changes: int = 0
    freezes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Member:
    """A process of a search. ``rate``: of its clock. ``locks``: which of the store's it has, the primary one first.
    ``terms``: those of each lock that it begins with, and those that it may change to. ``deaf``: it is client-go, which
    knows of no requests, and leaves annotations as they are.
    """

    rate: int
    locks: tuple[int, ...]
    terms: tuple[tuple[Terms, ...], ...]
    deaf: bool = False

    @property
    def identity(self) -> str:
        return self.terms[0][0].identity


#: What must always be so, by the source's names where it has one.
UNIQUE = "must have a unique name"
IMMUTABLE = "the set of controllers in the lock is immutable"
NO_OVERLAP = "no two migration locks should have overlapping controllers"
MOVES = "the controller manager where the lock runs can change"
ONE_TYPE = "it should run exclusively in one type of controller manager"
PROPERTIES = (UNIQUE, IMMUTABLE, NO_OVERLAP, MOVES, ONE_TYPE)
TWO_ACTIVE = "never two active holders"
TOKENS = "the token grows with each holder"
NO_OLDER_ACT = "no act with an older token after a newer one"
UNDER_PRIMARY = "migration locks only while the primary one is held"
IN_TIME = "controllers end before the lock can pass on"
PROGRESS = "somebody becomes active"
FIRST = "whoever asked goes first"


class Broken(AssertionError):
    """Something that must always hold does not."""

    def __init__(self, name: str, seen: str) -> None:
        super().__init__(f"{name}: {seen}")
        self.name = name


#: For clocks that are slow or fast: a slow one counts two ticks of the usable time, while a fast one waits for two.
COARSE = Timing(duration=20, renew=4, retry=4, stop_within=1, first=8, drift=DRIFT)
LONG = replace(COARSE, duration=30)
RARE = replace(COARSE, renew=7)
#: One tick.
BRIEF = Timing(duration=10, renew=2, retry=2, stop_within=1, first=8, drift=DRIFT)
#: For clocks that are right, and count one unit of a tick: then nothing falls between two ticks.
FINE = Timing(duration=4, renew=1, retry=1, stop_within=1, first=1, drift=0)


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched. ``acts``: those of controllers are followed to their ends. ``fenced``: the resource refuses an
    act with an older token than it has seen. ``fine``: all clocks count one unit of a tick. ``at_once``: a call takes
    no time, unless its answer is lost. Processes may be frozen at any time for as long as they like in all of them:
    time passes whatever they have to do. ``rests``: it is searched where each state ends.
    """

    name: str
    members: tuple[Member, ...]
    crashes: int = 0
    losses: int = 0
    changes: int = 0
    freezes: int | None = None
    acts: bool = False
    fine: bool = False
    at_once: bool = False
    fenced: bool = True
    rests: bool = True

    @property
    def stored(self) -> int:
        return 1 + max(lock for each in self.members for lock in each.locks)

    def start(self) -> World:
        blank = LockView(**dict.fromkeys(("since", "until", "renewed", "asked", "failed", "stopped"), _LONG_AGO))
        return World(
            records=(None,) * self.stored,
            processes=tuple(
                Process(locks=(blank,) * len(each.locks), calls=(None,) * len(each.locks)) for each in self.members
            ),
            tokens=(Token(-1, -1),) * self.stored,
            crashes=self.crashes,
            losses=self.losses,
            changes=self.changes,
            freezes=self.freezes,
        )

    def check(self) -> None:
        """Raises InvalidInput for sets that no manager takes."""
        for each in self.members:
            made = [
                ControllerSet(lock=f"lock-{lock}", controllers=dict.fromkeys(terms.controllers, _idle))
                for lock, terms in zip(each.locks, each.terms[0], strict=True)
            ]
            sets.check_sets(made[0], made[1:])

    def terms(self, world: World, number: int, at: int) -> Terms:
        return self.members[number].terms[world.processes[number].terms][at]

    def under(self, process: Process, at: int) -> Under:
        if at == 0:
            return protocol.above(process.locks[1:], 0, wanted=process.wanted)
        return protocol.below(process.locks[0], wanted=process.wanted)

    def move(self, world: World, number: int, at: int) -> Move:
        """What the process does next about a lock, unless it waits for the store."""
        process, terms = world.processes[number], self.terms(world, number, at)
        lock = process.locks[at]
        if not self.members[number].deaf or lock.record is None:
            return protocol.next_move(lock, terms, self.under(process, at), 0)
        unasked = replace(lock, record=replace(lock.record, asked_by="", controllers=()))
        move = protocol.next_move(unasked, terms, self.under(process, at), 0)
        return Write(move.kind, _as_it_was(move.record, lock.record)) if isinstance(move, Write) else move

    def idle(self, world: World, number: int) -> bool:
        """Whether a process has nothing to do but to wait."""
        return not world.processes[number].alive or not any(
            self.is_due(world, number, at) for at in range(len(self.members[number].locks))
        )

    def is_due(self, world: World, number: int, at: int) -> bool:
        """Whether there is something to do now about a lock. Nobody waits for the store when it is time to stop."""
        move = self.move(world, number, at)
        return isinstance(move, Stop | End) or (
            world.processes[number].calls[at] is None and not isinstance(move, WaitUntil)
        )

    # what can come next

    def following(self, world: World) -> Iterator[tuple[str, World]]:
        """Every next step, of anybody, and of what may go wrong."""
        for number, process in enumerate(world.processes):
            if process.alive:
                yield from self._of_process(world, number, process)
                if world.crashes:
                    yield (
                        f"{self._name(number)} crashes",
                        self._crashed(world, number)._replace(crashes=world.crashes - 1),
                    )
                if world.changes:
                    for how, changed in self._changes(number, process):
                        yield (
                            f"{self._name(number)} {how}",
                            _with(world, number, changed)._replace(changes=world.changes - 1),
                        )
        for lock, write in world.late:
            yield f"a late {write.kind.name} is stored", self._late(world, lock, write)
        for act in world.acts:
            yield f"an act of {self._name(act.process)} takes effect", self.acted(world, act)
        if world.freezes is None or all(self.idle(world, number) for number in range(len(world.processes))):
            yield "time passes", self.tick(world)
        elif world.freezes:
            yield "time passes, and somebody is frozen", self.tick(world)._replace(freezes=world.freezes - 1)

    def _changes(self, number: int, process: Process) -> Iterator[tuple[str, Process]]:
        if process.terms + 1 < len(self.members[number].terms):
            yield "goes by other terms", process._replace(terms=process.terms + 1)
        yield "is wanted" if not process.wanted else "is not wanted", process._replace(wanted=not process.wanted)

    def _of_process(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        name = self._name(number)
        for at, call in enumerate(process.calls):
            what = f"{name}, lock {self.members[number].locks[at]}:"
            if call is None:
                yield from ((f"{what} {how}", after) for how, after in self._by_itself(world, number, at))
            else:
                yield f"{what} {'served' if call.phase is Phase.SENT else 'answered'}", self.went_on(world, number, at)
                if isinstance(self.move(world, number, at), Stop | End):  # there is no time to wait for the answer
                    yield from ((f"{what} {how}", after) for how, after in self._lost(world, number, at, call))
                elif world.losses:
                    for how, after in self._lost(world, number, at, call):
                        yield f"{what} {how}", after._replace(losses=world.losses - 1)
            if process.locks[at].running is Running.STOPPING:
                yield f"{what} controllers ended", self.ended(world, number, at)
            if self.acts and process.locks[at].running is not Running.OFF and self.may_act(world, number, at):
                act = Act(self.members[number].locks[at], process.locks[at].token, number)
                yield f"{what} begins an act", world._replace(acts=world.acts | {act})

    def _by_itself(self, world: World, number: int, at: int) -> Iterator[tuple[str, World]]:
        """What a process does about a lock for which it waits for no answer."""
        if world.processes[number].locks[at].known and self.news(world, number, at):
            informed = self.informed(world, number, at)
            yield "told", self._local(informed, number, at) if self.at_once else informed
        move = self.move(world, number, at)
        if isinstance(move, WaitUntil):
            return
        after = self.moved(world, number, at, move)
        if self.at_once and isinstance(move, Read | Write):
            if world.losses:
                for how, lost in self._lost_at_once(after, number, at):
                    yield f"{_words(move)}, {how}", lost._replace(losses=world.losses - 1)
            after = self._local(self.went_on(self.went_on(after, number, at), number, at), number, at)
        yield _words(move), after

    def _local(self, world: World, number: int, at: int) -> World:
        """What a process does next by itself."""
        move = self.move(world, number, at)
        return self.moved(world, number, at, move) if isinstance(move, Start | Stop) else world

    def news(self, world: World, number: int, at: int) -> bool:
        record = world.records[self.members[number].locks[at]]
        return record is not None and record != world.processes[number].locks[at].record

    def informed(self, world: World, number: int, at: int) -> World:
        """A watch tells of what is stored."""
        process = world.processes[number]
        record = world.records[self.members[number].locks[at]]
        seen = protocol.saw(process.locks[at], self.terms(world, number, at), record, 0)
        return _with(world, number, _of(process, at, seen, None))

    def may_act(self, world: World, number: int, at: int) -> bool:
        """What ``Held.check`` says to the controllers of a lock now."""
        process = world.processes[number]
        return process.alive and protocol.may_act_until(process.locks[at], self.under(process, at)) > 0

    def moved(self, world: World, number: int, at: int, move: Move) -> World:
        process, terms = world.processes[number], self.terms(world, number, at)
        lock, call = process.locks[at], None
        match move:
            case Read():
                call = Call(Phase.SENT, 0)
            case Write():
                self._claim_under(move, process, at)
                lock = protocol.sending(lock, terms, move, 0)
                call = Call(Phase.SENT, 0, protocol.stamped(lock, move, 0.0))
            case Start(token):
                world = self._claim_token(world, number, at, token)
                lock = protocol.started(lock, token)
            case Stop():
                lock = protocol.stopping(lock, 0)
            case End():
                return self._crashed(world, number)
            case WaitUntil():
                return world
        return _with(world, number, _of(process, at, lock, call))

    def _claim_under(self, write: Write, process: Process, at: int) -> None:
        if (
            at == 0
            and write.kind is WriteKind.RELEASE
            and any(each.running is not Running.OFF for each in process.locks)
        ):
            raise Broken(UNDER_PRIMARY, "the primary lock is released while something runs under it")
        if at > 0 and write.kind in (WriteKind.CREATE, WriteKind.TAKE) and process.locks[0].running is not Running.ON:
            raise Broken(UNDER_PRIMARY, "a migration lock is taken without the primary one")

    def _claim_token(self, world: World, number: int, at: int, token: int) -> World:
        stored = self.members[number].locks[at]
        last = world.tokens[stored]
        if token < last.token or (token == last.token and number != last.process):
            raise Broken(TOKENS, f"{self._name(number)} begins with {token} after {last}")
        return world._replace(tokens=_put(world.tokens, stored, Token(token, number)))

    def went_on(self, world: World, number: int, at: int) -> World:
        """The call goes on: to the store, or back."""
        process, stored = world.processes[number], self.members[number].locks[at]
        call, lock, terms = process.calls[at], process.locks[at], self.terms(world, number, at)
        assert call is not None
        if call.phase is Phase.SENT:
            if call.write is None:
                call = call._replace(phase=Phase.DONE, found=world.records[stored])
            else:
                world, done = self._stored(world, stored, call.write)
                call = call._replace(phase=Phase.DONE if done else Phase.REFUSED, found=world.records[stored])
            return _with(world, number, _of(process, at, lock, call))
        if call.write is None:
            lock = protocol.saw(lock, terms, call.found, 0)
        elif call.phase is Phase.REFUSED:
            lock = protocol.refused(lock)
        else:
            assert call.found is not None
            lock = protocol.wrote(lock, terms, call.write, call.found, call.sent, 0)
        return _with(world, number, _of(process, at, lock, None))

    def _stored(self, world: World, stored: int, write: Write) -> tuple[World, bool]:
        """Compare and swap."""
        before = world.records[stored]
        expected = "" if write.kind is WriteKind.CREATE else write.record.version
        if (before.version if before is not None else "") != expected:
            return world, False
        if before is not None and before.controllers not in ((), write.record.controllers):
            raise Broken(IMMUTABLE, f"{before.controllers} became {write.record.controllers}")
        version = f"{before.version if before else ''}{_STORED}"
        return world._replace(records=_put(world.records, stored, replace(write.record, version=version))), True

    def _lost(self, world: World, number: int, at: int, call: Call) -> Iterator[tuple[str, World]]:
        process = world.processes[number]
        given_up = _with(world, number, _of(process, at, protocol.failed(process.locks[at], 0), None))
        yield "no answer", given_up
        if call.write is not None and call.phase is Phase.SENT:
            late = world.late | {(self.members[number].locks[at], call.write)}
            yield "no answer, and it may be stored yet", given_up._replace(late=late)

    def _lost_at_once(self, sent: World, number: int, at: int) -> Iterator[tuple[str, World]]:
        """The same, before it was stored or after."""
        for world in (sent, self.went_on(sent, number, at)):
            call = world.processes[number].calls[at]
            assert call is not None
            yield from self._lost(world, number, at, call)

    def _late(self, world: World, lock: int, write: Write) -> World:
        return self._stored(world, lock, write)[0]._replace(late=world.late - {(lock, write)})

    def _crashed(self, world: World, number: int) -> World:
        """What it has sent may be stored yet."""
        process = world.processes[number]
        sent = {
            (self.members[number].locks[at], call.write)
            for at, call in enumerate(process.calls)
            if call is not None and call.write is not None and call.phase is Phase.SENT
        }
        gone = self.start().processes[number]._replace(alive=False)
        return _with(world, number, gone)._replace(late=world.late | sent)

    def ended(self, world: World, number: int, at: int) -> World:
        process = world.processes[number]
        process = _of(process, at, protocol.ended(process.locks[at]), process.calls[at])
        if all(each.running is Running.OFF for each in process.locks):
            process = process._replace(prompt=True)
        return _with(world, number, process)

    def acted(self, world: World, act: Act) -> World:
        """An act takes effect at a resource, if that does not refuse it."""
        world, last = world._replace(acts=world.acts - {act}), world.tokens[act.lock]
        if act.token < last.token:
            if self.fenced:
                return world
            raise Broken(NO_OLDER_ACT, f"{self._name(act.process)}: {act} after {last}")
        return world

    def tick(self, world: World) -> World:
        """Time passes for all, in the middle of whatever they do."""
        return world._replace(
            processes=tuple(
                _later(each, self.members[number].rate, idle=self.idle(world, number)) if each.alive else each
                for number, each in enumerate(world.processes)
            )
        )

    def _name(self, number: int) -> str:
        return self.members[number].identity


async def _idle(held: Held) -> None:
    """A controller, of which only the name counts."""


def _later(process: Process, rate: int, *, idle: bool) -> Process:
    return process._replace(
        locks=tuple(
            replace(
                each,
                since=each.since - rate,
                until=each.until - rate,
                renewed=each.renewed - rate,
                asked=each.asked - rate,
                failed=each.failed - rate,
                stopped=each.stopped - rate,
            )
            for each in process.locks
        ),
        calls=tuple(each and each._replace(sent=each.sent - rate) for each in process.calls),
        prompt=process.prompt and (idle or all(each.running is Running.OFF for each in process.locks)),
    )


def _with(world: World, number: int, process: Process) -> World:
    return world._replace(processes=_put(world.processes, number, process))


def _of(process: Process, at: int, lock: LockView, call: Call | None) -> Process:
    return process._replace(locks=_put(process.locks, at, lock), calls=_put(process.calls, at, call))


def _put(all_: tuple, at: int, one: object) -> tuple:  # type: ignore[type-arg]
    return (*all_[:at], one, *all_[at + 1 :])


def _as_it_was(record: Record, before: Record) -> Record:
    return replace(
        record,
        asked_by=before.asked_by,
        controllers=before.controllers,
        answers=before.answers,
        precedence=before.precedence,
    )


def _words(move: Move) -> str:
    return move.kind.name if isinstance(move, Write) else type(move).__name__
