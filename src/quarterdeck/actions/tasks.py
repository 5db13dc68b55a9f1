"""Running things at once such that nothing runs any more when a function has ended, however it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


async def together(*calls: Awaitable[T]) -> list[T]:
    """What all calls return. What one of them raises is raised only after all have ended."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
    return [each for each in ended if not isinstance(each, BaseException)]


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns: it runs to its end even when the caller is cancelled, who learns of that only then."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    failed = None if task.cancelled() else task.exception()
    raise cancelled from failed


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """``work`` runs beside the block, and has ended when this has: awaited after the block, cut off if that raises."""
    task = asyncio.create_task(work)
    try:
        yield task
    except BaseException:
        await cut_off(task)
        raise
    await task


async def cut_off(*tasks: asyncio.Task[Any]) -> None:
    """Cancel these, and return when they have ended."""
    for each in tasks:
        each.cancel()
    await whole(_ended(tasks))


async def _ended(tasks: tuple[asyncio.Task[Any], ...]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
