"""Rules taken out of the protocol, one at a time, and what then does not hold."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType

import pytest

from model.leases.explorer import Explorer
from model.leases.searches import (
    ALONE,
    CLIENT_GO,
    FAULTS,
    FICKLE,
    NESTED,
    OTHER_SETS,
    OVERLAPPING,
    RELEASES,
    SHORTENED,
    THREE,
    TWO,
    TWO_OF_ONE_NAME,
    TYPES,
)
from model.leases.world import (
    FIRST,
    IMMUTABLE,
    IN_TIME,
    MOVES,
    NO_OVERLAP,
    ONE_TYPE,
    PROGRESS,
    TOKENS,
    TWO_ACTIVE,
    UNDER_PRIMARY,
    UNIQUE,
    Search,
)
from quarterdeck.leases import protocol, record, sets


@dataclass(frozen=True)
class Mutation:
    """``old`` stands in the source of ``module`` once, and becomes ``new``; ``breaks`` is what then does not hold."""

    name: str
    module: ModuleType
    old: str
    new: str
    search: Search
    breaks: str

    def __str__(self) -> str:
        return self.name

    def explore(self) -> None:
        """Search for what it breaks: of what is not safe, before anybody looks where it ends."""
        Explorer(replace(self.search, rests=self.breaks in (PROGRESS, MOVES, ONE_TYPE, FIRST))).explore()

    def apply(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have its functions do what they would if that were their source; its classes stay the same ones."""
        source = inspect.getsource(self.module)
        assert source.count(self.old) == 1, f"{self.old!r} is there {source.count(self.old)} times"
        mutated = ModuleType(self.module.__name__)
        exec(compile(source.replace(self.old, self.new), str(self.module.__file__), "exec"), mutated.__dict__)
        for name, function in vars(self.module).items():
            if isinstance(function, FunctionType) and function.__module__ == self.module.__name__:
                monkeypatch.setattr(function, "__code__", vars(mutated)[name].__code__)


MUTATIONS = (
    Mutation(
        "clocks are taken to run alike",
        record,
        "return duration * (1 - drift) / (1 + drift)",
        "return duration",
        TWO,
        TWO_ACTIVE,
    ),
    Mutation(
        "a renewal counts from its acknowledgement",
        protocol,
        "until=_end(write, terms, sent), renewed=sent",
        "until=_end(write, terms, 0), renewed=sent",
        TWO,
        TWO_ACTIVE,
    ),
    Mutation(
        "a candidate counts from the first record that it saw",
        protocol,
        "since=lock.since if same else now",
        "since=lock.since",
        TWO,
        TOKENS,
    ),
    Mutation(
        "a renewal may look like the one before",
        record,
        "before.renewed + 1 if before is not None else 0",
        "0",
        TWO,
        TOKENS,
    ),
    Mutation("a lock that is held is taken", protocol, "if now >= free:", "if True:", TWO, TOKENS),
    Mutation(
        "a lock is let go while its controllers end",
        protocol,
        "if not stays and lock.running is Running.OFF and under.clear:",
        "if not stays and under.clear:",
        NESTED,
        UNDER_PRIMARY,
    ),
    Mutation(
        "who has sent that it lets go may begin again",
        protocol,
        "        return replace(lock, until=_NEVER)\n    if write.kind is Kind.RENEW",
        "        return lock\n    if write.kind is Kind.RENEW",
        FICKLE,
        TOKENS,
    ),
    Mutation(
        "a shorter term counts only once it is acknowledged",
        protocol,
        "return replace(lock, until=min(lock.until, _end(write, terms, now)))",
        "return lock",
        SHORTENED,
        TWO_ACTIVE,
    ),
    Mutation(
        "controllers get no time to end",
        protocol,
        "return may_act_until(lock, under) - terms.timing.stop_within",
        "return may_act_until(lock, under)",
        ALONE,
        IN_TIME,
    ),
    Mutation(
        "who does not end is left alone",
        protocol,
        "if lock.running is Running.STOPPING and now >= to_end_at(lock, terms, under):",
        "if False:",
        ALONE,
        IN_TIME,
    ),
    Mutation(
        "nobody looks at the time",
        protocol,
        " or now >= to_stop_at(lock, terms, under)",
        "",
        ALONE,
        IN_TIME,
    ),
    Mutation(
        "a migration lock does not end with the primary one",
        protocol,
        "wanted=wanted and primary.running is Running.ON, until=primary.until",
        "wanted=wanted and primary.running is Running.ON",
        TYPES,
        UNDER_PRIMARY,
    ),
    Mutation(
        "a migration lock is kept when the primary one is given up",
        protocol,
        "wanted=wanted and primary.running is Running.ON, until=primary.until",
        "wanted=wanted, until=primary.until",
        RELEASES,
        UNDER_PRIMARY,
    ),
    Mutation(
        "the primary lock is let go before what needs it",
        protocol,
        "clear=not any(each.running is not Running.OFF or each.holds(now) for each in children)",
        "clear=True",
        NESTED,
        UNDER_PRIMARY,
    ),
    Mutation(
        "a holder does not hear that it is asked",
        protocol,
        'record.asked_by not in ("", terms.identity)',
        "False",
        TYPES,
        MOVES,
    ),
    Mutation(
        "nobody asks",
        protocol,
        "not record.asked_by and terms.precedence > record.precedence",
        "False",
        RELEASES,
        MOVES,
    ),
    Mutation(
        "everybody asks",
        protocol,
        "not record.asked_by and terms.precedence > record.precedence",
        "not record.asked_by and terms.precedence != record.precedence",
        TYPES,
        ONE_TYPE,
    ),
    Mutation(
        "whoever comes first takes what another one has asked for",
        protocol,
        'return 0.0 if record.asked_by in ("", terms.identity) else terms.timing.first',
        "return 0.0",
        THREE,
        FIRST,
    ),
    Mutation(
        "who asked and is gone is waited for",
        protocol,
        'return 0.0 if record.asked_by in ("", terms.identity) else terms.timing.first',
        'return 0.0 if record.asked_by in ("", terms.identity) else math.inf',
        FAULTS,
        PROGRESS,
    ),
    Mutation(
        "the token stays as it was",
        protocol,
        "transitions=record.transitions + 1",
        "transitions=record.transitions",
        TWO,
        TOKENS,
    ),
    Mutation(
        "a lock is taken for other controllers",
        protocol,
        "bool(record.controllers) and record.controllers != terms.controllers",
        "False",
        OTHER_SETS,
        IMMUTABLE,
    ),
    Mutation(
        "what failed is never tried again",
        protocol,
        "return Read() if now >= again else",
        "return Read() if lock.failed < -5 else",
        ALONE,
        PROGRESS,
    ),
    Mutation(
        "a holder that cannot be asked is not waited for",
        protocol,
        "else record.duration)\n",
        "else record.duration if record.can_be_asked else 0.0)\n",
        CLIENT_GO,
        TWO_ACTIVE,
    ),
    Mutation(
        "two locks may have one name",
        sets,
        "if not each.lock or each.lock in locks:",
        "if False:",
        TWO_OF_ONE_NAME,
        UNIQUE,
    ),
    Mutation("a controller may be in two sets", sets, "if name in owners:", "if False:", OVERLAPPING, NO_OVERLAP),
)
