"""One client: its connection, and the one case in which HTTP makes it send a request again."""

from __future__ import annotations

from asyncio import get_running_loop
from asyncio import timeout as deadline
from collections.abc import AsyncIterator
from dataclasses import dataclass

from quarterdeck.errors import Unavailable
from quarterdeck.probe.dial import Dialer
from quarterdeck.probe.wire import ClientConnection, ConnectionCut, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """The outcome of a request. ``status`` is 0 when there was no response; then ``reason`` says why."""

    status: int = 0
    body: bytes = b""
    reason: str = ""
    resent: bool = False
    address: str = ""

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300


class Client:
    """Sends one request at a time. ``keep``: its connection is used for as long as it lasts.

    It never retries, except as RFC 9112 (section 9.3.1) specifies for every HTTP client: an idempotent request on a
    reused connection that closes before any byte of the response is sent once more on a new connection; likewise (RFC
    9113, section 8.7) a request that the server declares unprocessed. Where the probe's source host is lost, a request
    has not failed: SourceLost is raised.
    """

    def __init__(self, dialer: Dialer, *, timeout: float, keep: bool = True) -> None:
        self._dialer = dialer
        self._timeout = timeout
        self._keep = keep
        self._connection: ClientConnection | None = None
        self._resent = False
        self._address = ""

    @property
    def address(self) -> str:
        """The address of the last request."""
        return self._address

    async def call(self, request: Request) -> RequestOutcome:
        """Send a request and read the whole response, within the client's deadline."""
        outcome = await self.open(request, whole=True)
        if not self._keep:
            await self.drop()
        return outcome

    async def open(self, request: Request, *, whole: bool = False) -> RequestOutcome:
        """Send a request; the body of a success is left to ``pieces`` unless ``whole``."""
        self._resent = False
        self._address = ""
        began = get_running_loop().time()
        try:
            async with deadline(self._timeout):
                connection, status = await self._exchange(request)
                body = b""
                if whole or not 200 <= status < 300:
                    body = b"".join([piece async for piece in _pieces(connection)])
        except TimeoutError:
            return await self._failed(f"no answer within {self._timeout:g} s", began)
        except Unavailable as error:
            # The request shows what was being done, except for earlier steps.
            return await self._failed(
                error.seen if isinstance(error, ConnectionCut) else f"{error.doing}: {error.seen}", began
            )
        except BaseException:
            await self.drop()  # cancelled halfway: the state of this connection is unknown
            raise
        reason = "" if 200 <= status < 300 else f"status {status}"
        return RequestOutcome(status=status, body=body, reason=reason, resent=self._resent, address=self._address)

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body of the opened response, as it comes. Raises Cut when the connection ends before the body."""
        if self._connection is not None:
            async for piece in _pieces(self._connection):
                yield piece

    async def drop(self) -> None:
        """Close the connection; the next request opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _exchange(self, request: Request) -> tuple[ClientConnection, int]:
        connection = await self._ready()
        reused = connection.used
        try:
            return connection, await connection.send(request, last=not self._keep)
        except ConnectionCut as cut:
            if not (cut.unprocessed or (reused and cut.unanswered and request.idempotent)):
                raise
        self._resent = True
        await self.drop()
        connection = await self._ready()
        return connection, await connection.send(request, last=not self._keep)

    async def _ready(self) -> ClientConnection:
        if self._connection is not None and not self._connection.usable:
            await self.drop()
        if self._connection is None:
            self._connection = await self._dialer.dial()
        self._address = self._connection.address
        return self._connection

    async def _failed(self, reason: str, began: float) -> RequestOutcome:
        await self.drop()
        await self._dialer.network.confirm(began)
        return RequestOutcome(reason=reason, resent=self._resent, address=self._address)


async def _pieces(connection: ClientConnection) -> AsyncIterator[bytes]:
    while piece := await connection.read():
        yield piece
