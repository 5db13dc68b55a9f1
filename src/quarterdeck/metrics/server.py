"""The metrics, and the health of the process, over HTTP: for Prometheus, and for a supervisor that restarts it."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus

import h11
from prometheus_client import CONTENT_TYPE_LATEST
from typing_extensions import override

from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.http_server import read_request
from quarterdeck.metrics.merge import merged
from quarterdeck.metrics.metrics import Metrics
from quarterdeck.metrics.operation_counter import OperationCounter
from quarterdeck.stores.port import Store

#: Seconds that a client has for its request, and for reading the answer.
_PATIENCE = 10.0
_MOST_CLIENTS = 32
_LONGEST_REQUEST = 16 * 1024
_TEXT = "text/plain; charset=utf-8"
HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen on. Port 0: any that is free."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """``ADDRESS:PORT``, ``[ADDRESS]:PORT``, ``:PORT`` or ``PORT``: without an address only this host can reach it.

        Raises InvalidInput.
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or HERE
        try:
            ipaddress.ip_address(host)
            found = cls(host, int(port) if port.isascii() and port.isdigit() else -1)
        except ValueError:
            found = cls(host, -1)
        if not 0 <= found.port <= 65_535:
            step = f"give an address and a port, such as {HERE}:9477 or [::1]:9477"
            raise InvalidInput("reading the metrics address", f"{text!r} is not an address and a port", step)
        return found

    @override
    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def _none() -> tuple[bytes, ...]:
    return ()


@asynccontextmanager
async def serve_metrics(
    metrics: Metrics,
    address: ListenAddress,
    *,
    store: Store,
    ready: Callable[[], str] = lambda: "",
    others: Callable[[], Awaitable[Sequence[bytes]]] = _none,
) -> AsyncIterator[ListenAddress]:
    """Serve them for the block; yields the address. ``store`` has the operations. ``ready``: why this process is not
    ready ("": it is). ``others``: the metrics of other processes.

    Raises PreconditionFailed when nothing can listen there.
    """
    teller = _Teller(metrics, OperationCounter(store=store, metrics=metrics), ready, others)
    try:
        server = await asyncio.start_server(teller.serve, address.host, address.port)
    except OSError as error:
        step = "stop what listens there, or give another address with --metrics"
        raise PreconditionFailed(f"serving metrics at {address}", error.strerror or str(error), step) from error
    try:
        async with server:
            yield ListenAddress(*server.sockets[0].getsockname()[:2])
    finally:
        await teller.close()


@dataclass(frozen=True, slots=True)
class _Reply:
    status: HTTPStatus
    body: bytes
    content: str = _TEXT


class _Teller:
    """Answers one request of each connection."""

    def __init__(
        self,
        metrics: Metrics,
        asked: OperationCounter,
        ready: Callable[[], str],
        others: Callable[[], Awaitable[Sequence[bytes]]],
    ) -> None:
        self._metrics = metrics
        self._asked = asked
        self._ready = ready
        self._others = others
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection. An error ends it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, TimeoutError, h11.RemoteProtocolError):  # the client's own problem
                if len(self._tasks) <= _MOST_CLIENTS:
                    async with asyncio.timeout(_PATIENCE):
                        await self._answer(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def close(self) -> None:
        """End all connections."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_REQUEST)
        request = await read_request(connection, reader)
        reply = await self._reply(request)
        headers = [
            ("content-type", reply.content),
            ("content-length", str(len(reply.body))),
            ("connection", "close"),
        ]
        writer.write(connection.send(h11.Response(status_code=reply.status, headers=headers)))
        if request.method != b"HEAD":
            writer.write(connection.send(h11.Data(data=reply.body)))
        writer.write(connection.send(h11.EndOfMessage()))
        await writer.drain()

    async def _reply(self, request: h11.Request) -> _Reply:
        if request.method not in (b"GET", b"HEAD"):
            return _Reply(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n")
        match request.target.partition(b"?")[0]:
            case b"/metrics":
                others, _ = await asyncio.gather(self._others(), self._asked.count())
                own = self._metrics.text()
                return _Reply(HTTPStatus.OK, merged((own, *others)) if others else own, CONTENT_TYPE_LATEST)
            case b"/healthz":
                return _Reply(HTTPStatus.OK, b"ok\n")
            case b"/readyz":
                why = self._ready()
                status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
                return _Reply(status, f"{why or 'ok'}\n".encode())
            case _:
                return _Reply(HTTPStatus.NOT_FOUND, b"there are /metrics, /healthz and /readyz\n")
