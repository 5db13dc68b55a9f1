"""The errors of calls to etcd, and the one place that knows etcd's codes and sentences."""

from __future__ import annotations

from enum import StrEnum

import grpc

from quarterdeck.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    NotFound,
    PreconditionFailed,
    QuarterdeckError,
    TimedOut,
    Unavailable,
)


class Reason(StrEnum):
    """Why a call failed, for code; people read the error's own sentence."""

    UNREACHABLE = "unreachable"  # no connection, or it broke: a change may or may not have happened
    DEADLINE = "deadline"  # no answer in time: likewise
    NO_LEADER = "no leader"
    LEADER_CHANGED = "leader changed"
    REQUEST_TIMED_OUT = "request timed out"  # etcd itself gave up: a change may still happen
    STOPPED = "server stopped"
    UNHEALTHY = "unhealthy cluster"
    NOT_FOR_LEARNERS = "not served by learners"
    TOO_MANY_LEARNERS = "too many learners"
    LEARNER_BEHIND = "learner behind"
    NOT_A_LEARNER = "not a learner"
    NOT_ENOUGH_STARTED = "not enough started members"
    MEMBER_NOT_FOUND = "member not found"
    MEMBER_EXISTS = "member exists"
    NOT_LEADER = "not leader"
    BAD_TRANSFEREE = "bad leader transferee"
    NO_SPACE = "no space"
    CORRUPT = "corrupt"
    COMPACTED = "compacted"
    FUTURE_REVISION = "future revision"
    LEASE_NOT_FOUND = "lease not found"
    LEASE_EXISTS = "lease exists"
    TOO_MANY_REQUESTS = "too many requests"
    TOO_LARGE = "answer too large"  # ask for fewer keys
    DENIED = "denied"  # etcd's authentication is on, and does not let this user do that
    NOT_AUTHENTICATING = "authentication is off"
    DOWNGRADING = "downgrade in progress"
    BAD_DOWNGRADE = "bad downgrade target"  # not the minor version before the one that the cluster works as
    INVALID = "invalid request"
    OTHER = "other"  # not in this list; occurs while a member starts or stops


class EtcdFault(QuarterdeckError):
    """Every error of a call to etcd. Each kind below is also the matching class of ``quarterdeck.errors``."""

    def __init__(self, doing: str, seen: str, next_step: str = "", *, reason: Reason) -> None:
        super().__init__(doing, seen, next_step)
        self.reason = reason


class EtcdUnavailable(EtcdFault, Unavailable):
    """The member did not answer, or the cluster could not serve; later it may."""


class EtcdTimedOut(EtcdFault, TimedOut):
    """The call's deadline passed."""


class EtcdRefused(EtcdFault, PreconditionFailed):
    """etcd refused before it changed anything."""


class EtcdNotFound(EtcdFault, NotFound):
    """The member or lease does not exist."""


class EtcdConflict(EtcdFault, Conflict):
    """It exists already."""


class EtcdCorrupt(EtcdFault, Corrupt):
    """The data is damaged."""


class EtcdInvalid(EtcdFault, InvalidInput):
    """The request itself is invalid."""


class EtcdCompacted(EtcdFault, NotFound):
    """The requested history is compacted away: read everything again, and continue from there.

    ``compact_revision`` is the oldest revision that is left, None when etcd did not report it.
    """

    def __init__(self, doing: str, compact_revision: int | None) -> None:
        shown = "" if compact_revision is None else f" up to revision {compact_revision}"
        super().__init__(
            doing,
            f"the history is compacted{shown}",
            "read all keys again and continue from there",
            reason=Reason.COMPACTED,
        )
        self.compact_revision = compact_revision


#: etcd's sentences (api/v3rpc/rpctypes/error.go), without "etcdserver: ". Its codes are no help: 3.5 and 3.6 give
#: different ones for one sentence ("rpc not supported for learner": UNAVAILABLE, FAILED_PRECONDITION). The order
#: matters: a sentence comes before those that it begins with.
_SENTENCES: tuple[tuple[str, Reason], ...] = (
    ("can only promote a learner member which is in sync with leader", Reason.LEARNER_BEHIND),
    ("can only promote a learner member", Reason.NOT_A_LEARNER),
    ("too many learner members", Reason.TOO_MANY_LEARNERS),
    ("rpc not supported for learner", Reason.NOT_FOR_LEARNERS),
    ("re-configuration failed due to not enough started members", Reason.NOT_ENOUGH_STARTED),
    ("unhealthy cluster", Reason.UNHEALTHY),
    ("member not found", Reason.MEMBER_NOT_FOUND),
    ("Peer URLs already exists", Reason.MEMBER_EXISTS),
    ("member ID already exist", Reason.MEMBER_EXISTS),  # the id includes the second in which it was added
    ("not leader", Reason.NOT_LEADER),
    ("bad leader transferee", Reason.BAD_TRANSFEREE),
    ("no leader", Reason.NO_LEADER),
    ("leader changed", Reason.LEADER_CHANGED),
    ("request timed out", Reason.REQUEST_TIMED_OUT),
    ("server stopped", Reason.STOPPED),
    ("mvcc: database space exceeded", Reason.NO_SPACE),
    ("corrupt cluster", Reason.CORRUPT),
    ("mvcc: required revision has been compacted", Reason.COMPACTED),
    ("mvcc: required revision is a future revision", Reason.FUTURE_REVISION),
    ("requested lease not found", Reason.LEASE_NOT_FOUND),
    ("lease already exists", Reason.LEASE_EXISTS),
    ("too many requests", Reason.TOO_MANY_REQUESTS),
    ("permission denied", Reason.DENIED),
    ("user name not found", Reason.DENIED),
    ("user name is empty", Reason.DENIED),
    ("invalid auth token", Reason.DENIED),
    ("authentication is not enabled", Reason.NOT_AUTHENTICATING),
    ("cluster has a downgrade job in progress", Reason.DOWNGRADING),
    ("invalid downgrade target version", Reason.BAD_DOWNGRADE),
)

_CODES: dict[grpc.StatusCode, Reason] = {
    grpc.StatusCode.UNAVAILABLE: Reason.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: Reason.DEADLINE,
    grpc.StatusCode.CANCELLED: Reason.UNREACHABLE,
    grpc.StatusCode.INTERNAL: Reason.UNREACHABLE,  # gRPC's own, of streams that broke; etcd uses it for nothing
    grpc.StatusCode.PERMISSION_DENIED: Reason.DENIED,
    grpc.StatusCode.UNAUTHENTICATED: Reason.DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Reason.TOO_MANY_REQUESTS,
    grpc.StatusCode.DATA_LOSS: Reason.CORRUPT,
    grpc.StatusCode.INVALID_ARGUMENT: Reason.INVALID,
}

#: gRPC's own words, of both sides (core: src/core/ext/filters/message_size).
_OVERSIZED = "message larger than max"

_KINDS: dict[Reason, type[EtcdFault]] = {
    Reason.UNREACHABLE: EtcdUnavailable,
    Reason.DEADLINE: EtcdTimedOut,
    Reason.NO_LEADER: EtcdUnavailable,
    Reason.LEADER_CHANGED: EtcdUnavailable,
    Reason.REQUEST_TIMED_OUT: EtcdTimedOut,
    Reason.STOPPED: EtcdUnavailable,
    Reason.UNHEALTHY: EtcdUnavailable,
    Reason.NOT_FOR_LEARNERS: EtcdUnavailable,
    Reason.MEMBER_NOT_FOUND: EtcdNotFound,
    Reason.MEMBER_EXISTS: EtcdConflict,
    Reason.CORRUPT: EtcdCorrupt,
    Reason.FUTURE_REVISION: EtcdNotFound,
    Reason.LEASE_NOT_FOUND: EtcdNotFound,
    Reason.LEASE_EXISTS: EtcdConflict,
    Reason.TOO_MANY_REQUESTS: EtcdUnavailable,
    Reason.BAD_DOWNGRADE: EtcdInvalid,
    Reason.INVALID: EtcdInvalid,
    Reason.OTHER: EtcdUnavailable,
}

_NEXT: dict[Reason, str] = {
    Reason.UNREACHABLE: "check that the member runs and can be reached",
    Reason.DEADLINE: "check that the member runs and can be reached",
    Reason.NO_LEADER: "a majority of the members must be up",
    Reason.REQUEST_TIMED_OUT: "a majority of the members must be up and fast enough",
    Reason.UNHEALTHY: "all the members that the new quorum needs must have been connected for 5 seconds",
    Reason.NOT_FOR_LEARNERS: "use a voter",
    Reason.TOO_MANY_LEARNERS: "promote or remove one, or raise --max-learners on every member",
    Reason.LEARNER_BEHIND: "wait until it has caught up",
    Reason.NOT_ENOUGH_STARTED: "start the members that were added first",
    Reason.NOT_LEADER: "use the leader",
    Reason.BAD_TRANSFEREE: "name a voter",
    Reason.NO_SPACE: "room is made while the plane is driven: 'quarterdeck status' says what it waits for",
    Reason.CORRUPT: "compare the members with 'quarterdeck etcd check', then 'quarterdeck etcd disarm' turns it off",
    Reason.TOO_LARGE: "ask for fewer keys at once",
    Reason.DENIED: "disable its authentication: 'quarterdeck status' has the command",
}


def reason_of(code: grpc.StatusCode, details: str) -> Reason:
    """The reason in a failed call's code and sentence."""
    sentence = details.removeprefix("etcdserver: ")
    if sentence != details:
        for beginning, reason in _SENTENCES:
            if sentence.startswith(beginning):
                return reason
        if code is grpc.StatusCode.UNAVAILABLE:
            return Reason.OTHER
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _OVERSIZED in details:
        return Reason.TOO_LARGE
    return _CODES.get(code, Reason.OTHER)


def fault(doing: str, reason: Reason, seen: str) -> EtcdFault:
    """The error for a reason."""
    if reason is Reason.COMPACTED:
        return EtcdCompacted(doing, None)
    kind = _KINDS.get(reason, EtcdRefused)
    return kind(doing, seen, _NEXT.get(reason, ""), reason=reason)


async def fault_of_ended(call: grpc.aio.Call, doing: str) -> EtcdFault:
    """The error for a call that ended before its request was written: the call object still has the reason."""
    details = await call.details()
    return fault(doing, reason_of(await call.code(), details), details)


def fault_of(error: grpc.aio.AioRpcError, doing: str) -> EtcdFault:
    """The error for a failed call."""
    details = error.details() or error.code().name
    return fault(doing, reason_of(error.code(), details), _first_line(details))


def _first_line(text: str) -> str:
    return text.splitlines()[0][:300] if text else "no details"
