"""A client's pace, and the flag that ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pace:
    """Ticks ``rate`` times a second, from ``offset`` seconds on. A late client does not catch up in a burst."""

    def __init__(self, rate: float, offset: float, now: Callable[[], float]) -> None:
        self._interval = 1.0 / rate
        self._now = now
        self._next = now() + offset
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Stop ticking."""
        self._stopped.set()

    async def tick(self) -> bool:
        """Wait for the next tick; False when the client must end."""
        wait = self._next - self._now()
        if wait > 0 and not self._stopped.is_set():
            try:
                async with asyncio.timeout(wait):
                    await self._stopped.wait()
            except TimeoutError:
                pass
        self._next = max(self._next, self._now()) + self._interval
        return not self._stopped.is_set()
