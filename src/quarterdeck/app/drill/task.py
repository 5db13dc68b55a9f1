"""The scheduled drills of a plane's spec: run when they are due, and reported by a condition."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.api.belongings import Drill
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.events import EventReason
from quarterdeck.app.drill.drills import drilled
from quarterdeck.drills.aim import Wish
from quarterdeck.drills.schedule import AGAIN, due, proven, restore_proven
from quarterdeck.engine.background.tasks import BackgroundTask, Check, LongTask, ShortTurn, Work
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.notices.troubles import MET, in_words
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace.belongings import drills_of
from quarterdeck.model.faults import Fail
from quarterdeck.model.world import World

#: Runs one drill of a plane.
Drills = Callable[[str, Fail], Awaitable[Drill]]


def drills_by(engine: Engine) -> Drills:
    """Drills that run in this process, next to its managers, which heal what breaks."""

    async def drill(name: str, fail: Fail) -> Drill:
        return await drilled(
            engine.home,
            name,
            Wish(fail=fail),
            requester=engine.requester,
            upstream=lambda: engine.upstream,
            scheduled=True,
        )

    return drill


def drill_tasks(drill: Drills) -> tuple[BackgroundTask, ...]:
    """The background tasks of one plane that run its drills and report what they have proven."""
    return (
        ShortTurn(name="what drills have proven", turn=TellProven().turn),
        LongTask(name="drills", due=MakeDrills(drill=drill).due),
    )


@dataclass(kw_only=True)
class TellProven:
    """Reports the proof by a condition. ``now`` is an aware datetime."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. It reports nothing once nothing has to be proven."""
        schedules = plane.resource.spec.drills
        if plane.resource.metadata.deletion_timestamp is not None or not (schedules or _has_conditions(plane)):
            return
        drills = await drills_of(plane.store, plane.name)
        await tell_condition(plane, ConditionType.DRILLED, proven(schedules, drills, self.now()) if schedules else None)
        restores = [each for each in schedules if each.fail is Fail.TOTAL_LOSS]
        shown = restore_proven(restores, drills, self.now()) if restores else None
        await tell_condition(plane, ConditionType.RESTORE_PROVEN, shown)


@dataclass(kw_only=True)
class MakeDrills:
    """Runs one drill at a time, when it is due, in parallel with the plane's steps, which heal what breaks. A refusal
    is reported, and retried after a while. ``now`` is an aware datetime.
    """

    drill: Drills
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _not_before: dict[Fail, datetime] = field(default_factory=dict)

    async def due(self, plane: Plane, world: World) -> Work | None:
        """See ``LongTask``."""
        schedules, metadata = plane.resource.spec.drills, plane.resource.metadata
        if metadata.deletion_timestamp is not None or not schedules:
            return None
        drills = await drills_of(plane.store, plane.name)
        open_ = [each for each in schedules if self._may(each.fail)]
        fail = due(open_, drills, now=self.now(), made=metadata.creation_timestamp)
        return partial(self._make, plane, fail) if fail is not None else None

    def _may(self, fail: Fail) -> bool:
        return fail not in self._not_before or self.now() >= self._not_before[fail]

    async def _make(self, plane: Plane, fail: Fail, check: Check) -> None:
        """Run a drill; an obstacle becomes an event. However this ends, the fault is undone first."""
        await check()
        self._not_before[fail] = self.now() + _pause(plane, fail)
        try:
            await self.drill(plane.name, fail)
        except MET as error:
            words = f"drill {fail} was not run: {in_words(error)}"
            await plane.store.record(Happening(EventReason.DRILL_REFUSED, words).event(plane.name, plane.clock()))


def _has_conditions(plane: Plane) -> bool:
    """Whether a condition is set, though no drills may be scheduled any longer."""
    kinds = (ConditionType.DRILLED, ConditionType.RESTORE_PROVEN)
    return any(each.type in kinds for each in plane.resource.status.conditions)


def _pause(plane: Plane, fail: Fail) -> timedelta:
    """How long after a drill the same one may be retried, whatever its outcome."""
    every = (each.every for each in plane.resource.spec.drills if each.fail is fail)
    return min(AGAIN, timedelta(seconds=min(every, default=AGAIN.total_seconds())))
