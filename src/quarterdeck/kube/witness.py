"""Connections to an apiserver that are like its clients', to see when it has announced its shutdown to these."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions

from quarterdeck.kube.port import Address

#: Seconds for a connection to open, and for its first answer.
_DEADLINE = 1.0
_PIECE = 16 * 1024
#: An object that need not exist: a watch of it stays open, and costs nothing.
_WATCHED = "/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%3Dquarterdeck-witness"


class ConnectionWitness:
    """What connections of a client's kinds have learned so far."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Task[None]] = []

    @property
    def informed(self) -> bool:
        """Whether all of them learned that the apiserver shuts down: the idle one was closed, the one with a request in
        flight over HTTP/2 got its GOAWAY. True too for an apiserver that did not answer.
        """
        return all(each.done() for each in self._waiting)

    def wait(self, notice: Coroutine[Any, Any, None]) -> None:
        """One more connection, on which ``notice`` waits."""
        self._waiting.append(asyncio.create_task(notice))

    async def end(self) -> None:
        """Stop waiting."""
        for each in self._waiting:
            each.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)


@asynccontextmanager
async def witness(
    apiserver: Address, tls: ssl.SSLContext, tls_http2: ssl.SSLContext
) -> AsyncIterator[ConnectionWitness]:
    """Within the block two connections stand to an apiserver, if it answers.

    One is idle (HTTP/1.1), the other has a watch open (HTTP/2). An apiserver that shuts down closes its listener first,
    then the idle connections, and sends GOAWAY to all others (net/http: Server.Shutdown); these are different moments
    on a busy machine.
    """
    async with AsyncExitStack() as stack:
        made = ConnectionWitness()
        stack.push_async_callback(made.end)
        for context, opened in ((tls, _idle), (tls_http2, _watching)):
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, h2.exceptions.H2Error):
                async with asyncio.timeout(_DEADLINE):
                    reader, writer = await asyncio.open_connection(apiserver.host, apiserver.port, ssl=context)
                    stack.callback(
                        _drop, writer
                    )  # this also keeps it from being garbage-collected, which would close it
                    made.wait(await opened(reader, writer, apiserver))
        yield made


def _drop(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def _idle(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, apiserver: Address
) -> Coroutine[Any, Any, None]:
    writer.write(f"GET /livez/ping HTTP/1.1\r\nHost: {apiserver.host}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    return _until_closed(reader)


async def _until_closed(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(_PIECE):
            pass


async def _watching(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, apiserver: Address
) -> Coroutine[Any, Any, None]:
    state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
    state.initiate_connection()
    asked = ((":method", "GET"), (":scheme", "https"), (":authority", apiserver.host), (":path", _WATCHED))
    state.send_headers(state.get_next_available_stream_id(), asked, end_stream=True)
    writer.write(state.data_to_send())
    await _until(reader, writer, state, (h2.events.ResponseReceived, h2.events.ConnectionTerminated))
    return _until(reader, writer, state, (h2.events.ConnectionTerminated,))


async def _until(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    state: h2.connection.H2Connection,
    ends: tuple[type[h2.events.Event], ...],
) -> None:
    """Return after one of these events, or when the connection is closed or nothing readable comes."""
    with suppress(OSError, h2.exceptions.H2Error):
        while data := await reader.read(_PIECE):
            if any(isinstance(each, ends) for each in state.receive_data(data)):
                return
            writer.write(state.data_to_send())
