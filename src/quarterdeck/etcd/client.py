"""The client for one etcd member: one channel, so it is always known which member answered."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from quarterdeck.etcd.calls import Calls, ClientTls
from quarterdeck.etcd.kv import KvService, LeaseService
from quarterdeck.etcd.maintenance import AuthService, ClusterService, MaintenanceService
from quarterdeck.etcd.watch import WatchService


class EtcdMember:
    """The member at ``url`` (https://host:port), over mutual TLS.

    Every call ends within ``deadline`` seconds unless it has another one, and raises EtcdFault (see ``faults``: each is
    also one of the classes of ``quarterdeck.errors``, and has a ``reason``). Create it where an event loop runs, and
    close it; ``async with`` does. Nothing is sent before the first call.
    """

    def __init__(self, url: str, tls: ClientTls, *, deadline: float = 5.0) -> None:
        self._calls = Calls(url, tls, deadline)
        self.url = url
        self.kv = KvService(self._calls)
        self.lease = LeaseService(self._calls)
        self.watch = WatchService(self._calls)
        self.cluster = ClusterService(self._calls)
        self.maintenance = MaintenanceService(self._calls)
        self.auth = AuthService(self._calls)

    async def close(self) -> None:
        """Close the channel. Calls in progress are cancelled."""
        await self._calls.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
