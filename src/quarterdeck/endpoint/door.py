"""The door: a proxy on the host's loopback through which plain kubectl reaches a control plane by its name.

A kubeconfig names it as ``proxy-url``. It takes HTTP CONNECT (RFC 9110 section 9.3.6), asks the site's own DNS server
for the name, once per time to live, and relays. With a lab it dials from the lab's client namespace.

    python -m quarterdeck.endpoint.door --listen 127.0.0.1:PORT --dns IP:PORT [--lab HOME]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import dns.asyncresolver
import dns.exception
import dns.name
import dns.resolver
import h11

from quarterdeck.errors import InvalidInput, QuarterdeckError, Unavailable
from quarterdeck.sites.netns.enter import enter
from quarterdeck.sites.netns.layout import CLIENT

_ASKING = 10.0  # seconds for a client to say where it wants to go
_RESOLVING = 5.0
_CONNECTING = 4.0  # for each address of a name
_PIECE = 1 << 16


class Names(Protocol):
    """Who knows the addresses of a name."""

    async def addresses(self, name: str) -> Sequence[str]:
        """Its IP addresses now, at least one; raises Unavailable."""
        ...


class _Found(dns.resolver.LRUCache):
    """Keeps no answer that says that there is none: without a SOA record, as CoreDNS sends it for a hosts file,
    dnspython would believe it for 136 years.
    """

    def put(self, key: dns.resolver.CacheKey, value: dns.resolver.Answer) -> None:
        """Keep an answer until its time to live is over."""
        if value.rrset is not None:
            super().put(key, value)


class DnsNames:
    """Asks one DNS server (IP address and port), and believes its answers for their time to live and no longer."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._resolver = dns.asyncresolver.Resolver(configure=False)
        self._resolver.nameservers = [server[0]]
        self._resolver.port = server[1]
        self._resolver.cache = _Found()
        self._resolver.lifetime = _RESOLVING

    async def addresses(self, name: str) -> Sequence[str]:
        """Its IPv4 addresses."""
        try:
            answer = await self._resolver.resolve(dns.name.from_text(name), "A", search=False)
        except dns.exception.DNSException as error:
            raise Unavailable(f"resolving {name}", str(error)) from error
        return [record.to_text() for record in answer]


class Door:
    """The proxy."""

    def __init__(self, names: Names) -> None:
        self._names = names

    async def serve(self, listener: socket.socket) -> None:
        """Take connections until cancelled; then all of them are cut."""
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as connections:
            while True:
                client, _address = await loop.sock_accept(listener)
                connections.create_task(self._connection(client))

    async def _connection(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client)
        try:
            with contextlib.suppress(OSError):  # the client went away
                await self._lead(reader, writer)
        finally:
            writer.transport.abort()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Find out where a client wants to go, and bring it there."""
        http = h11.Connection(h11.SERVER)
        try:
            async with asyncio.timeout(_ASKING):
                host, port = await _target(http, reader)
            far_reader, far_writer = await self._dial(host, port)
        except (InvalidInput, Unavailable, TimeoutError) as error:
            await _refuse(http, writer, error)
            return
        try:
            writer.write(http.send(h11.Response(status_code=200, headers=[], reason=b"Connected")) or b"")
            far_writer.write(http.trailing_data[0])
            await relay((reader, writer), (far_reader, far_writer))
        finally:
            far_writer.transport.abort()

    async def _dial(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the first address of the host that answers; raises Unavailable."""
        addresses = [host] if _is_address(host) else await self._names.addresses(host)
        seen = "it has no address"
        for address in addresses:
            try:
                async with asyncio.timeout(_CONNECTING):
                    return await asyncio.open_connection(address, port)
            except TimeoutError:
                seen = f"{address} does not answer"
            except OSError as error:
                seen = f"{address}: {error.strerror}"
        raise Unavailable(f"connecting to {host}:{port}", seen)


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def relay(one: Streams, other: Streams) -> None:
    """Carry bytes both ways until both ways have ended. The end of one is passed on and leaves the other open; when
    either side breaks, or the relay is cancelled, both are reset, so that no end is mistaken for a regular one.
    """
    writers, whole = (one[1], other[1]), False
    try:
        async with asyncio.TaskGroup() as ways:
            ways.create_task(_carry(one[0], other[1]))
            ways.create_task(_carry(other[0], one[1]))
        whole = True
    except* OSError:
        pass  # the two ends hear of it, as a reset
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


async def _target(http: h11.Connection, reader: asyncio.StreamReader) -> tuple[str, int]:
    """The host and port of a CONNECT request; raises InvalidInput, or ConnectionResetError if there comes none."""
    doing = "reading what to connect to"
    target = ""
    while True:
        try:
            event = http.next_event()
        except h11.RemoteProtocolError as error:
            raise InvalidInput(doing, str(error)) from error
        if event is h11.NEED_DATA:
            piece = await reader.read(_PIECE)
            if not piece:
                raise ConnectionResetError
            http.receive_data(piece)
        elif isinstance(event, h11.Request):
            if event.method != b"CONNECT":
                raise InvalidInput(doing, f"the method is {event.method.decode()}", "only CONNECT is served here")
            target = event.target.decode()
        elif isinstance(event, h11.EndOfMessage):
            return split_address(target)


async def _refuse(http: h11.Connection, writer: asyncio.StreamWriter, error: Exception) -> None:
    """Say what went wrong in the status line: that is what kubectl shows."""
    status = 400 if isinstance(error, InvalidInput) else 504 if isinstance(error, TimeoutError) else 502
    reason = str(error) or "no request came"
    response = h11.Response(
        status_code=status,
        headers=[("Content-Length", "0"), ("Connection", "close")],
        reason="".join(each if each.isascii() and each.isprintable() else " " for each in reason).encode(),
    )
    writer.write((http.send(response) or b"") + (http.send(h11.EndOfMessage()) or b""))
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def split_address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` (an IPv6 address in brackets) as its parts; raises InvalidInput."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
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
    parser.add_argument("--dns", required=True, type=split_address, metavar="IP:PORT")
    parser.add_argument("--lab", type=Path, metavar="HOME")
    options = parser.parse_args(arguments)
    # The listener stays in the network where it was made; all sockets after it are of the lab.
    with _listen(options.listen) as listener:
        if options.lab is not None:
            enter(options.lab, CLIENT)
        host, port = listener.getsockname()[:2]
        sys.stdout.write(f"the door is open at {host}:{port}\n")
        sys.stdout.flush()
        asyncio.run(_serve_until_stopped(Door(DnsNames(options.dns)), listener))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except QuarterdeckError as failure:
        sys.stderr.write(f"{failure}\n")
        sys.exit(failure.exit_code)
