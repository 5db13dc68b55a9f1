"""The controllers of one lock while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quarterdeck.errors import LeaseLost
from quarterdeck.leases.held import Held
from quarterdeck.leases.sets import Controller, ControllerSet


class Crew:
    """A task for each controller, from when the lock is held until they have all ended."""

    def __init__(self, controllers: ControllerSet, held: Held, news: Callable[[], None]) -> None:
        """``news`` is called whenever one of them ends."""
        self._tasks = [
            asyncio.create_task(_run(controller, held), name=f"controller {name}")
            for name, controller in sorted(controllers.controllers.items())
        ]
        for each in self._tasks:
            each.add_done_callback(lambda _: news())

    def stop(self) -> None:
        """Tell them all to end."""
        for each in self._tasks:
            each.cancel()

    @property
    def ended(self) -> bool:
        """Whether none of them acts any more."""
        return all(each.done() for each in self._tasks)

    @property
    def lost(self) -> bool:
        """Whether one of them has found that it may not act any more, and has ended by itself."""
        return any(isinstance(error, LeaseLost) for error in self._errors())

    @property
    def error(self) -> BaseException | None:
        """What one of them has failed with, if any has."""
        return next((error for error in self._errors() if not isinstance(error, LeaseLost)), None)

    def _errors(self) -> list[BaseException]:
        ended = (each for each in self._tasks if each.done() and not each.cancelled())
        return [error for each in ended if (error := each.exception()) is not None]


async def _run(controller: Controller, held: Held) -> None:
    await controller(held)
