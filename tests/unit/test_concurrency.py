"""Work that runs concurrently, and has ended when the function that started it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from quarterdeck.concurrency import ahead, in_thread, settled, until_one_ends


async def waits_for_ever(ended: list[str]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        ended.append("cancelled")


async def test_the_first_one_that_ends_ends_the_others() -> None:
    ended: list[str] = []
    await until_one_ends(waits_for_ever(ended), asyncio.sleep(0))
    assert ended == ["cancelled"]


async def test_what_the_first_one_raises_is_raised_when_the_others_have_ended() -> None:
    ended: list[str] = []

    async def fails() -> None:
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await until_one_ends(waits_for_ever(ended), fails())
    assert ended == ["cancelled"]


@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_thread_has_ended_however_often_its_caller_is_cancelled(times: int) -> None:
    may_end, ended = threading.Event(), threading.Event()

    def works() -> None:
        may_end.wait()
        ended.set()

    caller = asyncio.create_task(in_thread(works))
    for _ in range(times):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    may_end.set()
    await asyncio.wait((caller,))
    assert (caller.cancelled(), ended.is_set()) == (True, True)


async def test_what_is_waited_for_has_ended_and_its_error_is_its_own() -> None:
    async def fails() -> None:
        raise ValueError("its own")

    work = asyncio.create_task(fails())
    await settled(work)
    assert isinstance(work.exception(), ValueError)


class Parts:
    """Numbers that are made one after the other; at ``fails`` an error is raised."""

    def __init__(self, fails: int = 100) -> None:
        self.made: list[int] = []
        self.closed = asyncio.Event()
        self._fails = fails

    async def coming(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(10):
                if number == self._fails:
                    raise ValueError("no more")
                self.made.append(number)
                yield number
        finally:
            self.closed.set()


async def test_parts_are_made_while_an_earlier_one_is_used_and_no_more_than_were_asked_for() -> None:
    parts = Parts()
    async with aclosing(ahead(parts.coming(), 2)) as coming:
        assert await anext(coming) == 0
        for _ in range(50):  # turns of the event loop, many more than it takes
            await asyncio.sleep(0)
        assert parts.made == [0, 1, 2, 3]  # the one in use, two in the queue, and one that waits for its place
        assert [part async for part in coming] == [*range(1, 10)]
    assert parts.closed.is_set()


async def test_what_making_parts_raises_comes_after_the_parts_before() -> None:
    parts = Parts(fails=3)
    async with aclosing(ahead(parts.coming())) as coming:
        assert [await anext(coming) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="no more"):
            await anext(coming)
    assert parts.closed.is_set()


async def test_parts_that_are_not_used_to_their_end_are_closed() -> None:
    parts = Parts()
    async with aclosing(ahead(parts.coming())) as coming:
        await anext(coming)
    assert parts.closed.is_set()
