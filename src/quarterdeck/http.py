"""Requests over HTTP/1.1, each with a deadline, over connections that are kept from one to the next.

What is looked at again and again is asked over a connection that stands: nearly all that such a look costs would be
handshakes. Nothing may look other than it is because of that. So a connection is never older than a few seconds, or a
few looks where these are far apart (a new one shows that clients can connect, and which certificates are shown now), it
is kept only after a good answer, and one that breaks is replaced at once; where the other end is gone without a word,
the kernel breaks it.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import NamedTuple, TypeVar, cast
from urllib.parse import urlsplit

T = TypeVar("T")

#: A connection is used for so many seconds from its beginning at most; or, by who looks seldom, so many times, for so
#: long.
KEPT = 5.0
FEW = 6
_OLDEST = 60.0
#: Milliseconds for which the other end's kernel may leave what is sent over a kept connection unacknowledged.
_UNHEARD = 500
_MOST = 64 * 2**20  # bytes of an answer
_OK = 200
_BODILESS = (204, 304)
_HEAD = re.compile(rb"HTTP/1\.1 ([0-9]{3})[ \r]")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)
_DATE = re.compile(rb"\r\ndate:[ \t]*([ -~]+?)[ \t]*\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close[ \t]*\r\n", re.IGNORECASE)


class NoAnswer(Exception):
    """There was none. ``late``: not within the deadline. ``refused``: nothing listens there. ``unsaid``: the connection
    broke before anything of the answer came.
    """

    def __init__(self, seen: str, *, late: bool = False, refused: bool = False, unsaid: bool = False) -> None:
        super().__init__(seen)
        self.late, self.refused, self.unsaid = late, refused, unsaid


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    head: bytes = field(default=b"", compare=False, repr=False)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    @property
    def date(self) -> float | None:
        """The server's clock when it answered, in seconds since the epoch; None if it does not tell."""
        found = _DATE.search(self.head)
        if found is None:
            return None
        try:
            return parsedate_to_datetime(found[1].decode()).timestamp()
        except ValueError:
            return None


class _Whose(NamedTuple):
    """Where connections lead to, and whose certificate is shown there (None: that of its host)."""

    origin: str
    server: str | None


class Http:
    """A client that believes, and shows, what ``tls`` has. Close it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._idle: defaultdict[_Whose, list[_Wire]] = defaultdict(list)

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
        """The whole answer of ``origin`` (``https://host:port``), whose certificate is for that host, or for ``server``
        where its address does not tell who answers there. ``deadline`` is in seconds, for each of connecting,
        the TLS handshake and the answer. Raises NoAnswer.

        Only a GET goes over a connection that was kept. Where that breaks before anything was answered, it is asked
        again over a new one, within what is left. None of ours is cancelled in a handshake: that ends by itself.
        """
        request = _request(method, origin, path, headers or {}, content)
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        whose = _Whose(origin, server)
        wire = self._kept(whose, loop.time()) if method == "GET" else None
        if wire is not None:
            try:
                return await self._exchange(wire, whose, request, deadline)
            except NoAnswer as error:
                deadline = until - loop.time()
                if not error.unsaid or deadline <= 0:
                    raise
        wire = await self._connect(whose, deadline)
        return await self._exchange(wire, whose, request, deadline)

    async def lines(
        self, origin: str, path: str, *, deadline: float, headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The lines of an answer to GET, each as soon as it is there, over a connection of its own. ``deadline`` is in
        seconds, for each of connecting, the TLS handshake and what is answered first: how long the rest may take is
        the caller's matter. Raises NoAnswer.
        """
        wire = await self._connect(_Whose(origin, None), deadline)
        try:
            async for line in wire.lines(_request("GET", origin, path, headers or {}, b""), deadline):
                yield line
        finally:
            wire.abort()

    async def close(self) -> None:
        """Close all connections that nothing is asked over."""
        idle, self._idle = self._idle, defaultdict(list)
        wires = [wire for each in idle.values() for wire in each]
        for wire in wires:
            wire.abort()
        await asyncio.gather(*(wire.gone.wait() for wire in wires))

    def _kept(self, whose: _Whose, now: float) -> _Wire | None:
        """A connection that stands, as far as this end knows. Those that are too old are closed."""
        waiting = self._idle[whose]
        while waiting:
            wire = waiting.pop()
            if wire.stands and wire.is_fresh(now):
                return wire
            wire.abort()
        return None

    async def _exchange(self, wire: _Wire, whose: _Whose, request: bytes, deadline: float) -> Answer:
        """One request and its answer. The connection is kept after a good one, and closed after all else."""
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
                self._idle[whose].append(wire)
            else:
                wire.abort()
        return answer

    async def _connect(self, whose: _Whose, deadline: float) -> _Wire:
        loop, to = asyncio.get_running_loop(), _origin(whose.origin)
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
            await wire.secure(self._tls, whose.server or to.host, deadline)
        except BaseException as error:
            wire.abort()
            if isinstance(error, OSError):
                late = loop.time() - wire.since >= deadline
                raise NoAnswer(_words(error), late=late) from error
            raise
        return wire


class _Wire(asyncio.Protocol):
    """A connection, for one exchange after the other, that stands ``since`` a time of the event loop's clock."""

    def __init__(self, since: float) -> None:
        self.since = since
        self.stands = False
        self._used = 0
        self.gone = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
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

    async def exchange(self, request: bytes) -> tuple[Answer, bool]:
        """Send a request; the whole answer, and whether another one may be sent. Raises NoAnswer."""
        assert self._transport is not None
        self._heard = False
        self._used += 1
        if not self.stands:
            raise self._broke("it was closed")
        self._transport.write(request)
        head = await self._until(self._head)
        begin = _HEAD.match(head)
        if begin is None:
            raise NoAnswer("what it answers is no HTTP/1.1")
        status, body = int(begin[1]), b""
        if _CHUNKED.search(head):
            body = await self._chunks()
        elif length := _LENGTH.search(head):
            body = await self._exactly(int(length[1]))
        elif status not in _BODILESS:
            return Answer(status, await self._rest(), head), False
        return Answer(status, body, head), not _CLOSE.search(head) and not self._received and self.stands

    async def lines(self, request: bytes, deadline: float) -> AsyncIterator[bytes]:
        """Send a request; the lines of an answer that comes in chunks, as a watch does. Raises NoAnswer."""
        assert self._transport is not None
        self._transport.write(request)
        try:
            async with asyncio.timeout(deadline):
                head = await self._until(self._head)
        except TimeoutError:
            raise NoAnswer(f"no answer within {deadline:g} s", late=True) from None
        begin = _HEAD.match(head)
        if begin is None or int(begin[1]) != _OK or not _CHUNKED.search(head):
            raise NoAnswer(f"it answered {head.splitlines()[0].decode(errors='replace')}")
        rest = b""
        while chunk := await self._chunk():
            *whole, rest = (rest + chunk).split(b"\n")
            for each in whole:
                yield each

    def is_fresh(self, now: float) -> bool:
        """Whether it shows what a new one would: it has not been used for long, or not often."""
        return now - self.since < (KEPT if self._used >= FEW else _OLDEST)

    def keep(self) -> None:
        """Have the kernel break it when the other end does not hear us any more."""
        assert self._transport is not None
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD)

    def abort(self) -> None:
        """Close it now."""
        self.stands = False
        if self._transport is not None:
            self._transport.abort()

    # what the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport, self.stands = cast("asyncio.Transport", transport), True

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._received += data
        self._heard = True
        self._tell()

    def eof_received(self) -> None:
        """See asyncio.Protocol: it closes."""
        self.stands = False
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self.stands, self._lost = False, exc
        self.gone.set()
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _more(self) -> None:
        """Return when there is news. Raises NoAnswer when there will be none."""
        if not self.stands:
            raise self._broke("it was closed")
        if len(self._received) > _MOST:
            raise NoAnswer("its answer does not end")
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _broke(self, seen: str) -> NoAnswer:
        return NoAnswer(_words(self._lost) if self._lost else seen, unsaid=not self._heard)

    # the parts of an answer

    async def _until(self, look: Callable[[], T | None]) -> T:
        while (found := look()) is None:
            await self._more()
        return found

    def _head(self) -> bytes | None:
        end = self._received.find(b"\r\n\r\n")
        return None if end < 0 else self._take(end + 4)

    def _line(self) -> bytes | None:
        end = self._received.find(b"\r\n")
        return None if end < 0 else self._take(end + 2)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    async def _exactly(self, size: int) -> bytes:
        return await self._until(lambda: self._take(size) if len(self._received) >= size else None)

    async def _chunks(self) -> bytes:
        found = bytearray()
        while chunk := await self._chunk():
            found += chunk
        return bytes(found)

    async def _chunk(self) -> bytes:
        """The next one; nothing after the last one."""
        line = await self._until(self._line)
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            raise NoAnswer("what it answers is no HTTP/1.1") from None
        if not size:
            while await self._until(self._line) != b"\r\n":
                continue  # trailers
            return b""
        return (await self._exactly(size + 2))[:size]

    async def _rest(self) -> bytes:
        """All until it is closed."""
        while self.stands:
            await self._more()
        if self._lost is not None:
            raise self._broke("it was cut")
        return bytes(self._received)


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


def _request(method: str, origin: str, path: str, headers: Mapping[str, str], content: bytes) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {_origin(origin).named}", "User-Agent: quarterdeck"]
    lines += [f"{name}: {value}" for name, value in {"Accept": "*/*", **headers}.items()]
    if content:
        lines.append(f"Content-Length: {len(content)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + content


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
