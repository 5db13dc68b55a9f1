"""Every failure of a call is an error that says which, of the class that the rest of the program knows."""

from __future__ import annotations

import grpc
import pytest
from support.golden import Golden

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
from quarterdeck.etcd.faults import EtcdFault, Reason, fault_of

Code = grpc.StatusCode


def failed(code: grpc.StatusCode, details: str) -> EtcdFault:
    nothing = grpc.aio.Metadata()
    return fault_of(grpc.aio.AioRpcError(code, nothing, nothing, details), "adding a learner")


@pytest.mark.parametrize(
    ("code", "details", "kind", "reason"),
    [
        (Code.UNAVAILABLE, "failed to connect to all addresses", Unavailable, Reason.UNREACHABLE),
        (Code.DEADLINE_EXCEEDED, "Deadline Exceeded", TimedOut, Reason.DEADLINE),
        (Code.UNAVAILABLE, "etcdserver: no leader", Unavailable, Reason.NO_LEADER),
        (Code.UNAVAILABLE, "etcdserver: request timed out", TimedOut, Reason.REQUEST_TIMED_OUT),
        (
            Code.UNKNOWN,
            "etcdserver: request timed out, leader transfer took too long",
            TimedOut,
            Reason.REQUEST_TIMED_OUT,
        ),
        (Code.UNAVAILABLE, "etcdserver: unhealthy cluster", Unavailable, Reason.UNHEALTHY),
        # etcd 3.5 and 3.6 give this sentence with different codes.
        (Code.UNAVAILABLE, "etcdserver: rpc not supported for learner", Unavailable, Reason.NOT_FOR_LEARNERS),
        (
            Code.FAILED_PRECONDITION,
            "etcdserver: rpc not supported for learner",
            Unavailable,
            Reason.NOT_FOR_LEARNERS,
        ),
        (
            Code.FAILED_PRECONDITION,
            "etcdserver: can only promote a learner member which is in sync with leader",
            PreconditionFailed,
            Reason.LEARNER_BEHIND,
        ),
        (
            Code.FAILED_PRECONDITION,
            "etcdserver: can only promote a learner member",
            PreconditionFailed,
            Reason.NOT_A_LEARNER,
        ),
        (
            Code.FAILED_PRECONDITION,
            "etcdserver: too many learner members in cluster",
            PreconditionFailed,
            Reason.TOO_MANY_LEARNERS,
        ),
        (Code.PERMISSION_DENIED, "etcdserver: permission denied", PreconditionFailed, Reason.DENIED),
        (Code.FAILED_PRECONDITION, "etcdserver: user name not found", PreconditionFailed, Reason.DENIED),
        (Code.INVALID_ARGUMENT, "etcdserver: user name is empty", PreconditionFailed, Reason.DENIED),
        (Code.NOT_FOUND, "etcdserver: member not found", NotFound, Reason.MEMBER_NOT_FOUND),
        (Code.FAILED_PRECONDITION, "etcdserver: Peer URLs already exists", Conflict, Reason.MEMBER_EXISTS),
        (Code.FAILED_PRECONDITION, "etcdserver: member ID already exist", Conflict, Reason.MEMBER_EXISTS),
        (Code.FAILED_PRECONDITION, "etcdserver: not leader", PreconditionFailed, Reason.NOT_LEADER),
        (
            Code.RESOURCE_EXHAUSTED,
            "etcdserver: mvcc: database space exceeded",
            PreconditionFailed,
            Reason.NO_SPACE,
        ),
        (
            Code.RESOURCE_EXHAUSTED,
            "Stream removed (CLIENT: Received message larger than max (10485988 vs. 8388608))",
            PreconditionFailed,
            Reason.TOO_LARGE,
        ),
        (Code.RESOURCE_EXHAUSTED, "grpc: the server is busy", Unavailable, Reason.TOO_MANY_REQUESTS),
        (Code.DATA_LOSS, "etcdserver: corrupt cluster", Corrupt, Reason.CORRUPT),
        (
            Code.OUT_OF_RANGE,
            "etcdserver: mvcc: required revision has been compacted",
            NotFound,
            Reason.COMPACTED,
        ),
        (Code.INVALID_ARGUMENT, "etcdserver: key is not provided", InvalidInput, Reason.INVALID),
        (Code.UNKNOWN, "raft: stopped", Unavailable, Reason.OTHER),
        (Code.UNAVAILABLE, "etcdserver: something new", Unavailable, Reason.OTHER),
    ],
)
def test_each_answer_of_etcd_is_recognised(
    code: grpc.StatusCode, details: str, kind: type[QuarterdeckError], reason: Reason
) -> None:
    error = failed(code, details)
    assert isinstance(error, kind)
    assert error.reason is reason
    assert error.exit_code == kind.exit_code


def test_an_error_says_what_was_done_what_was_seen_and_what_to_do(golden: Golden) -> None:
    error = failed(Code.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded\nand more")
    golden(str(error))


def test_no_error_claims_that_trying_again_is_safe_when_etcd_refused() -> None:
    refusals = ("too many learner members in cluster", "not leader", "bad leader transferee")
    assert not any(
        isinstance(failed(Code.FAILED_PRECONDITION, f"etcdserver: {each}"), Unavailable) for each in refusals
    )
