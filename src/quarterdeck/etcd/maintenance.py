"""What is asked of, or done to, one member itself."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.facts import Alarm, AlarmKind, KeySpaceHash, MemberStatus
from quarterdeck.etcd.faults import EtcdCorrupt, Reason
from quarterdeck.etcd.rpc import rpc_pb2, rpc_pb2_grpc

_SHA256_BYTES = 32


class Maintenance:
    """The Maintenance service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.MaintenanceStub(calls.channel)

    async def status(self, *, deadline: float | None = None) -> MemberStatus:
        """What the member says of itself. Learners, and members without a quorum, answer too."""
        response = await self._calls.one(
            self._stub.Status,
            rpc_pb2.StatusRequest(),
            "reading the status",
            deadline=deadline,
            idempotent=True,
        )
        return MemberStatus(
            cluster_id=response.header.cluster_id,
            member_id=response.header.member_id,
            leader_id=response.leader,
            raft_term=response.raftTerm,
            raft_index=response.raftIndex,
            raft_applied_index=response.raftAppliedIndex,
            is_learner=response.isLearner,
            revision=response.header.revision,
            db_size=response.dbSize,
            db_size_in_use=response.dbSizeInUse,
            db_size_quota=response.dbSizeQuota,
            version=response.version,
            errors=tuple(response.errors),
        )

    async def move_leader(self, to_id: int, *, deadline: float | None = None) -> None:
        """Hand leadership over; only the leader does. Raises EtcdRefused (NOT_LEADER, BAD_TRANSFEREE)."""
        request = rpc_pb2.MoveLeaderRequest(targetID=to_id)
        doing = f"moving leadership to {to_id:x}"
        await self._calls.one(self._stub.MoveLeader, request, doing, deadline=deadline)

    async def alarms(self, *, deadline: float | None = None) -> tuple[Alarm, ...]:
        """All alarms of the cluster that are on."""
        request = rpc_pb2.AlarmRequest(action=rpc_pb2.AlarmRequest.GET)
        response = await self._calls.one(
            self._stub.Alarm, request, "reading the alarms", deadline=deadline, idempotent=True
        )
        return tuple(Alarm(AlarmKind(rpc_pb2.AlarmType.Name(alarm.alarm)), alarm.memberID) for alarm in response.alarms)

    async def raise_alarm(self, alarm: Alarm, *, deadline: float | None = None) -> None:
        """Turn an alarm on, as etcd itself does when it meets the trouble (for drills)."""
        await self._alarm(rpc_pb2.AlarmRequest.ACTIVATE, alarm, "raising", deadline)

    async def disarm(self, alarm: Alarm, *, deadline: float | None = None) -> None:
        """Turn an alarm off, once its cause is gone."""
        await self._alarm(rpc_pb2.AlarmRequest.DEACTIVATE, alarm, "disarming", deadline)

    async def defragment(self, *, deadline: float = 300.0) -> None:
        """Give freed space back to the file system. The member serves nothing while it does."""
        await self._calls.one(self._stub.Defragment, rpc_pb2.DefragmentRequest(), "defragmenting", deadline=deadline)

    async def hash_keys(self, *, revision: int = 0, deadline: float = 60.0) -> KeySpaceHash:
        """The hash of all keys up to ``revision`` (0: the newest)."""
        request = rpc_pb2.HashKVRequest(revision=revision)
        response = await self._calls.one(
            self._stub.HashKV, request, "hashing all keys", deadline=deadline, idempotent=True
        )
        return KeySpaceHash(
            hash=response.hash,
            hash_revision=response.hash_revision,
            compact_revision=response.compact_revision,
            revision=response.header.revision,
        )

    async def snapshot(self, *, deadline: float = 3600.0) -> AsyncGenerator[bytes, None]:
        """The member's database in pieces, its SHA-256 as the last 32 bytes: the file that etcdutl restores.

        Raises EtcdCorrupt instead of the last piece when that hash is not the data's, or the stream was cut.
        """
        digest = hashlib.sha256()
        size = 0
        held = b""  # what may turn out to be the hash
        doing = "taking a snapshot"
        async for part in self._calls.stream(self._stub.Snapshot, rpc_pb2.SnapshotRequest(), doing, deadline=deadline):
            held += part.blob
            data, held = held[:-_SHA256_BYTES], held[-_SHA256_BYTES:]
            if data:
                digest.update(data)
                size += len(data)
                yield data
        if size == 0 or held != digest.digest():
            raise EtcdCorrupt(
                self._calls.doing(doing),
                f"the {size} bytes that came do not have the hash that came with them",
                "take it again",
                reason=Reason.CORRUPT,
            )
        yield held

    async def _alarm(
        self,
        action: rpc_pb2.AlarmRequest.AlarmAction.ValueType,
        alarm: Alarm,
        verb: str,
        deadline: float | None,
    ) -> None:
        request = rpc_pb2.AlarmRequest(
            action=action, memberID=alarm.member_id, alarm=rpc_pb2.AlarmType.Value(alarm.kind.value)
        )
        doing = f"{verb} the alarm {alarm.kind}"
        await self._calls.one(self._stub.Alarm, request, doing, deadline=deadline)
