"""Work that goes on together, and work that is tried until it succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from quarterdeck.backup.recording import Now, RecorderEvents, RecordingPace, Side
from quarterdeck.errors import InvalidInput, QuarterdeckError, Unavailable

P = ParamSpec("P")
T = TypeVar("T")


async def together(*works: Coroutine[Any, Any, None]) -> None:
    """Do all of this at the same time until the first one ends, then cancel the others. Raises what that one does."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [each for each in tasks if each.done()]
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for each in ended:
        each.result()


async def in_thread(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run a call in a thread. A cancellation waits until it has ended: whoever comes next finds its files at rest."""
    running = asyncio.ensure_future(asyncio.to_thread(call, *given, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.gather(running, return_exceptions=True)
        raise


class Patience:
    """Tries what may fail because one side does not answer, and tells when that begins and ends."""

    def __init__(self, side: Side, told: RecorderEvents, now: Now, pace: RecordingPace) -> None:
        self._side, self._told, self._now, self._pace = side, told, now, pace
        self._since: datetime | None = None
        self._pause = pace.first_pause
        #: Set while it answers.
        self.answering = asyncio.Event()
        self.answering.set()

    async def until_done(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of a call, which is made again while it raises Unavailable (or InvalidInput, as for a bucket that
        is gone for a while).
        """
        while True:
            try:
                result = await call()
            except (Unavailable, InvalidInput) as error:
                await self.failed(error)
            else:
                self.succeeded()
                return result

    async def failed(self, error: QuarterdeckError) -> None:
        """Tell the failure, and wait before the next attempt."""
        self.answering.clear()
        self._since = self._since or self._now()
        self._told.failed(self._side, self._since, error)
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, self._pace.longest_pause)

    def succeeded(self) -> None:
        """Tell that it answers, if it did not."""
        if self._since is not None:
            self._told.answers(self._side)
        self._since, self._pause = None, self._pace.first_pause
        self.answering.set()
