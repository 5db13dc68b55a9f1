"""Work that is tried until it succeeds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from quarterdeck.backup.recording.policy import RecorderEvents, RecordingPace, Side
from quarterdeck.backup.writer import Now
from quarterdeck.errors import InvalidInput, QuarterdeckError, Unavailable

T = TypeVar("T")


class Patience:
    """Tries what may fail because one side does not answer, and tells when that begins and ends."""

    def __init__(self, side: Side, events: RecorderEvents, now: Now, pace: RecordingPace) -> None:
        self._side, self._events, self._now, self._pace = side, events, now, pace
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
        self._events.failed(self._side, self._since, error)
        await asyncio.sleep(self._pause)
        self._pause = min(2 * self._pause, self._pace.longest_pause)

    def succeeded(self) -> None:
        """Tell that it answers, if it did not."""
        if self._since is not None:
            self._events.answers(self._side)
        self._since, self._pause = None, self._pace.first_pause
        self.answering.set()
