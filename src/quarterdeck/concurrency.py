"""Structured concurrency: tasks that have ended when the function that started them ends, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def together(*calls: Awaitable[T]) -> list[T]:
    """The results of all calls. An exception of one is raised only after all have ended."""
    ended = await asyncio.gather(*calls, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
    return [each for each in ended if not isinstance(each, BaseException)]


async def until_one_ends(*works: Coroutine[Any, Any, None]) -> None:
    """Run all of these concurrently until the first one ends, then cancel the others. Raises what that one does."""
    tasks = [asyncio.ensure_future(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [each for each in tasks if each.done()]
    finally:
        await cut_off(*tasks)
    for each in ended:
        each.result()


async def in_thread(call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Run a call in a thread. A cancellation waits until it has ended: then its files no longer change."""
    return await whole(asyncio.to_thread(call, *given, **named))


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which runs to its end even when the caller is cancelled; that is raised only then."""
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
    """``work`` runs concurrently with the block: awaited after it, cancelled if it raises."""
    task = asyncio.create_task(work)
    try:
        yield task
    except BaseException:
        await cut_off(task)
        raise
    await task


async def ahead(parts: AsyncGenerator[T, None], count: int = 2) -> AsyncGenerator[T, None]:
    """The same parts, of which up to ``count`` are made while an earlier one is used. Raises what making them does,
    after the parts before. ``parts`` is closed when this is.
    """
    made: asyncio.Queue[tuple[T, ...]] = asyncio.Queue(count)
    end: tuple[T, ...] = ()

    async def make() -> None:
        try:
            async with aclosing(parts):
                async for part in parts:
                    await made.put((part,))
        except Exception:
            await made.put(end)
            raise
        await made.put(end)

    making = asyncio.create_task(make())
    try:
        while coming := await made.get():
            yield coming[0]
        await making
    finally:
        await cut_off(making)


async def cut_off(*tasks: asyncio.Task[Any]) -> None:
    """Cancel these tasks, and return when they have ended."""
    for each in tasks:
        each.cancel()
    await settled(*tasks)


async def settled(*tasks: asyncio.Task[Any]) -> None:
    """Return when these tasks have ended, also when this is cancelled meanwhile. Their errors are not raised here."""
    await whole(_ended(tasks))


async def _ended(tasks: tuple[asyncio.Task[Any], ...]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
