"""A host that makes the connections of the probe's clients: each is a channel of one connection to its sshd, so nothing
has to be installed there. TLS is spoken here, from end to end.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED
from dns.rdatatype import RdataType
from typing_extensions import override

from quarterdeck.dns import Reply, new_query, read_reply
from quarterdeck.errors import PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.probe.network import Network
from quarterdeck.probe.target import Source, SourceLost
from quarterdeck.sites.ssh.shells import HostLink, Shell

_EVERY = 0.5  # seconds between two round trips to the host
_SILENT = 8.0  # seconds of silence after which a host is lost: before its clients' own deadline
_STALLED = 1.0  # seconds of a round trip beyond which the cause of a slow request is unknown
_PIECE = 1 << 16  # bytes
_LOOKING_UP = 30.0  # seconds: callers have their own deadlines
_LOOKUPS = 4  # at a time: sshd runs ten programs for one connection
_ERRORS = {os.strerror(number): number for number in errno.errorcode}  # sshd reports the error of connect(2) as text

T = TypeVar("T")
Streams = tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]


class Tunnel(Network):
    """A ``Network``: ``async with Tunnel(source) as tunnel: ...``. Entering raises Unavailable when the host cannot be
    reached, PreconditionFailed when it refuses the login.

    A program there echoes a line twice a second. So a lost or stalled connection to the host is detected, and failures
    of that time do not count as failures of the plane.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._doing = f"probing from host {source.name}"
        self._connection: asyncssh.SSHClientConnection
        self._link: HostLink
        self._echo: Shell
        self._lost = ""
        self._lines = 0
        self._asking = asyncio.Lock()
        self._heard_from = 0.0  # start of the last completed round trip
        self._shortest = float("inf")
        self._stalls: deque[tuple[float, float]] = deque(maxlen=100)  # end and duration of each
        self._looking = asyncio.Semaphore(_LOOKUPS)
        self._late = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        try:
            self._link = await HostLink.made(self._source.login)
        except (Unavailable, PreconditionFailed) as error:
            raise type(error)(self._doing, error.seen, error.next_step) from error
        self._connection = self._link.connection
        try:
            # Its first program also makes sshd send small packets at once (TCP_NODELAY).
            self._echo = await self._link.start("exec cat")
            await self._round_trip()
        except (PreconditionFailed, SourceLost) as error:
            self._link.abort()
            user = self._connection.get_extra_info("username")
            raise PreconditionFailed(
                self._doing, f"user {user} cannot run programs there: {error.seen}", "log in there as another user"
            ) from error
        except BaseException:
            self._link.abort()
            raise
        self._keep(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.abort()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @override
    async def connect(self, address: str, port: int) -> socket.socket:
        reader, writer = await self._open(address, port)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._keep(_carry(theirs, reader, writer))
        return ours

    @override
    async def ask(self, server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        """See ``Network``: over TCP (RFC 7766), since sshd forwards nothing else."""
        asked = new_query(name, kind)
        async with asyncio.timeout(deadline):
            reader, writer = await self._open(*server)
            try:
                writer.write(len(asked).to_bytes(2, "big") + asked)
                size = int.from_bytes(await reader.readexactly(2), "big")
                return read_reply(await reader.readexactly(size))
            except asyncio.IncompleteReadError as error:
                raise ConnectionResetError("the DNS server closed the connection") from error
            except asyncssh.Error as error:
                raise ConnectionResetError(error.reason) from error
            finally:
                writer.close()

    @override
    async def lookup(self, host: str) -> tuple[str, ...]:
        """See ``Network``: by getent, which every host has."""
        try:
            async with self._looking:
                doing = f"looking up {host}"
                done = await self._link.run('getent ahosts "$1"', (host,), doing=doing, deadline=_LOOKING_UP)
        except QuarterdeckError as error:
            raise OSError(error.seen) from error
        found = [line.split() for line in done.stdout.splitlines()]
        addresses = tuple(words[0] for words in found if "STREAM" in words)
        if not addresses:
            raise OSError(f"the resolver of host {self._source.name} does not know it")
        return addresses

    @override
    async def confirm(self, since: float) -> None:
        await self._round_trip()
        longest = max((took for ended, took in self._stalls if ended >= since), default=0.0)
        if longest:
            self._lose(f"the way to it stalled for {longest:.1f} s")

    @override
    def lag(self) -> float:
        """See ``Network``: how much longer than at its best the round trip to the host took."""
        late, self._late = self._late, 0.0
        return late

    async def _open(self, address: str, port: int) -> Streams:
        opening = self._keep(self._connection.open_connection(address, port, encoding=None))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:  # sshd cannot cancel it: a connection that it opens then is closed again
            opening.add_done_callback(_close)
            raise
        except asyncssh.ChannelOpenError as error:
            if error.code == OPEN_ADMINISTRATIVELY_PROHIBITED:
                raise self._forbidden(address, port) from error
            raise _os_error(error.reason) from error

    def _forbidden(self, address: str, port: int) -> PreconditionFailed:
        user = self._connection.get_extra_info("username")
        return PreconditionFailed(
            self._doing,
            f"its sshd does not let user {user} open a connection to {address} port {port}",
            "allow it ('quarterdeck site bootstrap --allow-probe' does; or port-forwarding in the key's line of"
            " authorized_keys, AllowTcpForwarding in sshd_config), or probe from another host",
        )

    async def _beat(self) -> None:
        with suppress(SourceLost):  # clients must know, since all their connections break
            while True:
                await self._round_trip()
                await asyncio.sleep(_EVERY)

    async def _round_trip(self) -> None:
        """Require an answer of the host from now on; all waiters share a round trip. Raises SourceLost."""
        loop = asyncio.get_running_loop()
        wanted = loop.time()
        async with self._asking:
            if self._lost:
                self._lose(self._lost)
            if self._heard_from >= wanted:
                return
            began = loop.time()
            await self._answer()
            ended, self._heard_from = loop.time(), began
            took = ended - began
            if took > _STALLED:
                self._stalls.append((ended, took))
            self._shortest = min(self._shortest, took)
            self._late = max(self._late, took - self._shortest)

    async def _answer(self) -> None:
        self._lines += 1
        line = f"{self._lines}\n".encode()
        try:
            async with asyncio.timeout(_SILENT):
                self._echo.write(line)
                while await self._echo.readuntil(b"\n") != line:
                    pass  # the request of a caller that stopped waiting
        except TimeoutError:
            self._lose(f"it has been silent for {_SILENT:g} s")
        except (OSError, EOFError, asyncssh.Error) as error:
            self._lose(_words(error))

    def _lose(self, why: str) -> NoReturn:
        self._lost = why
        self._link.abort()
        raise SourceLost(
            self._doing, f"the connection to it was lost: {why}", "this is not a failure of the plane; probe again"
        )

    def _keep(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _carry(end: socket.socket, reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]) -> None:
    """Forward data between a client, at the other end of a socket, and a server, at the other end of a channel, until
    either ends. A client that closes reads no more, as in TLS.
    """
    from_client, to_client = await asyncio.open_connection(sock=end)
    back = asyncio.create_task(_give_back(reader, writer, to_client))
    try:
        with suppress(OSError, asyncssh.Error):
            while data := await from_client.read(_PIECE):
                writer.write(data)
                await writer.drain()
    finally:
        back.cancel()
        writer.close()
        to_client.close()
        await asyncio.wait([back])


async def _give_back(
    reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes], to_client: asyncio.StreamWriter
) -> None:
    """Forward a server's data and its end of data; when it accepts no more data either it has ended."""
    try:
        with suppress(OSError, asyncssh.Error):
            while data := await reader.read(_PIECE):
                to_client.write(data)
                await to_client.drain()
            to_client.write_eof()
            await writer.wait_closed()
    finally:
        to_client.close()


def _close(opening: asyncio.Task[Streams]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        _, writer = opening.result()
        writer.close()


def _os_error(reason: str) -> OSError:
    """sshd's error of a connection that could not be made, as connect(2) would have reported it."""
    number = _ERRORS.get(reason)
    return OSError(number, reason) if number is not None else OSError(reason)


def _words(error: Exception) -> str:
    if isinstance(error, asyncssh.Error):
        return error.reason
    return "its session ended" if isinstance(error, EOFError) else str(error) or type(error).__name__
