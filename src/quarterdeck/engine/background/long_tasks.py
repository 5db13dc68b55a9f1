"""Tasks of a plane that take minutes: they go on beside its steps, and end with its lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from quarterdeck.actions.together import cut_off
from quarterdeck.engine.notices.failures import Failures
from quarterdeck.engine.notices.troubles import Fate, Troubles, fate

#: Seconds for which a task that failed is not begun again, doubled with each failure in a row, and the longest.
SHORTEST = 5.0
LONGEST = 300.0
#: Seconds between two looks whether the lease is still held.
_PULSE = 1.0

#: Returns only if nobody else can hold the plane's lease now; raises LeaseLost.
Check: TypeAlias = Callable[[], Awaitable[None]]
#: What a long task does, from its beginning to its end. It gets the check of the lease, for right before each effect.
#: Nobody waits for it. It can be cancelled at any await, and undoes then what must not stay. The plane may be opened
#: again, or be deleted, while it goes on: it uses what outlives that, such as the store. What it raises is told once,
#: and it is begun again after a while, if it is still due.
Work: TypeAlias = Callable[[Check], Coroutine[Any, Any, None]]


@dataclass(kw_only=True)
class LongTasks:
    """The long tasks of one plane, for as long as its lease is held; at most one of each name at a time."""

    plane: str
    check: Check
    troubles: Troubles
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    #: Of tasks that failed when they last ran: how often in a row, and until when each is not begun again.
    _failed: dict[str, tuple[int, float]] = field(default_factory=dict)
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        self._failures = Failures(troubles=self.troubles, reason="DutyFailed")

    def may_begin(self, name: str) -> bool:
        """Whether none of that name is under way, nor has just failed."""
        _, until = self._failed.get(name, (0, 0.0))
        return name not in self._running and asyncio.get_running_loop().time() >= until

    def begin(self, name: str, work: Work) -> None:
        """Have a task begin that ``may_begin``."""
        assert name not in self._running, f"{name} is under way"
        task = asyncio.create_task(self._whole(name, work), name=f"{name} of {self.plane}")
        self._running[name] = task
        task.add_done_callback(lambda _: self._running.pop(name))

    async def end(self) -> None:
        """Cancel all that are under way, and return when they have ended."""
        await cut_off(*self._running.values())

    async def _whole(self, name: str, work: Work) -> None:
        try:
            await self._while_held(name, work)
        except Exception as error:  # noqa: BLE001 - whatever ails a task, the plane is kept
            await self._ended_badly(name, error)
        else:
            self._failed.pop(name, None)
            self._failures.went_well(name)

    async def _while_held(self, name: str, work: Work) -> None:
        """Do the work, and cancel it when the lease is lost. Raises LeaseLost then, and what the work raises."""
        doing = asyncio.create_task(work(self.check), name=f"{name} of {self.plane}, its work")
        holding = asyncio.create_task(self._held(), name=f"lease of {name} of {self.plane}")
        try:
            await asyncio.wait((doing, holding), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cut_off(doing, holding)
        ended = holding if doing.cancelled() else doing
        ended.result()

    async def _held(self) -> None:
        while True:
            await self.check()
            await asyncio.sleep(_PULSE)

    async def _ended_badly(self, name: str, error: Exception) -> None:
        if fate(error) is Fate.OVER:
            return  # the driver learns of it by itself, and ends the others
        times = self._failed.get(name, (0, 0.0))[0]
        pause = min(SHORTEST * 2**times, LONGEST)
        self._failed[name] = times + 1, asyncio.get_running_loop().time() + pause
        await self._failures.tell(name, error)
