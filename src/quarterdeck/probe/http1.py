"""HTTP/1.1 over asyncio streams, with h11 as the protocol's state machine."""

from __future__ import annotations

import asyncio
import contextlib
import ssl

import h11

from quarterdeck.probe.wire import USER_AGENT, ConnectionCut, Request


class Http1Connection:
    """A ``wire.Connection``. Obeys ``Connection: close``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, address: str, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._address = address
        self._host = host
        self._state = h11.Connection(h11.CLIENT)
        self._idle = True
        self._answered = False
        self._used = False

    @property
    def address(self) -> str:
        """The IP address at the other end."""
        return self._address

    @property
    def used(self) -> bool:
        """Whether it has carried a whole exchange before."""
        return self._used

    @property
    def usable(self) -> bool:
        """Whether it is idle, and the server has not closed it as far as this end knows."""
        gone = self._reader.at_eof() or self._reader.exception() is not None or self._writer.is_closing()
        return self._idle and not gone

    async def send(self, request: Request, *, last: bool = False) -> int:
        """Send a request and wait for the response's head."""
        self._idle = self._answered = False
        headers = [("Host", self._host), ("User-Agent", USER_AGENT), ("Accept", "application/json")]
        if last:
            headers.append(("Connection", "close"))
        if request.body:
            headers += [("Content-Type", request.content_type), ("Content-Length", str(len(request.body)))]
        parts = [self._state.send(h11.Request(method=request.method, target=request.path, headers=headers))]
        if request.body:
            parts.append(self._state.send(h11.Data(data=request.body)))
        parts.append(self._state.send(h11.EndOfMessage()))
        try:
            self._writer.write(b"".join(part for part in parts if part))
            await self._writer.drain()
        except OSError as error:
            raise ConnectionCut(f"{describe(error)} while the request was sent", unanswered=True) from error
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Response):
                return event.status_code

    async def read(self) -> bytes:
        """The next piece of the body."""
        while True:
            event = await self._next_event()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            if isinstance(event, h11.EndOfMessage):
                self._used = True
                if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
                    self._state.start_next_cycle()
                    self._idle = True
                return b""

    async def close(self) -> None:
        """Close the socket. The exchange is over: errors of the peer no longer matter."""
        self._idle = False
        await close_stream(self._writer)

    async def _next_event(self) -> object:
        while True:
            try:
                event = self._state.next_event()
                if isinstance(event, h11.ConnectionClosed):
                    raise ConnectionCut("the server closed the connection", unanswered=not self._answered)
                if event is not h11.NEED_DATA:
                    return event
                data = await self._reader.read(65536)
                if not data and not self._answered:
                    raise ConnectionCut(
                        "the server closed the connection before any byte of the response", unanswered=True
                    )
                self._answered = True
                self._state.receive_data(data)
            except OSError as error:
                raise ConnectionCut(describe(error), unanswered=not self._answered) from error
            except h11.RemoteProtocolError as error:
                raise ConnectionCut(f"the response broke off: {error}") from error


async def close_stream(writer: asyncio.StreamWriter) -> None:
    """Close a TLS stream; a peer that does not answer the close is not waited for longer than the shutdown deadline."""
    writer.close()
    with contextlib.suppress(OSError, ssl.SSLError):
        await writer.wait_closed()


def describe(error: OSError) -> str:
    """A short description of a socket error."""
    return (error.strerror or str(error) or type(error).__name__).lower()
