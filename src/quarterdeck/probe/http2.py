"""HTTP/2 over asyncio streams, with h2 as the protocol's state machine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from enum import Enum

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from quarterdeck.probe.http1 import close_stream, describe
from quarterdeck.probe.wire import USER_AGENT, ConnectionCut, Request

_HEADER = 9  # bytes: length 3, type 1, flags 1, stream 4 (RFC 9113, section 4.1)
_GOAWAY = 7
_WINDOW = 1 << 24  # bytes: what the server may send before this side reads it


class _End(Enum):
    BODY = "the end of the body"


@dataclass(frozen=True, slots=True)
class GoAway:
    """The server accepts no streams past ``last_stream`` any more; those up to it are served to their end."""

    last_stream: int
    code: int


@dataclass(slots=True)
class FrameSplitter:
    """Removes GOAWAY frames from the stream of frames.

    h2 closes its whole state machine at a GOAWAY and then refuses the rest of the streams that are still served, though
    RFC 9113 (section 6.8) requires the client to read them to their end.
    """

    _rest: bytes = b""

    def feed(self, data: bytes) -> tuple[bytes, list[GoAway]]:
        """The complete frames for h2, and the GOAWAYs among them."""
        data = self._rest + data
        kept: list[bytes] = []
        away: list[GoAway] = []
        start = 0
        while len(data) - start >= _HEADER:
            end = start + _HEADER + int.from_bytes(data[start : start + 3], "big")
            if end > len(data):
                break
            if data[start + 3] == _GOAWAY:
                body = data[start + _HEADER : end]
                last = int.from_bytes(body[:4], "big") & 0x7FFFFFFF
                away.append(GoAway(last, int.from_bytes(body[4:8], "big")))
            else:
                kept.append(data[start:end])
            start = end
        self._rest = data[start:]
        return b"".join(kept), away


@dataclass(slots=True)
class _Stream:
    id: int
    inbox: asyncio.Queue[int | bytes | _End | ConnectionCut] = field(default_factory=asyncio.Queue)
    answered: bool = False


class Http2Connection:
    """A ``wire.Connection`` that uses one stream at a time, and supports the server's graceful shutdown."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, address: str, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._address = address
        self._host = host
        self._state = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8", validate_inbound_headers=False)
        )
        self._stream: _Stream | None = None
        self._used = False
        self._ended: ConnectionCut | None = None
        self._going_away = False
        self._state.initiate_connection()
        self._state.increment_flow_control_window(_WINDOW)
        self._flush()
        self._pump = asyncio.create_task(self._read_frames(), name="probe-http2")

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
        """Whether the server has neither closed it nor sent GOAWAY."""
        return self._stream is None and self._ended is None and not self._going_away

    async def send(self, request: Request, *, last: bool = False) -> int:
        """Send a request on a new stream and wait for the response's head. HTTP/2 has no use for ``last``."""
        if self._ended is not None:
            raise ConnectionCut(self._ended.seen, unanswered=True)
        headers = [
            (":method", request.method),
            (":scheme", "https"),
            (":authority", self._host),
            (":path", request.path),
            ("user-agent", USER_AGENT),
            ("accept", "application/json"),
        ]
        if request.body:
            headers += [("content-type", request.content_type), ("content-length", str(len(request.body)))]
        stream = self._stream = _Stream(self._state.get_next_available_stream_id())
        self._state.send_headers(stream.id, headers, end_stream=not request.body)
        if request.body:
            self._state.send_data(stream.id, request.body, end_stream=True)
        self._flush()
        while True:
            item = await self._take(stream)
            if isinstance(item, int):
                return item

    async def read(self) -> bytes:
        """The next piece of the body."""
        if self._stream is None:
            return b""
        item = await self._take(self._stream)
        if isinstance(item, bytes):
            return item
        self._stream = None
        self._used = True
        return b""

    async def close(self) -> None:
        """Close the socket; a stream that is still open ends with it."""
        self._pump.cancel()
        await asyncio.wait([self._pump])
        self._end(ConnectionCut("closed by the client"))
        await close_stream(self._writer)

    async def _take(self, stream: _Stream) -> int | bytes | _End:
        item = await stream.inbox.get()
        if isinstance(item, ConnectionCut):
            self._stream = None
            raise item
        return item

    def _flush(self) -> None:
        data = self._state.data_to_send()
        if data and not self._writer.is_closing():
            self._writer.write(data)

    async def _read_frames(self) -> None:
        splitter = FrameSplitter()
        reason = "the server closed the connection"
        try:
            while data := await self._reader.read(65536):
                frames, away = splitter.feed(data)
                for event in self._state.receive_data(frames) if frames else []:
                    self._handle(event)
                for notice in away:
                    self._go_away(notice)
                self._flush()
        except OSError as error:
            reason = describe(error)
        except h2.exceptions.ProtocolError as error:
            reason = f"the server broke the protocol: {error}"
        self._end(ConnectionCut(reason, unanswered=self._stream is not None and not self._stream.answered))

    def _handle(self, event: h2.events.Event) -> None:
        stream = self._stream
        if stream is None or getattr(event, "stream_id", None) != stream.id:
            return
        if isinstance(event, h2.events.ResponseReceived):
            stream.answered = True
            stream.inbox.put_nowait(int(dict(_text(event.headers or []))[":status"]))
        elif isinstance(event, h2.events.DataReceived):
            self._state.acknowledge_received_data(event.flow_controlled_length or 0, stream.id)
            if event.data:  # an empty frame may carry the end of the stream, which is a separate event
                stream.inbox.put_nowait(event.data)
        elif isinstance(event, h2.events.StreamEnded):
            stream.inbox.put_nowait(_End.BODY)
        elif isinstance(event, h2.events.StreamReset):
            refused = event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
            stream.inbox.put_nowait(ConnectionCut(f"stream reset, code {event.error_code}", unprocessed=refused))

    def _go_away(self, notice: GoAway) -> None:
        self._going_away = True
        if self._stream is not None and self._stream.id > notice.last_stream:
            self._stream.inbox.put_nowait(
                ConnectionCut(f"GOAWAY, code {notice.code}", unanswered=True, unprocessed=True)
            )

    def _end(self, cut: ConnectionCut) -> None:
        if self._ended is None:
            self._ended = cut
            if self._stream is not None:
                self._stream.inbox.put_nowait(cut)


def _text(headers: object) -> list[tuple[str, str]]:
    pairs = headers if isinstance(headers, list) else []
    return [(_str(name), _str(value)) for name, value in pairs]


def _str(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
