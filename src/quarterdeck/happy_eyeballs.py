"""Connecting to a name that has several addresses, as RFC 8305 specifies."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

#: Seconds after which the next address is tried as well, while the earlier ones have not answered.
_NEXT = 0.25


async def connect(address: str, port: int) -> socket.socket:
    """A TCP connection of this host. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


async def connected(
    addresses: Sequence[str], port: int, by: Callable[[str, int], Awaitable[socket.socket]] = connect
) -> tuple[str, socket.socket]:
    """A TCP connection to the first of some IP addresses that accepts it, and that address. Each is tried as soon as
    the previous one refuses, or has not answered for a moment. ``by`` connects to one of them. Raises the OSError of
    the last one that refused, and what else ``by`` raises.
    """
    waiting, trying = deque(addresses), dict[asyncio.Future[socket.socket], str]()
    refused = OSError("it has no address")
    try:
        while waiting or trying:
            if waiting:
                address = waiting.popleft()
                trying[asyncio.ensure_future(by(address, port))] = address
            done, _ = await asyncio.wait(
                trying, timeout=_NEXT if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                address = trying.pop(task)
                try:
                    return address, task.result()
                except OSError as error:
                    refused = error
        raise refused
    finally:
        await _leave([*trying])


async def _leave(tasks: Sequence[asyncio.Future[socket.socket]]) -> None:
    """Cancel the other attempts; close a connection that came second."""
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, socket.socket):
            ended.close()
