"""Controllers, the sets that they run in, and the lock that each checks while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from quarterdeck.errors import InvalidInput, LeaseLost


class Held:
    """A held lock. ``token`` is of this holder alone, and grows with each one: send it with each write, and make the
    receiver refuse one that is lower than any it has seen.
    """

    def __init__(self, lock: str, token: int, holder: str, left: Callable[[], float]) -> None:
        """``left``: seconds for which no other process may act under the lock."""
        self.lock = lock
        self.token = token
        self.holder = holder
        self._left = left

    @property
    def left(self) -> float:
        """Seconds for which no other process may act, if the lock is not renewed; 0 when it may be lost."""
        return max(0.0, self._left())

    def check(self) -> None:
        """Return only if no other process may act under the lock now. Call it right before each action.

        Raises LeaseLost, also when this process was frozen and has just resumed. It can still be frozen right after
        this: against that only the token helps.
        """
        if self._left() <= 0:
            raise LeaseLost(
                f"acting under lock {self.lock!r} as {self.holder}",
                "it was not renewed in time, or released",
                "stop; it starts again when the lock is held again",
            )


#: Runs while a lock is held, until it is cancelled. It calls ``Held.check`` before each action.
Controller = Callable[[Held], Awaitable[None]]

#: The recommended number of migration locks of a manager (the source's proposal: "for performance reasons").
RECOMMENDED = 2


@dataclass(frozen=True, kw_only=True)
class ControllerSet:
    """The controllers that run under one lock, by name. Their names are stored with the lock and never change: a
    process with other controllers for that name never takes it.
    """

    lock: str
    controllers: Mapping[str, Controller]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple(sorted(self.controllers))


def check_sets(primary: ControllerSet, migration: Sequence[ControllerSet]) -> tuple[str, ...]:
    """Warnings about the sets of a manager, in sentences. The primary one may have no controllers of its own.

    Raises InvalidInput for what the proposal rules out: two locks of one name, a controller in two sets; and for a
    migration lock under which nothing would run.
    """
    doing = "setting up the locks of a controller manager"
    locks: set[str] = set()
    owners: dict[str, str] = {}
    for each in (primary, *migration):
        if not each.lock or each.lock in locks:
            raise InvalidInput(doing, f"two locks have the name {each.lock!r}" if each.lock else "a lock has no name")
        locks.add(each.lock)
        if each is not primary and not each.controllers:
            raise InvalidInput(doing, f"nothing runs under {each.lock!r}", "give it a controller, or leave it out")
        for name in each.names:
            if name in owners:
                seen = f"controller {name!r} is in the sets of {owners[name]!r} and of {each.lock!r}"
                raise InvalidInput(doing, seen, "a controller belongs to one set")
            owners[name] = each.lock
    if len(migration) > RECOMMENDED:
        return (f"{len(migration)} migration locks are held at once; at most {RECOMMENDED} are recommended",)
    return ()


def check_unchanged(before: Sequence[ControllerSet], after: Sequence[ControllerSet]) -> None:
    """Raises InvalidInput if a set would have other controllers than before."""
    known = {each.lock: each.names for each in before}
    for each in after:
        if known.get(each.lock, each.names) != each.names:
            seen = (
                f"{each.lock!r} was used with {', '.join(known[each.lock])}, and would be with {', '.join(each.names)}"
            )
            raise InvalidInput("changing the locks of a controller manager", seen, "use a lock of another name")


class ControllerTasks:
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
        """Tell them all to stop."""
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
        """The error of one of them, if any."""
        return next((error for error in self._errors() if not isinstance(error, LeaseLost)), None)

    def _errors(self) -> list[BaseException]:
        ended = (each for each in self._tasks if each.done() and not each.cancelled())
        return [error for each in ended if (error := each.exception()) is not None]


async def _run(controller: Controller, held: Held) -> None:
    await controller(held)
