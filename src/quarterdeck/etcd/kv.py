"""Keys, values and leases of one member: reads, writes, transactions, compaction. Times to live: whole seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import grpc

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.facts import KeyValue, LeaseGrant, LeaseLife, RangeResult, TxnResult
from quarterdeck.etcd.faults import EtcdNotFound, Reason, fault, fault_of, fault_of_ended
from quarterdeck.etcd.rpc import kv_pb2, rpc_pb2, rpc_pb2_grpc


class Field(Enum):
    """The compared field of a key. A key that does not exist has 0 in all of these."""

    VERSION = rpc_pb2.Compare.VERSION
    CREATE_REVISION = rpc_pb2.Compare.CREATE
    MOD_REVISION = rpc_pb2.Compare.MOD
    LEASE = rpc_pb2.Compare.LEASE


class Relation(Enum):
    """The required relation of the key's field to the given number."""

    EQUAL = rpc_pb2.Compare.EQUAL
    NOT_EQUAL = rpc_pb2.Compare.NOT_EQUAL
    GREATER = rpc_pb2.Compare.GREATER
    LESS = rpc_pb2.Compare.LESS


@dataclass(frozen=True, slots=True)
class Compare:
    """A condition on a number of a key."""

    key: bytes
    field: Field
    relation: Relation
    number: int


@dataclass(frozen=True, slots=True)
class CompareValue:
    """A condition on a key's value. It fails for a key that does not exist."""

    key: bytes
    relation: Relation
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Get:
    """Read the keys from ``key`` up to and without ``range_end``, or only ``key`` when that is empty.

    ``revision`` 0 is the newest; ``limit`` 0 is none. ``serializable`` reads what this member has applied, without a
    quorum: possibly stale, and the only read that a learner serves.
    """

    key: bytes
    range_end: bytes = b""
    revision: int = 0
    limit: int = 0
    serializable: bool = False
    keys_only: bool = False
    count_only: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Set a key."""

    key: bytes
    value: bytes
    lease: int = 0


@dataclass(frozen=True, slots=True)
class DeleteRange:
    """Delete the keys from ``key`` up to and without ``range_end``, or only ``key`` when that is empty."""

    key: bytes
    range_end: bytes = b""


Operation: TypeAlias = Get | Put | DeleteRange


def prefix_end(prefix: bytes) -> bytes:
    """The range end for all keys that begin with ``prefix``. An empty prefix is all keys, from b"\\0"."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else b"\0"


class KvService:
    """The KV service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.KVStub(calls.channel)

    async def get(self, what: Get, *, deadline: float | None = None) -> RangeResult:
        """Read. Raises EtcdCompacted for a compacted revision."""
        return _range_result(
            await self._calls.one(self._stub.Range, _range(what), "reading keys", deadline=deadline, idempotent=True)
        )

    async def put(self, what: Put, *, deadline: float | None = None) -> int:
        """Write; returns the revision of the write. Never retried."""
        response = await self._calls.one(self._stub.Put, _put(what), "writing a key", deadline=deadline)
        return response.header.revision

    async def delete(self, what: DeleteRange, *, deadline: float | None = None) -> int:
        """Delete; returns the number of deleted keys. Never retried."""
        response = await self._calls.one(self._stub.DeleteRange, _delete(what), "deleting keys", deadline=deadline)
        return response.deleted

    async def txn(
        self,
        conditions: Sequence[Compare | CompareValue],
        success: Sequence[Operation],
        failure: Sequence[Operation] = (),
        *,
        deadline: float | None = None,
    ) -> TxnResult:
        """Do all of ``success`` if all ``conditions`` hold, else all of ``failure``. Never retried."""
        request = rpc_pb2.TxnRequest(
            compare=[_compare(condition) for condition in conditions],
            success=[_operation(operation) for operation in success],
            failure=[_operation(operation) for operation in failure],
        )
        response = await self._calls.one(self._stub.Txn, request, "running a transaction", deadline=deadline)
        return TxnResult(
            revision=response.header.revision,
            succeeded=response.succeeded,
            answers=tuple(_answer(answer) for answer in response.responses),
        )

    async def compact(self, revision: int, *, physical: bool = False, deadline: float | None = None) -> None:
        """Discard the history before ``revision``; with ``physical`` return when the space is free.

        Raises EtcdCompacted if it was compacted that far already.
        """
        request = rpc_pb2.CompactionRequest(revision=revision, physical=physical)
        await self._calls.one(self._stub.Compact, request, f"compacting to revision {revision}", deadline=deadline)


def key_value(message: kv_pb2.KeyValue) -> KeyValue:
    """A key from the wire."""
    return KeyValue(
        key=message.key,
        value=message.value,
        create_revision=message.create_revision,
        mod_revision=message.mod_revision,
        version=message.version,
        lease=message.lease,
    )


def _range(what: Get) -> rpc_pb2.RangeRequest:
    return rpc_pb2.RangeRequest(
        key=what.key,
        range_end=what.range_end,
        limit=what.limit,
        revision=what.revision,
        serializable=what.serializable,
        keys_only=what.keys_only,
        count_only=what.count_only,
    )


def _put(what: Put) -> rpc_pb2.PutRequest:
    return rpc_pb2.PutRequest(key=what.key, value=what.value, lease=what.lease)


def _delete(what: DeleteRange) -> rpc_pb2.DeleteRangeRequest:
    return rpc_pb2.DeleteRangeRequest(key=what.key, range_end=what.range_end)


def _operation(what: Operation) -> rpc_pb2.RequestOp:
    match what:
        case Get():
            return rpc_pb2.RequestOp(request_range=_range(what))
        case Put():
            return rpc_pb2.RequestOp(request_put=_put(what))
        case DeleteRange():
            return rpc_pb2.RequestOp(request_delete_range=_delete(what))


def _compare(condition: Compare | CompareValue) -> rpc_pb2.Compare:
    result = condition.relation.value
    if isinstance(condition, CompareValue):
        return rpc_pb2.Compare(result=result, target=rpc_pb2.Compare.VALUE, key=condition.key, value=condition.value)
    message = rpc_pb2.Compare(result=result, target=condition.field.value, key=condition.key)
    match condition.field:
        case Field.VERSION:
            message.version = condition.number
        case Field.CREATE_REVISION:
            message.create_revision = condition.number
        case Field.MOD_REVISION:
            message.mod_revision = condition.number
        case Field.LEASE:
            message.lease = condition.number
    return message


def _range_result(response: rpc_pb2.RangeResponse) -> RangeResult:
    return RangeResult(
        revision=response.header.revision,
        items=tuple(key_value(item) for item in response.kvs),
        count=response.count,
        more=response.more,
    )


def _answer(response: rpc_pb2.ResponseOp) -> RangeResult | int | None:
    if response.HasField("response_range"):
        return _range_result(response.response_range)
    if response.HasField("response_delete_range"):
        return response.response_delete_range.deleted
    return None


#: How many leases are read at the same time.
_LEASES_AT_ONCE = 16

#: grpc.aio reports this instead of the status with which a call ended while a request was written to it.
_WRITTEN_TOO_LATE = "Internal error from Core"


class LeaseService:
    """The Lease service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.LeaseStub(calls.channel)

    async def grant(self, ttl: int, *, lease_id: int = 0, deadline: float | None = None) -> LeaseGrant:
        """A new lease; etcd chooses the id unless one is given. Raises EtcdConflict if that one exists."""
        request = rpc_pb2.LeaseGrantRequest(TTL=ttl, ID=lease_id)
        response = await self._calls.one(self._stub.LeaseGrant, request, "granting a lease", deadline=deadline)
        return LeaseGrant(response.ID, response.TTL)

    async def revoke(self, lease_id: int, *, deadline: float | None = None) -> None:
        """End a lease and delete its keys. Raises EtcdNotFound if there is none."""
        request = rpc_pb2.LeaseRevokeRequest(ID=lease_id)
        await self._calls.one(self._stub.LeaseRevoke, request, f"revoking lease {lease_id:x}", deadline=deadline)

    async def keep_alive(self, lease_id: int, *, deadline: float | None = None) -> int:
        """Refresh a lease once; returns its remaining seconds. Raises EtcdNotFound if it has expired."""
        doing = self._calls.doing(f"keeping lease {lease_id:x} alive")
        loop = asyncio.get_running_loop()
        until = loop.time() + (self._calls.deadline if deadline is None else deadline)
        response = None
        while response is None:
            response = await self._refreshed(lease_id, until - loop.time(), doing)
        if response.TTL <= 0:  # etcd's sign that it has expired
            raise fault(doing, Reason.LEASE_NOT_FOUND, "the lease has expired")
        return response.TTL

    async def _refreshed(self, lease_id: int, timeout: float, doing: str) -> rpc_pb2.LeaseKeepAliveResponse | None:
        """One try. None when the member ended the stream just before the request was written: then its status is lost
        in the library.
        """
        call = self._stub.LeaseKeepAlive(timeout=timeout)
        try:
            await call.write(rpc_pb2.LeaseKeepAliveRequest(ID=lease_id))
            response = await call.read()
        except grpc.aio.AioRpcError as error:
            if error.details() == _WRITTEN_TOO_LATE:
                return None
            raise fault_of(error, doing) from error
        except asyncio.InvalidStateError as error:  # it had ended before the request was written
            raise await fault_of_ended(call, doing) from error
        finally:
            call.cancel()
        if not isinstance(response, rpc_pb2.LeaseKeepAliveResponse):  # grpc.aio.EOF
            raise fault(doing, Reason.UNREACHABLE, "the stream ended without an answer")
        return response

    async def life(self, lease_id: int, *, keys: bool = False, deadline: float | None = None) -> LeaseLife:
        """The rest of a lease. Raises EtcdNotFound if it has expired."""
        doing = f"reading lease {lease_id:x}"
        request = rpc_pb2.LeaseTimeToLiveRequest(ID=lease_id, keys=keys)
        response = await self._calls.one(self._stub.LeaseTimeToLive, request, doing, deadline=deadline, idempotent=True)
        if response.TTL <= 0:  # etcd answers -1 for a lease that it does not know
            raise fault(self._calls.doing(doing), Reason.LEASE_NOT_FOUND, "the lease has expired")
        return LeaseLife(id=response.ID, ttl=response.TTL, granted_ttl=response.grantedTTL, keys=tuple(response.keys))

    async def ids(self, *, deadline: float | None = None) -> tuple[int, ...]:
        """The ids of all leases that the member has."""
        request, doing = rpc_pb2.LeaseLeasesRequest(), "listing the leases"
        response = await self._calls.one(self._stub.LeaseLeases, request, doing, deadline=deadline, idempotent=True)
        return tuple(each.ID for each in response.leases)

    async def lives(self, ids: Collection[int], *, deadline: float | None = None) -> tuple[LeaseLife, ...]:
        """The rest of each of these leases, without those that have expired. ``deadline`` is that of each call."""
        room = asyncio.Semaphore(_LEASES_AT_ONCE)

        async def one(lease_id: int) -> LeaseLife | None:
            async with room:
                try:
                    return await self.life(lease_id, deadline=deadline)
                except EtcdNotFound:
                    return None

        return tuple(each for each in await asyncio.gather(*map(one, ids)) if each is not None)
