"""Operations on one member: its membership, its database, and etcd's authentication."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.facts import Alarm, AlarmKind, KeySpaceHash, ListedMember, MemberReport
from quarterdeck.etcd.faults import EtcdCorrupt, EtcdRefused, Reason
from quarterdeck.etcd.rpc import rpc_pb2, rpc_pb2_grpc
from quarterdeck.model.membership import EtcdMinor

_SHA256_BYTES = 32


def minor_of(version: str) -> EtcdMinor:
    """The minor version in a version that etcd reports: ``3.6.0``, or ``3.6``."""
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


class MaintenanceService:
    """The Maintenance service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.MaintenanceStub(calls.channel)

    async def status(self, *, deadline: float | None = None) -> MemberReport:
        """The status of the member. Learners, and members without a quorum, answer too."""
        response = await self._calls.one(
            self._stub.Status,
            rpc_pb2.StatusRequest(),
            "reading the status",
            deadline=deadline,
            idempotent=True,
        )
        return MemberReport(
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
            storage=minor_of(response.storageVersion) if response.storageVersion else None,
            downgrade=minor_of(response.downgradeInfo.targetVersion) if response.downgradeInfo.enabled else None,
        )

    async def enable_downgrade(self, target: EtcdMinor, *, deadline: float | None = None) -> None:
        """Have the cluster work as the former minor version. etcd itself checks first whether it can (VALIDATE).

        Raises EtcdRefused (DOWNGRADING), EtcdInvalid (BAD_DOWNGRADE).
        """
        version = f"{target[0]}.{target[1]}"
        request = rpc_pb2.DowngradeRequest(action=rpc_pb2.DowngradeRequest.ENABLE, version=version)
        doing = f"enabling the downgrade of etcd to {version}"
        await self._calls.one(self._stub.Downgrade, request, doing, deadline=deadline)

    async def cancel_downgrade(self, *, deadline: float | None = None) -> None:
        """End a downgrade; no error if there is none."""
        request = rpc_pb2.DowngradeRequest(action=rpc_pb2.DowngradeRequest.CANCEL)
        await self._calls.one(self._stub.Downgrade, request, "cancelling the downgrade of etcd", deadline=deadline)

    async def move_leader(self, to_id: int, *, deadline: float | None = None) -> None:
        """Move the leadership; only the leader does. Raises EtcdRefused (NOT_LEADER, BAD_TRANSFEREE)."""
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
        """Turn an alarm on, as etcd itself does when it detects the problem (for drills)."""
        await self._alarm(rpc_pb2.AlarmRequest.ACTIVATE, alarm, "raising", deadline)

    async def disarm(self, alarm: Alarm, *, deadline: float | None = None) -> None:
        """Turn an alarm off, once its cause is removed."""
        await self._alarm(rpc_pb2.AlarmRequest.DEACTIVATE, alarm, "disarming", deadline)

    async def defragment(self, *, deadline: float = 300.0) -> None:
        """Return free space to the file system. The member serves nothing during that time."""
        await self._calls.one(self._stub.Defragment, rpc_pb2.DefragmentRequest(), "defragmenting", deadline=deadline)

    async def flush(self, *, deadline: float) -> None:
        """Write everything that the member has applied to its database. etcd has no call for that alone: it does so
        before it sends the first part of a snapshot (etcd: storage/backend, Snapshot).
        """
        async with aclosing(self.snapshot(deadline=deadline)) as parts:
            await anext(parts)

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
        held = b""  # this may be the hash
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
                f"the {size} bytes received do not match the hash received with them",
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


#: The user with all rights. etcd enables authentication only if it exists, and takes the common name of a client
#: certificate as the user's name (etcd: server/auth/store.go, AuthInfoFromTLS).
ROOT = "root"


class AuthService:
    """The Auth service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.AuthStub(calls.channel)

    async def disable(self, *, deadline: float | None = None) -> None:
        """Disable authentication; no error if it is disabled. Raises EtcdRefused (DENIED) for all but ``ROOT``."""
        request, doing = rpc_pb2.AuthDisableRequest(), "disabling authentication"
        try:
            await self._calls.one(self._stub.AuthDisable, request, doing, deadline=deadline)
        except EtcdRefused as error:
            if error.reason is not Reason.NOT_AUTHENTICATING:
                raise


class ClusterService:
    """The Cluster service of one member. Learners serve none of it."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.ClusterStub(calls.channel)

    async def members(self, *, linearizable: bool = True, deadline: float | None = None) -> tuple[ListedMember, ...]:
        """The membership; when ``linearizable``, as a quorum confirms it, else as this member last knew it."""
        request = rpc_pb2.MemberListRequest(linearizable=linearizable)
        response = await self._calls.one(
            self._stub.MemberList, request, "listing the members", deadline=deadline, idempotent=True
        )
        return _members(response.members)

    async def add_learner(self, peer_url: str, *, deadline: float | None = None) -> ListedMember:
        """Add a learner. Never retried.

        Raises EtcdConflict (MEMBER_EXISTS), EtcdRefused (TOO_MANY_LEARNERS), or EtcdUnavailable (UNHEALTHY: too few
        voters have been connected for 5 s; wait, do not force).
        """
        request = rpc_pb2.MemberAddRequest(peerURLs=[peer_url], isLearner=True)
        response = await self._calls.one(
            self._stub.MemberAdd, request, f"adding the learner {peer_url}", deadline=deadline
        )
        return _member(response.member)

    async def promote(self, member_id: int, *, deadline: float | None = None) -> None:
        """Make a learner a voter. A follower forwards it to the leader.

        Raises EtcdRefused (LEARNER_BEHIND, NOT_A_LEARNER, NOT_ENOUGH_STARTED), EtcdNotFound.
        """
        request = rpc_pb2.MemberPromoteRequest(ID=member_id)
        await self._calls.one(self._stub.MemberPromote, request, f"promoting member {member_id:x}", deadline=deadline)

    async def readdress(self, member_id: int, peer_url: str, *, deadline: float | None = None) -> None:
        """Change the address at which all others reach a member.

        Raises EtcdNotFound if it does not exist, EtcdConflict (MEMBER_EXISTS) if another one has that address.
        """
        request = rpc_pb2.MemberUpdateRequest(ID=member_id, peerURLs=[peer_url])
        doing = f"changing the peer URL of member {member_id:x} to {peer_url}"
        await self._calls.one(self._stub.MemberUpdate, request, doing, deadline=deadline)

    async def remove(self, member_id: int, *, deadline: float | None = None) -> None:
        """Remove a member for good.

        Raises EtcdNotFound if it does not exist, EtcdUnavailable (UNHEALTHY) or EtcdRefused (NOT_ENOUGH_STARTED) if the
        others seem not to be a quorum.
        """
        request = rpc_pb2.MemberRemoveRequest(ID=member_id)
        await self._calls.one(self._stub.MemberRemove, request, f"removing member {member_id:x}", deadline=deadline)


def _member(message: rpc_pb2.Member) -> ListedMember:
    return ListedMember(
        id=message.ID,
        name=message.name,
        peer_urls=tuple(message.peerURLs),
        client_urls=tuple(message.clientURLs),
        is_learner=message.isLearner,
    )


def _members(messages: Iterable[rpc_pb2.Member]) -> tuple[ListedMember, ...]:
    return tuple(_member(message) for message in messages)
