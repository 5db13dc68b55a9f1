"""HTTP/1.1 requests, each with a deadline, over connections that are kept alive.

Repeated observations reuse connections: handshakes would be nearly all of their cost. This must not change what they
see. So a connection is never older than a few seconds, or a few requests where these are far apart (a new one shows
that clients can connect, and the current certificates), it is kept only after a good answer, and a broken one is
replaced at once; where the other end disappeared silently, the kernel breaks it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import string
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple, cast
from urllib.parse import quote, urlsplit

import h11
from typing_extensions import override

#: A connection is used for at most this many seconds; for infrequent requests, this many times, for this long.
KEPT = 5.0
FEW = 6
_OLDEST = 60.0
#: Milliseconds for which the peer's kernel may leave data on a kept connection unacknowledged.
_UNHEARD = 500
_MOST = 64 * 2**20  # bytes of an answer
_OK = 200
_VERSION = b"1.1"
_NOT_HTTP = "its answer is not HTTP/1.1"


class NoAnswer(Exception):
    """There was no answer. ``late``: not within the deadline. ``refused``: nothing listens there. ``unsaid``: the
    connection broke before anything of the answer came.
    """

    def __init__(self, seen: str, *, late: bool = False, refused: bool = False, unsaid: bool = False) -> None:
        super().__init__(seen)
        self.late, self.refused, self.unsaid = late, refused, unsaid


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    status: int
    body: bytes
    headers: Mapping[bytes, bytes] = field(default_factory=dict, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    @property
    def date(self) -> float | None:
        """The server's clock when it answered, in seconds since the epoch; None if it has no date."""
        try:
            return parsedate_to_datetime(self.headers[b"date"].decode()).timestamp()
        except (KeyError, ValueError):
            return None


class _Peer(NamedTuple):
    """The target of connections, and the name in its certificate (None: that of its host)."""

    origin: str
    server: str | None


class Http:
    """A client that trusts, and presents, the certificates of ``tls``. Close it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._idle: defaultdict[_Peer, list[_Wire]] = defaultdict(list)

    async def ask(
        self,
        method: str,
        origin: str,
        path: str,
        *,
        deadline: float,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        server: str | None = None,
    ) -> Answer:
        """The complete answer of ``origin`` (``https://host:port``), whose certificate is for that host, or for
        ``server`` where its address does not identify it. ``deadline`` is in seconds, for each of connecting, the TLS
        handshake and the answer. Raises NoAnswer.

        Only a GET reuses a connection. Where that breaks before any answer, the request is repeated over a new one,
        within the remaining time. This side never cancels a handshake: it ends by itself.
        """
        request = _Request.to(method, origin, path, headers or {}, content)
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        peer = _Peer(origin, server)
        wire = self._kept(peer, loop.time()) if method == "GET" else None
        if wire is not None:
            try:
                return await self._exchange(wire, peer, request, deadline)
            except NoAnswer as error:
                deadline = until - loop.time()
                if not error.unsaid or deadline <= 0:
                    raise
        wire = await self._connect(peer, deadline)
        return await self._exchange(wire, peer, request, deadline)

    async def lines(
        self, origin: str, path: str, *, deadline: float, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The lines of an answer to GET, each as soon as it arrives, over a separate connection. ``deadline`` is in
        seconds, for each of connecting, the TLS handshake and the head of the answer; the caller limits the rest.
        Raises NoAnswer.
        """
        wire = await self._connect(_Peer(origin, None), deadline)
        try:
            async for line in wire.lines(_Request.to("GET", origin, path, headers or {}, b""), deadline):
                yield line
        finally:
            wire.abort()

    async def close(self) -> None:
        """Close all idle connections."""
        idle, self._idle = self._idle, defaultdict(list)
        wires = [wire for each in idle.values() for wire in each]
        for wire in wires:
            wire.abort()
        await asyncio.gather(*(wire.gone.wait() for wire in wires))

    def _kept(self, peer: _Peer, now: float) -> _Wire | None:
        """An idle connection that is open, as far as this end knows. Those that are too old are closed."""
        waiting = self._idle[peer]
        while waiting:
            wire = waiting.pop()
            if wire.may_be_asked(now):
                return wire
            wire.abort()
        return None

    async def _exchange(self, wire: _Wire, peer: _Peer, request: _Request, deadline: float) -> Answer:
        """One request and its answer. The connection is kept after a good one, and closed otherwise."""
        good = False
        try:
            async with asyncio.timeout(deadline):
                answer, more = await wire.exchange(request)
            good = more and answer.status == _OK
        except TimeoutError:
            raise NoAnswer(f"no answer within {deadline:g} s", late=True) from None
        finally:
            if good:
                wire.keep()
                self._idle[peer].append(wire)
            else:
                wire.abort()
        return answer

    async def _connect(self, peer: _Peer, deadline: float) -> _Wire:
        loop, to = asyncio.get_running_loop(), _origin(peer.origin)
        wire = _Wire(loop.time())
        try:
            async with asyncio.timeout(deadline):
                await loop.create_connection(lambda: wire, to.host, to.port)
        except TimeoutError:
            raise NoAnswer(f"no connection within {deadline:g} s", late=True) from None
        except OSError as error:
            raise NoAnswer(_words(error), refused=isinstance(error, ConnectionRefusedError)) from error
        if self._tls is None or not to.secure:
            return wire
        try:
            await wire.secure(self._tls, peer.server or to.host, deadline)
        except BaseException as error:
            wire.abort()
            if isinstance(error, OSError):
                late = loop.time() - wire.since >= deadline
                raise NoAnswer(_words(error), late=late) from error
            raise
        return wire


class _Wire(asyncio.Protocol):
    """A connection, for one exchange after the other, open ``since`` a time of the event loop's clock."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.stands = False
        self._used = 0
        self.gone = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._http = h11.Connection(h11.CLIENT)
        self._heard = False
        self._lost: Exception | None = None
        self._news: asyncio.Future[None] | None = None

    async def secure(self, tls: ssl.SSLContext, host: str, deadline: float) -> None:
        """The TLS handshake. Raises OSError."""
        assert self._transport is not None
        loop = asyncio.get_running_loop()
        made = await loop.start_tls(
            self._transport, self, tls, server_hostname=host, ssl_handshake_timeout=max(deadline, 0.001)
        )
        if made is None:
            raise ConnectionResetError("it was closed in the TLS handshake")
        self._transport = made

    async def exchange(self, request: _Request) -> tuple[Answer, bool]:
        """Send a request; returns the complete answer, and whether another request may be sent. Raises NoAnswer."""
        self._used += 1
        self._send(request)
        head = await self._head()
        body = bytearray()
        while piece := await self._piece():
            body += piece
            if len(body) > _MOST:
                raise NoAnswer("its answer does not end")
        return Answer(head.status_code, bytes(body), dict(head.headers)), self._is_ready_for_another()

    async def lines(self, request: _Request, deadline: float) -> AsyncIterator[bytes]:
        """Send a request; yields the lines of an answer that comes piece by piece, as a watch does. Raises NoAnswer."""
        self._send(request)
        try:
            async with asyncio.timeout(deadline):
                head = await self._head()
        except TimeoutError:
            raise NoAnswer(f"no answer within {deadline:g} s", late=True) from None
        if head.status_code != _OK:
            raise NoAnswer(f"it answered {head.status_code} {head.reason.decode(errors='replace')}")
        rest = b""
        while piece := await self._piece():
            *whole, rest = (rest + piece).split(b"\n")
            for each in whole:
                yield each

    def may_be_asked(self, now: float) -> bool:
        """Whether it is open as far as this end knows, nothing unrequested arrived, and it shows what a new one would:
        it has not been used for long, or not often.
        """
        fresh = now - self.since < (KEPT if self._used >= FEW else _OLDEST)
        return self.stands and fresh and not self._was_sent_more()

    def keep(self) -> None:
        """Let the kernel break it when the peer does not acknowledge data any more."""
        assert self._transport is not None
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD)

    def abort(self) -> None:
        """Close it now."""
        self.stands = False
        if self._transport is not None:
            self._transport.abort()

    # callbacks of the event loop

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport, self.stands = cast("asyncio.Transport", transport), True

    @override
    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._http.receive_data(data)
        self._heard = True
        self._tell()

    @override
    def eof_received(self) -> None:
        """See asyncio.Protocol: it closes."""
        self.stands = False
        self._tell()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.stands, self._lost = False, exc
        self.gone.set()
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # one exchange

    def _send(self, request: _Request) -> None:
        assert self._transport is not None
        self._heard = False
        if not self.stands:
            raise self._broke()
        self._transport.write(
            self._http.send(request.head)
            + (self._http.send(h11.Data(data=request.content)) if request.content else b"")
            + self._http.send(h11.EndOfMessage())
        )

    async def _head(self) -> h11.Response:
        event = await self._event()
        while not isinstance(event, h11.Response):  # what comes before it is informational (1xx)
            event = await self._event()
        if event.http_version != _VERSION:
            raise NoAnswer(_NOT_HTTP)
        return event

    async def _piece(self) -> bytes:
        """The next piece of the body; nothing at its end."""
        event = await self._event()
        return bytes(event.data) if isinstance(event, h11.Data) else b""

    async def _event(self) -> object:
        """The next h11 event from the received bytes. Raises NoAnswer where no more comes."""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                _, ended = self._http.trailing_data
                raise (self._broke() if ended else NoAnswer(_NOT_HTTP)) from error
            if event is not h11.NEED_DATA:
                return event
            if self.stands:
                self._news = asyncio.get_running_loop().create_future()
                await self._news
            elif self._lost is not None:
                raise self._broke()
            else:
                self._http.receive_data(b"")  # h11 knows whether an answer may end with its connection

    def _is_ready_for_another(self) -> bool:
        if not self.stands or self._was_sent_more():
            return False
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def _was_sent_more(self) -> bool:
        """Whether anything unrequested arrived."""
        return bool(self._http.trailing_data[0])

    def _broke(self) -> NoAnswer:
        return NoAnswer(_words(self._lost) if self._lost else "it was closed", unsaid=not self._heard)


class _Origin(NamedTuple):
    host: str
    port: int
    secure: bool
    named: str


@lru_cache(maxsize=1024)
def _origin(origin: str) -> _Origin:
    parts = urlsplit(origin)
    secure = parts.scheme == "https"
    return _Origin(parts.hostname or "", parts.port or (443 if secure else 80), secure, parts.netloc)


class _Request(NamedTuple):
    head: h11.Request
    content: bytes

    @classmethod
    def to(cls, method: str, origin: str, path: str, headers: Mapping[str, str], content: bytes) -> _Request:
        """``path`` may have a query. Characters that are not allowed there are escaped."""
        lines = {"Host": _origin(origin).named, "User-Agent": "quarterdeck", "Accept": "*/*", **headers}
        if content:
            lines["Content-Length"] = str(len(content))
        target = quote(path, safe=string.punctuation)
        return cls(h11.Request(method=method, target=target, headers=[*lines.items()]), content)


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
