"""A load balancer whose program exits repeatedly is taken down like one that runs: nothing of it is left that its
supervisor could start for a plane that is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from loop.lives import EAST1, EAST3, WEST3, Life, Story, Wish, many


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@dataclass(kw_only=True)
class Crashing(Life):
    """A life in which the load balancer at ``site`` exits repeatedly, from the first moment on."""

    site: str

    async def _lived(self) -> None:
        balancer = self.world.balancers[self.site]
        balancer.fails = True
        balancer.crash()
        await super()._lived()

    def left(self) -> list[str]:
        """The sites where a supervisor knows of a load balancer."""
        return [name for name, each in self.world.balancers.items() if each.there]


@dataclass(kw_only=True)
class Aborted(Crashing):
    """One whose user waits for the plane at the other site in vain, and goes back."""

    seen: tuple[str, ...] = ()

    async def _driven(self) -> bool:
        if len(self.wishes) > 1:
            return await super()._driven()
        driving = asyncio.create_task(super()._driven(), name="the first driver")
        async with asyncio.timeout(120):
            while not self.world.balancers[self.site].there:  # noqa: ASYNC110 - it is looked at from outside
                await asyncio.sleep(0.1)
        await asyncio.sleep(10)
        self.seen = tuple(self.left())
        await self._abort()
        return await driving


@pytest.mark.parametrize("start", [EAST1, EAST3], ids=str)
def test_a_deleted_plane_leaves_nothing_of_a_load_balancer_that_ends_again_and_again(start: Wish) -> None:
    life = Crashing(story=Story("delete", start, Wish()), site="east")
    life.run()
    assert life.left() == []


def test_an_aborted_move_leaves_nothing_of_a_load_balancer_that_ends_again_and_again() -> None:
    life = Aborted(story=Story("3 to 3", EAST3, WEST3, EAST3), site="west")
    life.run()
    assert life.seen == ("east", "west")
    assert life.left() == ["east"]


def test_a_plane_that_is_deleted_before_its_first_load_balancer_has_run_leaves_nothing_of_that() -> None:
    life = Aborted(story=Story("create", None, EAST3, Wish()), site="east")
    life.run()
    assert life.seen == ("east",)
    assert life.left() == []
