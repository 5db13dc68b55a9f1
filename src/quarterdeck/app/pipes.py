"""The protocol between a manager of the planes on another network and the process that started it, over its standard
streams.

The manager ends when its standard input does, however the parent died. Each line there requests its metrics, which it
writes to its standard output, with their length before them: no port of its network is open to the host.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

#: Seconds within which it must write its metrics: their reader waits no longer.
PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Parent:
    """The descriptors to and from the process that started this one."""

    asks: int
    answers: int


async def attended(parent: Parent, text: Callable[[], Awaitable[bytes]]) -> None:
    """Answer the requests of the parent process. Returns when it has ended."""
    loop = asyncio.get_running_loop()
    reader, nobody = asyncio.StreamReader(), asyncio.StreamReader()
    asks, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(parent.asks, "rb"))
    answers, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(nobody), os.fdopen(parent.answers, "wb")
    )
    writer = asyncio.StreamWriter(answers, protocol, nobody, loop)
    try:
        while await reader.readline():
            found = await text()
            writer.write(b"%d\n" % len(found) + found)
            await writer.drain()
    except ConnectionError:
        return
    finally:
        asks.close()
        answers.abort()


class PipedMetrics:
    """Requests the metrics of a process that was started with pipes, one request at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._asking: asyncio.Task[bytes] | None = None

    async def metrics(self) -> bytes | None:
        """Its metrics; None if they do not come in time. A late answer goes to the next request."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name="reading the metrics of another network")
        done, _ = await asyncio.wait((self._asking,), timeout=PATIENCE)
        if not done:
            return None
        asked, self._asking = self._asking, None
        try:
            return asked.result()
        except (OSError, EOFError, ValueError):
            return None  # it has ended, or wrote something else

    async def end(self) -> None:
        """Send no more requests."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,))

    async def _ask(self) -> bytes:
        asks, answers = self._process.stdin, self._process.stdout
        assert asks is not None
        assert answers is not None
        asks.write(b"metrics\n")
        await asks.drain()
        return await answers.readexactly(int(await answers.readline()))
