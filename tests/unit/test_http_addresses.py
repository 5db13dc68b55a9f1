"""Connecting to a name that has several addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from quarterdeck.happy_eyeballs import connected

NOBODY, SILENT, WELL = "127.0.7.1", "127.0.7.2", "127.0.7.3"


@contextmanager
def listening(address: str, port: int = 0, *, deaf: bool = False) -> Iterator[int]:
    """A port that takes connections; a ``deaf`` one has its queue full, so that nobody hears from it."""
    with socket.socket() as listener, socket.socket() as filler:
        listener.bind((address, port))
        listener.listen(0 if deaf else 16)
        port = listener.getsockname()[1]
        if deaf:
            filler.connect((address, port))
        yield port


async def reached(*addresses: str, port: int) -> str:
    address, connection = await connected(addresses, port)
    with connection:
        assert connection.getpeername() == (address, port)
    return address


async def test_the_first_address_that_takes_a_connection_is_the_one() -> None:
    with listening(WELL) as port, listening(SILENT, port):
        assert await reached(SILENT, WELL, port=port) == SILENT
        assert await reached(NOBODY, WELL, port=port) == WELL


async def test_one_that_is_silent_holds_up_nobody_for_longer_than_a_moment() -> None:
    with listening(WELL) as port, listening(SILENT, port, deaf=True):
        async with asyncio.timeout(0.9):  # the kernel would try again after a second
            assert await reached(SILENT, WELL, port=port) == WELL


async def test_where_nobody_takes_one_it_is_said_at_once() -> None:
    with listening(WELL) as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        await connected((NOBODY, WELL), port)
    with pytest.raises(OSError, match="no address"):
        await connected((), port)
