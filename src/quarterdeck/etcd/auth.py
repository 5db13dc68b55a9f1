"""etcd's own authentication, which quarterdeck never enables: client certificates alone tell who may ask."""

from __future__ import annotations

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.faults import EtcdRefused, Reason
from quarterdeck.etcd.rpc import rpc_pb2, rpc_pb2_grpc

#: The user that may do everything. etcd enables authentication only if it exists, and takes the common name of a client
#: certificate for a user's name (etcd: server/auth/store.go, AuthInfoFromTLS).
ROOT = "root"


class Auth:
    """The Auth service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.AuthStub(calls.channel)

    async def disable(self, *, deadline: float | None = None) -> None:
        """Turn authentication off; fine if it is off. Raises EtcdRefused (DENIED) for all but ``ROOT``."""
        request, doing = rpc_pb2.AuthDisableRequest(), "disabling authentication"
        try:
            await self._calls.one(self._stub.AuthDisable, request, doing, deadline=deadline)
        except EtcdRefused as error:
            if error.reason is not Reason.NOT_AUTHENTICATING:
                raise
