"""The door: a proxy on the host's loopback through which plain kubectl reaches a control plane by its name.

A kubeconfig names it as ``proxy-url``, with the plane's credential. It accepts HTTP CONNECT (RFC 9110 section 9.3.6)
from guests (``door_guests.py``), each only to its own plane's name and port: every user of the host can connect to the
loopback. It queries the site's own DNS server for the name, once per time to live, and relays. With a lab it connects
from the lab's client namespace.

    python -m quarterdeck.endpoint.door --listen 127.0.0.1:PORT --dns IP:PORT [--dns IP:PORT] --guests FILE
        [--lab HOME]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import resource
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import h11
from dns.rdatatype import RdataType

from quarterdeck.dns import Addresses, Reply, ask_server
from quarterdeck.endpoint.door_guests import Guest, known_guest, plain_host, read_guests
from quarterdeck.errors import InvalidInput, QuarterdeckError, Unavailable
from quarterdeck.files import file_errors
from quarterdeck.happy_eyeballs import connected
from quarterdeck.http_server import read_request
from quarterdeck.sites.netns.enter import enter
from quarterdeck.sites.netns.layout import CLIENT

_ASKING = 10.0  # seconds for a client to send its request
_RESOLVING = 5.0
_NEXT_SERVER = 0.5  # seconds after which the next DNS server is queried
_CONNECTING = 4.0
_PIECE = 1 << 16
_HEAD = 1 << 13  # bytes of a request
_BREATH = 0.05  # seconds before the next accept after a failed one
_SPARE = 64  # descriptors that are not for sessions, of which each needs two


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _RefusedError(QuarterdeckError):
    """The request is refused; ``status`` is the HTTP status."""

    def __init__(self, status: int, seen: str) -> None:
        super().__init__("using the door", seen)
        self.status = status


@dataclass(frozen=True, slots=True)
class _ConnectRequest:
    """The content of a CONNECT request: ``HOST:PORT``, and its ``Proxy-Authorization`` header (empty if it
    has none).
    """

    target: str
    authorization: bytes = field(repr=False)


class Names(Protocol):
    """Resolves names."""

    async def addresses(self, name: str) -> Sequence[str]:
        """Its current IP addresses, at least one; raises Unavailable."""
        ...


def dns_names(*servers: tuple[str, int]) -> Names:
    """Queries DNS servers (IP address and port) in this order, and caches their answers for their time to live."""

    async def ask(server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        return await ask_server(*server, name, kind, timeout=deadline)

    return Addresses(
        servers,
        ask=ask,
        now=time.monotonic,
        kinds=(RdataType.A,),
        next_after=_NEXT_SERVER,
        deadline=_RESOLVING,
    )


class Door:
    """The proxy. ``guests`` reads the guests; at most ``most`` sessions are open at once, and ``asking`` connections
    without a request yet: one more cuts the oldest of these, so that no client can keep guests out.
    """

    def __init__(
        self, names: Names, guests: Callable[[], Mapping[str, Guest]], *, most: int = 1_000, asking: int = 64
    ) -> None:
        self._names = names
        self._guests = guests
        self._most = most
        self._most_asking = asking
        self._sessions = 0
        self._asking: dict[asyncio.StreamWriter, None] = {}

    async def serve(self, listener: socket.socket) -> None:
        """Accept connections until cancelled; then all of them are cut. Errors of one do not affect the others."""
        listener.setblocking(False)
        loop, failing = asyncio.get_running_loop(), False
        async with asyncio.TaskGroup() as connections:
            while True:
                try:
                    client, _address = await loop.sock_accept(listener)
                except OSError as error:  # out of descriptors or memory: no event announces when there are some again
                    if not failing:
                        _complain(f"accepting connections: {error.strerror}")
                    failing = True
                    await asyncio.sleep(_BREATH)
                else:
                    failing = False
                    connections.create_task(self._connection(client))

    async def _connection(self, client: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=client, limit=_PIECE)
        except OSError as error:
            client.close()
            _complain(f"taking a connection: {error.strerror}")
            return
        try:
            await self._lead(reader, writer)
        except OSError:
            pass  # the client disconnected
        except Exception as error:  # noqa: BLE001 - it is logged, and ends this connection only
            _complain(f"serving a connection: {error!r}")
        finally:
            self._asking.pop(writer, None)
            writer.transport.abort()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Authenticate a client, read its target, and connect it."""
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._wait_for_word_of(writer)
        try:
            async with asyncio.timeout(_ASKING):
                asked = await _asked(http, reader)
            host, port = await asyncio.to_thread(self._admit, asked)
            self._asking.pop(writer, None)
            if self._sessions >= self._most:
                raise _RefusedError(503, f"{self._most} sessions are open already")
        except (QuarterdeckError, TimeoutError) as error:
            await _refuse(http, writer, error)
            return
        self._sessions += 1
        try:
            await self._bring(http, (reader, writer), host, port)
        finally:
            self._sessions -= 1

    def _wait_for_word_of(self, writer: asyncio.StreamWriter) -> None:
        self._asking[writer] = None
        if len(self._asking) > self._most_asking:
            oldest = next(iter(self._asking))
            del self._asking[oldest]
            oldest.transport.abort()

    def _admit(self, asked: _ConnectRequest) -> tuple[str, int]:
        """The allowed target of a client; raises _RefusedError for strangers, and for guests with another target."""
        with file_errors("reading the guests of the door"):
            guests = self._guests()
        guest = known_guest(guests, asked.authorization)
        if guest is None:
            seen = "the door does not know this credential: print the kubeconfig again with 'quarterdeck kubeconfig'"
            raise _RefusedError(407, seen)
        host, port = split_address(asked.target)
        if (plain_host(host), port) != (guest.host, guest.port):
            raise _RefusedError(403, f"{host}:{port} is not the plane of this credential")
        return host, port

    async def _bring(self, http: h11.Connection, near: Streams, host: str, port: int) -> None:
        try:
            far = await self._dial(host, port)
        except Unavailable as error:
            await _refuse(http, near[1], error)
            return
        try:
            near[1].write(http.send(h11.Response(status_code=200, headers=[], reason=b"Connected")) or b"")
            far[1].write(http.trailing_data[0])
            await relay(near, far)
        finally:
            far[1].transport.abort()

    async def _dial(self, host: str, port: int) -> Streams:
        """Connect to the first address of the host that answers; raises Unavailable."""
        addresses = [host] if _is_address(host) else await self._names.addresses(host)
        try:
            async with asyncio.timeout(_CONNECTING):
                _, reached = await connected(addresses, port)
                return await asyncio.open_connection(sock=reached)
        except TimeoutError:
            seen = f"{' and '.join(addresses)} {'do' if len(addresses) > 1 else 'does'} not answer"
        except OSError as error:
            seen = f"{' and '.join(addresses)}: {error.strerror or error}"
        raise Unavailable(f"connecting to {host}:{port}", seen)


async def relay(one: Streams, other: Streams) -> None:
    """Relay bytes in both directions until both have ended. The end of one is passed on and leaves the other open; when
    either side breaks, or the relay is cancelled, both are reset, so that no end is mistaken for a regular one.
    """
    writers, whole = (one[1], other[1]), False
    try:
        async with asyncio.TaskGroup() as ways:
            ways.create_task(_carry(one[0], other[1]))
            ways.create_task(_carry(other[0], one[1]))
        whole = True
    except* OSError:
        pass  # both ends see a reset
    finally:
        if not whole:
            _reset(writers)
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


def _reset(writers: Sequence[asyncio.StreamWriter]) -> None:
    for writer in writers:
        if not writer.is_closing():
            # socket(7): closing with no time to linger sends a reset.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()  # a slow reader at one end slows the writer at the other
    writer.write_eof()


async def _asked(http: h11.Connection, reader: asyncio.StreamReader) -> _ConnectRequest:
    """A CONNECT request; raises InvalidInput, or ConnectionResetError if none comes."""
    doing = "reading the target of the connection"
    try:
        request = await read_request(http, reader)
    except h11.RemoteProtocolError as error:
        raise InvalidInput(doing, str(error)) from error
    if request.method != b"CONNECT":
        seen = f"the method is {request.method.decode(errors='replace')}"
        raise InvalidInput(doing, seen, "only CONNECT is served here")
    authorization = next((value for name, value in request.headers if name == b"proxy-authorization"), b"")
    return _ConnectRequest(request.target.decode(errors="replace"), authorization)


async def _refuse(http: h11.Connection, writer: asyncio.StreamWriter, error: Exception) -> None:
    """Put the reason into the status line, which kubectl shows."""
    status = 400 if isinstance(error, InvalidInput) else 504 if isinstance(error, TimeoutError) else 502
    headers = [("Content-Length", "0"), ("Connection", "close")]
    if isinstance(error, _RefusedError):
        status = error.status
        headers += [("Proxy-Authenticate", 'Basic realm="quarterdeck"')] if status == 407 else []
    reason = str(error) or "no request came"
    response = h11.Response(
        status_code=status,
        headers=headers,
        reason="".join(each if each.isascii() and each.isprintable() else " " for each in reason).encode(),
    )
    writer.write((http.send(response) or b"") + (http.send(h11.EndOfMessage()) or b""))
    async with asyncio.timeout(_ASKING):
        await writer.drain()
        writer.close()
        await writer.wait_closed()


def _complain(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def split_address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` (an IPv6 address in brackets) as its parts; raises InvalidInput."""
    host, _, port = text.rpartition(":")
    # (Of a number of thousands of digits int() raises ValueError.)
    if not host or not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > 65535:
        raise InvalidInput("reading an address", f"{text!r} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _listen(address: tuple[str, int]) -> socket.socket:
    if not _is_address(address[0]) or not ipaddress.ip_address(address[0]).is_loopback:
        raise InvalidInput("opening the door", f"{address[0]} is not a loopback address", "use 127.0.0.1")
    try:
        return socket.create_server(address, backlog=128)
    except OSError as error:
        raise Unavailable("opening the door", f"{address[0]}:{address[1]}: {error.strerror}") from error


def _room() -> int:
    """The number of sessions that the descriptors allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * 1_000 + 2 * _SPARE
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(1_000, (soft - 2 * _SPARE) // 2))


async def _serve_until_stopped(door: Door, listener: socket.socket) -> None:
    serving = asyncio.create_task(door.serve(listener))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def main(arguments: Sequence[str]) -> None:
    """Open the door until SIGTERM. Raises InvalidInput, Unavailable."""
    parser = argparse.ArgumentParser(prog="quarterdeck.endpoint.door")
    parser.add_argument("--listen", required=True, type=split_address, metavar="127.0.0.1:PORT")
    parser.add_argument("--dns", required=True, action="append", type=split_address, metavar="IP:PORT")
    parser.add_argument("--guests", required=True, type=Path, metavar="FILE")
    parser.add_argument("--lab", type=Path, metavar="HOME")
    options = parser.parse_args(arguments)
    # The listener stays in the network where it was created; all later sockets are in the lab's.
    with _listen(options.listen) as listener:
        if options.lab is not None:
            enter(options.lab, CLIENT)
        host, port = listener.getsockname()[:2]
        sys.stdout.write(f"the door is open at {host}:{port}\n")
        sys.stdout.flush()
        door = Door(dns_names(*options.dns), lambda: read_guests(options.guests), most=_room())
        asyncio.run(_serve_until_stopped(door, listener))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except QuarterdeckError as failure:
        sys.stderr.write(f"{failure}\n")
        sys.exit(failure.exit_code)
