"""Leases of one member. Times to live are in whole seconds."""

from __future__ import annotations

import asyncio

import grpc

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.facts import LeaseGrant, LeaseLife
from quarterdeck.etcd.faults import Reason, fault, fault_of, fault_of_ended
from quarterdeck.etcd.rpc import rpc_pb2, rpc_pb2_grpc

#: What grpc.aio says in place of the status with which a call ended while a request was written to it.
_WRITTEN_TOO_LATE = "Internal error from Core"


class Lease:
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
        """Refresh a lease once; the seconds that it now has. Raises EtcdNotFound if it is gone."""
        doing = self._calls.doing(f"keeping lease {lease_id:x} alive")
        loop = asyncio.get_running_loop()
        until = loop.time() + (self._calls.deadline if deadline is None else deadline)
        response = None
        while response is None:
            response = await self._refreshed(lease_id, until - loop.time(), doing)
        if response.TTL <= 0:  # etcd's way to say that it has expired
            raise fault(doing, Reason.LEASE_NOT_FOUND, "the lease is gone")
        return response.TTL

    async def _refreshed(self, lease_id: int, timeout: float, doing: str) -> rpc_pb2.LeaseKeepAliveResponse | None:
        """One try. None when the member ended the stream just before the request was written: then what it said
        is lost in the library.
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
        """What is left of a lease. Raises EtcdNotFound if it is gone."""
        doing = f"reading lease {lease_id:x}"
        request = rpc_pb2.LeaseTimeToLiveRequest(ID=lease_id, keys=keys)
        response = await self._calls.one(self._stub.LeaseTimeToLive, request, doing, deadline=deadline, idempotent=True)
        if response.TTL <= 0:  # etcd answers -1 for a lease that it does not know
            raise fault(self._calls.doing(doing), Reason.LEASE_NOT_FOUND, "the lease is gone")
        return LeaseLife(id=response.ID, ttl=response.TTL, granted_ttl=response.grantedTTL, keys=tuple(response.keys))
