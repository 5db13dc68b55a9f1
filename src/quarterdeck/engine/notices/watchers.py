"""Who is told what a driver does: the terminal, a probe that has to be told in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World

_NO_MORE = "it is told nothing more; the work goes on"


class Watcher(Protocol):
    """Somebody who is told what happens. One that raises is told nothing more."""

    async def observed(self, world: World, plan: Plan) -> None:
        """After each observation."""
        ...

    async def begins(self, step: Step) -> None:
        """Before a step."""
        ...

    async def lasts(self, step: Step, seconds: float) -> None:
        """While a step is under way, once it has taken so long."""
        ...

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        """After a step; ``error`` when it failed (it is tried again, and told again only when that ends otherwise)."""
        ...

    async def asks(self, step: Step, must: Must) -> None:
        """Again and again until a person has done what a step needs; then it ends."""
        ...

    async def troubled(self, error: QuarterdeckError) -> None:
        """When something else failed than a step; it is tried again, and not told again before it went well."""
        ...


class Unwatched:
    """Nobody is told."""

    async def observed(self, world: World, plan: Plan) -> None:
        """See ``Watcher``."""

    async def begins(self, step: Step) -> None:
        """See ``Watcher``."""

    async def lasts(self, step: Step, seconds: float) -> None:
        """See ``Watcher``."""

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        """See ``Watcher``."""

    async def asks(self, step: Step, must: Must) -> None:
        """See ``Watcher``."""

    async def troubled(self, error: QuarterdeckError) -> None:
        """See ``Watcher``."""


class Watchers:
    """Several watchers, told in turn. A driver goes on without those that raise: nobody's work depends on them."""

    def __init__(self, watchers: Iterable[Watcher] = ()) -> None:
        self._watchers = list(watchers)

    async def tell(self, say: Callable[[Watcher], Awaitable[None]]) -> tuple[str, ...]:
        """Tell all of them. Returns a sentence for each that is left out from now on, which the others were told."""
        lost: list[str] = []
        for watcher in tuple(self._watchers):
            try:
                await say(watcher)
            except Exception as error:  # noqa: BLE001 - whatever ails a terminal or a probe, clients must not suffer
                self._watchers.remove(watcher)
                lost.append(_goodbye(watcher, error))
        for text in tuple(lost):
            lost += await self._farewell(QuarterdeckError("telling a watcher", text, _NO_MORE))
        return tuple(lost)

    async def _farewell(self, error: QuarterdeckError) -> tuple[str, ...]:
        return await self.tell(lambda watcher: watcher.troubled(error))


def _goodbye(watcher: Watcher, error: Exception) -> str:
    words = str(error).splitlines()[:1] or [""]
    return f"{type(watcher).__name__} failed with {type(error).__name__}: {words[0]}"
