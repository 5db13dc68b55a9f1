"""One request with a deadline."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx2
import pytest

from quarterdeck.http import answered


@pytest.fixture
async def dribbling() -> AsyncIterator[str]:
    """A server that begins its answer and never ends it: each chunk in time, and another one after it."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        with contextlib.closing(writer), contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        for each in serving:
            each.cancel()


async def test_a_body_that_never_ends_has_a_deadline_as_a_whole(dribbling: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client, asyncio.timeout(5):
        with pytest.raises(httpx2.ReadTimeout, match=r"its body did not come within 0\.2 s"):
            await answered(client, "GET", dribbling, deadline=0.2)
