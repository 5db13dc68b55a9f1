"""The membership, asked of one member."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.facts import ListedMember
from quarterdeck.etcd.rpc import rpc_pb2, rpc_pb2_grpc


class Cluster:
    """The Cluster service of one member. Learners serve none of it."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.ClusterStub(calls.channel)

    async def members(self, *, linearizable: bool = True, deadline: float | None = None) -> tuple[ListedMember, ...]:
        """The membership; when ``linearizable``, as a quorum confirms it, else what this member last knew."""
        request = rpc_pb2.MemberListRequest(linearizable=linearizable)
        response = await self._calls.one(
            self._stub.MemberList, request, "listing the members", deadline=deadline, idempotent=True
        )
        return _members(response.members)

    async def add_learner(self, peer_url: str, *, deadline: float | None = None) -> ListedMember:
        """Add a member that only listens. Never tried twice.

        Raises EtcdConflict (MEMBER_EXISTS), EtcdRefused (TOO_MANY_LEARNERS), or EtcdUnavailable (UNHEALTHY:
        too few voters have been connected for 5 s; wait, do not force).
        """
        request = rpc_pb2.MemberAddRequest(peerURLs=[peer_url], isLearner=True)
        response = await self._calls.one(
            self._stub.MemberAdd, request, f"adding the learner {peer_url}", deadline=deadline
        )
        return _member(response.member)

    async def promote(self, member_id: int, *, deadline: float | None = None) -> None:
        """Make a learner a voter. A follower passes it on to the leader.

        Raises EtcdRefused (LEARNER_BEHIND, NOT_A_LEARNER, NOT_ENOUGH_STARTED), EtcdNotFound.
        """
        request = rpc_pb2.MemberPromoteRequest(ID=member_id)
        await self._calls.one(self._stub.MemberPromote, request, f"promoting member {member_id:x}", deadline=deadline)

    async def readdress(self, member_id: int, peer_url: str, *, deadline: float | None = None) -> None:
        """Have all others look for a member at another address.

        Raises EtcdNotFound if it is none, EtcdConflict (MEMBER_EXISTS) if another one is to be found there.
        """
        request = rpc_pb2.MemberUpdateRequest(ID=member_id, peerURLs=[peer_url])
        doing = f"having member {member_id:x} be found at {peer_url}"
        await self._calls.one(self._stub.MemberUpdate, request, doing, deadline=deadline)

    async def remove(self, member_id: int, *, deadline: float | None = None) -> None:
        """Take a member out for good.

        Raises EtcdNotFound if it is none, EtcdUnavailable (UNHEALTHY) or EtcdRefused (NOT_ENOUGH_STARTED) if
        the others seem not to be a quorum.
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
