"""One look for all who ask at the same time: none of them is told of anything from before it asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from quarterdeck.sites.base.site import Shared


@dataclass
class Slow:
    """Each look takes until it is let go; it sees the number that was there when it began."""

    now: int = 0
    looks: int = 0
    go: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> int:
        self.looks += 1
        self.begun.set()
        seen = self.now
        await self.go.wait()
        return seen


async def test_ten_planes_cost_one_look() -> None:
    slow = Slow()
    shared = Shared(slow)
    slow.go.set()
    assert await asyncio.gather(*(shared() for _ in range(10))) == [0] * 10
    assert slow.looks == 1


async def test_a_look_that_is_under_way_says_nothing_to_who_comes_later() -> None:
    slow = Slow()
    shared = Shared(slow)
    first = asyncio.ensure_future(shared())
    await slow.begun.wait()
    slow.now = 1  # what a step of the second one has just changed
    others = [asyncio.ensure_future(shared()) for _ in range(3)]
    await asyncio.sleep(0)
    assert slow.looks == 1, "one after the other"
    slow.go.set()
    assert await first == 0
    assert await asyncio.gather(*others) == [1, 1, 1]
    assert slow.looks == 2


async def test_a_look_goes_on_for_the_others_when_one_is_gone_and_ends_with_the_last() -> None:
    slow = Slow()
    shared = Shared(slow)
    one, other = (asyncio.ensure_future(shared()) for _ in range(2))
    await slow.begun.wait()
    one.cancel()
    await asyncio.sleep(0)
    assert not other.done()
    other.cancel()
    await asyncio.gather(one, other, return_exceptions=True)
    assert len(asyncio.all_tasks()) == 1, "nothing is left behind"
    slow.go.set()
    assert await shared() == 0, "and the next one looks again"


async def test_who_waits_for_its_turn_may_give_up() -> None:
    slow = Slow()
    shared = Shared(slow)
    first = asyncio.ensure_future(shared())
    await slow.begun.wait()
    second = asyncio.ensure_future(shared())
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    slow.go.set()
    assert await asyncio.gather(first, shared()) == [0, 0]
    assert slow.looks == 2


async def test_what_a_look_raises_all_are_told() -> None:
    async def fails() -> int:
        raise LookupError("nothing there")

    shared = Shared(fails)
    found = await asyncio.gather(shared(), shared(), return_exceptions=True)
    assert [str(each) for each in found] == ["nothing there"] * 2
    with pytest.raises(LookupError):
        await shared()
