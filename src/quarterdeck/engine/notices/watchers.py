"""Watchers: listeners for the progress of a driver, such as the terminal, or a probe that must react in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.endpoints import Must
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.world import World

_NO_MORE = "it gets no more notifications; the work continues"


class Watcher(Protocol):
    """A listener for progress. One that raises gets no more notifications."""

    async def observed(self, world: World, plan: Plan) -> None:
        """After each observation."""
        ...

    async def begins(self, step: Step) -> None:
        """Before a step."""
        ...

    async def lasts(self, step: Step, seconds: float) -> None:
        """During a step, once it has taken so long."""
        ...

    async def ended(self, step: Step, seconds: float, error: QuarterdeckError | None) -> None:
        """After a step; ``error`` if it failed (it is retried, and reported again only with another outcome)."""
        ...

    async def asks(self, step: Step, must: Must) -> None:
        """Repeatedly until a person has made the manual change of a step; then it ends."""
        ...

    async def troubled(self, error: QuarterdeckError) -> None:
        """When something else than a step failed; it is retried, and reported again only after a success."""
        ...


class Unwatched:
    """A watcher that ignores everything."""

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
    """Several watchers, notified in turn. A driver drops those that raise: its work does not depend on them."""

    def __init__(self, watchers: Iterable[Watcher] = ()) -> None:
        self._watchers = list(watchers)

    async def tell(self, say: Callable[[Watcher], Awaitable[None]]) -> tuple[str, ...]:
        """Notify all of them. Returns a sentence for each that was dropped, of which the others were notified."""
        lost: list[str] = []
        for watcher in tuple(self._watchers):
            try:
                await say(watcher)
            except Exception as error:  # noqa: BLE001 - a broken terminal or probe must not affect clients
                self._watchers.remove(watcher)
                lost.append(_goodbye(watcher, error))
        for text in tuple(lost):
            lost += await self._farewell(QuarterdeckError("notifying a watcher", text, _NO_MORE))
        return tuple(lost)

    async def _farewell(self, error: QuarterdeckError) -> tuple[str, ...]:
        return await self.tell(lambda watcher: watcher.troubled(error))


def _goodbye(watcher: Watcher, error: Exception) -> str:
    words = str(error).splitlines()[:1] or [""]
    return f"{type(watcher).__name__} failed with {type(error).__name__}: {words[0]}"
