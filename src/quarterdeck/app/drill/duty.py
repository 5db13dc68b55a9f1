"""The drills that a plane's spec asks for: made when they are due, and told of by a condition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.api.drill import Drill
from quarterdeck.app.drill.drills import drilled
from quarterdeck.drills.aim import Wish
from quarterdeck.drills.schedule import AGAIN, due, proven
from quarterdeck.engine.notices.conditions import DRILLED
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.notices.troubles import MET, in_words
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace.belongings import drills_of
from quarterdeck.model.faults import Fail
from quarterdeck.model.world import World

#: Makes one drill of a plane.
Drills = Callable[[str, Fail], Awaitable[Drill]]


def drills_by(engine: Engine) -> Drills:
    """Drills that are made from this process, beside its keepers: these are to mend what breaks."""

    async def drill(name: str, fail: Fail) -> Drill:
        return await drilled(engine.home, name, Wish(fail=fail), asker=engine.asker, scheduled=True)

    return drill


@dataclass(kw_only=True)
class DrillDuty:
    """A duty: one drill at a time is begun when it is due, and goes on beside the plane's steps, which are to mend what
    breaks. What is refused is told of, and tried again after a while. ``begun``: all that were begun and go
    on, of all planes; whoever ends this process ends them. ``now`` is an aware datetime.
    """

    drill: Drills
    begun: set[asyncio.Task[None]] = field(default_factory=set)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    name: str = "drills"
    _under_way: asyncio.Task[None] | None = None
    _not_before: dict[Fail, datetime] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``Duty``."""
        schedules, metadata = plane.resource.spec.drills, plane.resource.metadata
        if metadata.deletion_timestamp is not None or not (schedules or _told(plane)):
            return
        drills = await drills_of(plane.store, plane.name)
        await self._tell(plane, drills)
        if self._under_way is not None:
            if not self._under_way.done():
                return
            ended, self._under_way = self._under_way, None
            ended.result()  # what nobody could foresee is told as what fails in a turn
        open_ = [each for each in schedules if self._may(each.fail)]
        fail = due(open_, drills, now=self.now(), made=metadata.creation_timestamp)
        if fail is not None:
            await plane.check()
            self._under_way = asyncio.create_task(self._make(plane, fail), name=f"drill {fail} of {plane.name}")
            self.begun.add(self._under_way)
            self._under_way.add_done_callback(self.begun.discard)

    def _may(self, fail: Fail) -> bool:
        return fail not in self._not_before or self.now() >= self._not_before[fail]

    async def _make(self, plane: Plane, fail: Fail) -> None:
        """Make a drill; what stands in its way is an event."""
        self._not_before[fail] = self.now() + _pause(plane, fail)
        try:
            await self.drill(plane.name, fail)
        except MET as error:
            words = f"drill {fail} was not made: {in_words(error)}"
            await plane.store.record(Happening("DrillRefused", words).event(plane.name, plane.clock()))

    async def _tell(self, plane: Plane, drills: tuple[Drill, ...]) -> None:
        """Write down what is proven, if that has changed; nothing where nothing is to be any more."""
        schedules = plane.resource.spec.drills
        await tell_condition(plane, DRILLED, proven(schedules, drills, self.now()) if schedules else None)


def _told(plane: Plane) -> bool:
    """Whether the condition is there, though there may be no drills to be made any more."""
    return any(each.type == DRILLED for each in plane.resource.status.conditions)


def _pause(plane: Plane, fail: Fail) -> timedelta:
    """How long after a drill the same may be tried again, whatever became of it."""
    every = (each.every for each in plane.resource.spec.drills if each.fail is fail)
    return min(AGAIN, timedelta(seconds=min(every, default=AGAIN.total_seconds())))
