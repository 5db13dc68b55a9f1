"""What may go wrong with a call of a port, and whose turn it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Protocol

from loop.calls import Call
from quarterdeck.errors import Conflict, QuarterdeckError, TimedOut, Unavailable
from quarterdeck.etcd.faults import Reason, fault


class Kind(StrEnum):
    """The first four are of the call; the others happen at the moment of the call: to the driver, what its user wants,
    or the world.
    """

    FAILS = "fails"
    LOST = "succeeds, its reply is lost"
    HANGS = "hangs until its deadline"
    LATE = "answers late"
    DIES = "the driver is killed before it"
    DIES_AFTER = "the driver is killed after it"
    STOPS = "the driver is told to stop"
    ABORTS = "the user goes back"
    FREEZES = "the driver stands still after it, another one takes over, and it wakes"
    FREEZES_BACK = "the same, and the user goes back meanwhile"
    SENT_LATE = "the driver stands still before it, another one takes over, and it wakes and sends it"
    SENT_LATE_BACK = "the driver stands still before it, the user goes back, and it wakes and sends it"
    MACHINE_DIES = "a machine is powered off, and comes back"
    MACHINE_FREEZES = "a machine stands still for a while"
    MACHINE_UNSEEN = "we are cut off from a machine, and nobody else is"
    SITE_UNSEEN = "we are cut off from a site, and nobody else is"
    SITES_CUT = "two sites are cut from one another"
    EDGE_DIES = "the machine of a load balancer is powered off, and comes back"
    LOST_MACHINE = "a machine is powered off, and never comes back"
    HANGS_UP = "a program does nothing any more until it is killed"
    CLOCK_AHEAD = "the wall clock is set an hour ahead"
    CLOCK_BACK = "the wall clock is set back by an hour"


#: Those that strike when the call is over.
AFTER = (Kind.DIES_AFTER, Kind.FREEZES, Kind.FREEZES_BACK)
OF_THE_WORLD = tuple(kind for kind in Kind if kind.name.startswith(("MACHINE_", "SITE", "EDGE_", "CLOCK_")))
#: All that is over some time.
OVER = tuple(kind for kind in Kind if kind not in (Kind.LOST_MACHINE, Kind.HANGS_UP))
OF_THE_CALL = (Kind.FAILS, Kind.LOST, Kind.HANGS, Kind.LATE)

#: Calls that change something. Every other one only looks.
CHANGES: Mapping[str, frozenset[str]] = {
    "site": frozenset(
        {"install", "start_unit", "stop_unit", "set_priority", "hold_unit", "let_go_unit", "remove_unit", "run_job"}
        | {"reload_unit", "write_files", "remove_files", "guard_unit", "create_volume", "fill_volume"}
        | {"delete_volume", "attach_volume", "allocate", "occupy", "release"}
    ),
    "etcd": frozenset({"add_learner", "promote", "readdress", "remove", "move_leader"}),
    "kube": frozenset({"release_lease"}),
    "balancer": frozenset({"apply", "hold", "let_go", "remove"}),
    "dns": frozenset({"set", "remove"}),
    "store": frozenset(
        {"create", "update", "delete", "delete_together", "append", "record", "acquire", "renew", "release"}
    ),
}

#: Seconds: when a call gives up, and how late a late answer is.
DEADLINE = 3.0
LATENESS = 1.5


def changes(call: Call) -> bool:
    return call.method in CHANGES[call.port.partition(":")[0]]


class Faults(Protocol):
    """Says of each call what goes wrong with it."""

    def of(self, call: Call, number: int) -> Kind | None:
        """``number`` counts all calls of a life from 0."""
        ...


@dataclass(frozen=True, slots=True)
class NoFaults:
    """All goes well."""

    def of(self, call: Call, number: int) -> Kind | None:
        return None


@dataclass(frozen=True, slots=True)
class OneFault:
    """One call goes wrong."""

    number: int
    kind: Kind

    def of(self, call: Call, number: int) -> Kind | None:
        return self.kind if number == self.number else None


@dataclass(slots=True)
class SomeFaults:
    """Any call may go wrong, changes more often than looks; at most ``left`` of them."""

    random: Random = field(repr=False)
    left: int
    share: float
    kinds: tuple[Kind, ...] = OVER

    def of(self, call: Call, number: int) -> Kind | None:
        often = self.share * (8 if changes(call) else 1)
        if self.left <= 0 or self.random.random() >= often:
            return None
        self.left -= 1
        return self.random.choice(self.kinds)


@dataclass(slots=True)
class Recorded:
    """No faults, but a note of each call: the points at which a sweep has something go wrong, and of those that change
    something outside of the store.
    """

    points: dict[tuple[object, ...], int] = field(default_factory=dict)
    effects: list[int] = field(default_factory=list)
    _changes: int = 0

    def of(self, call: Call, number: int) -> Kind | None:
        # Looks that are made again and again while nothing changes are one and the same moment.
        if changes(call) and call.port != "store":
            self._changes += 1
            self.effects.append(number)
        self.points.setdefault((self._changes, call.port, call.method, call.target()), number)
        return None


def error_of(call: Call, kind: Kind) -> QuarterdeckError:
    """What a port raises, of those errors that it says it raises."""
    doing = f"{call.method} of {call.port} {call.target()}"
    timed_out = kind is not Kind.FAILS
    if call.port == "etcd":
        return fault(doing, Reason.DEADLINE if timed_out else Reason.UNREACHABLE, "a fault of the test")
    if call.port == "dns" and call.method == "set" and not timed_out:
        return Conflict(doing, "a fault of the test: somebody else changed it")
    return (TimedOut if timed_out else Unavailable)(doing, "a fault of the test")
