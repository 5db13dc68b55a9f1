"""Work that runs concurrently, and has ended when the function that started it ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quarterdeck.concurrency import in_thread, settled, until_one_ends


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
