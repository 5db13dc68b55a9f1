"""One look for all who ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Look(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class Shared(Generic[T]):
    """Looks one after the other, each for all who have asked by the time it begins. So whoever asks is never told what
    was so before: a look that is under way does not count for who comes later. One that nobody waits for any more ends.
    """

    def __init__(self, look: Callable[[], Awaitable[T]]) -> None:
        self._look = look
        self._now: _Look[T] | None = None
        self._next: _Look[T] | None = None

    async def __call__(self) -> T:
        """What the next look sees, or raises."""
        if self._next is None:
            self._next = _Look(asyncio.get_running_loop().create_task(self._after(self._now)))
        mine = self._next
        mine.waiting += 1
        try:
            return await asyncio.shield(mine.task)
        finally:
            mine.waiting -= 1
            if not mine.waiting and not mine.task.done():
                await self._drop(mine)

    async def _after(self, before: _Look[T] | None) -> T:
        if before is not None and not before.task.done():
            await asyncio.wait((before.task,))
        self._now, self._next = self._next, None
        return await self._look()

    async def _drop(self, look: _Look[T]) -> None:
        if self._next is look:
            self._next = None
        look.task.cancel()
        with suppress(asyncio.CancelledError):
            await look.task
