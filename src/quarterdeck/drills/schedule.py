"""The drill that is due, and the proof that past drills give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from quarterdeck.api.base import ConditionStatus
from quarterdeck.api.belongings import Drill, DrillPhase, DrillStatus
from quarterdeck.api.conditions import ConditionReason
from quarterdeck.api.plane.drills import DrillSchedule
from quarterdeck.model.faults import Fail

#: Seconds after the creation of a plane, and after an incomplete drill, before the next one.
FIRST = timedelta(hours=1)
AGAIN = timedelta(hours=1)


def due(
    schedules: Sequence[DrillSchedule], drills: Sequence[Drill], *, now: datetime, made: datetime | None
) -> Fail | None:
    """The failure that is due now, if any: the most overdue one inside its window. ``made``: the creation time of the
    plane.
    """
    waiting = [
        (since, each.fail)
        for each in schedules
        if each.open_at(now) and (since := _since(each, drills, now, made)) is not None
    ]
    return min(waiting, key=lambda each: each[0])[1] if waiting else None


def proven(
    schedules: Sequence[DrillSchedule], drills: Sequence[Drill], now: datetime
) -> tuple[ConditionStatus, ConditionReason, str]:
    """The condition that says when each failure was last proven: its status, reason and message."""
    lasts = {each.fail: _last(drills, each.fail) for each in schedules}
    words = [f"{fail}: {_last_run(last)}" for fail, last in lasts.items()]
    failed = [fail for fail, last in lasts.items() if last is not None and last.status.phase is DrillPhase.FAILED]
    late = [each.fail for each in schedules if _late(each, lasts[each.fail], now)]
    if failed:
        return ConditionStatus.FALSE, ConditionReason.DRILL_FAILED, "; ".join(words)
    if late:
        return ConditionStatus.FALSE, ConditionReason.OVERDUE, "; ".join(words)
    if any(last is None for last in lasts.values()):
        return ConditionStatus.UNKNOWN, ConditionReason.NOT_PROVEN, "; ".join(words)
    return ConditionStatus.TRUE, ConditionReason.PROVEN, "; ".join(words)


def restore_proven(
    schedules: Sequence[DrillSchedule], drills: Sequence[Drill], now: datetime
) -> tuple[ConditionStatus, ConditionReason, str]:
    """The condition that says what the last restore beside the plane has shown."""
    status, reason, words = proven(schedules, drills, now)
    last = _last(drills, Fail.TOTAL_LOSS)
    if last is not None and last.status.phase is DrillPhase.PASSED:
        words = f"{_began(last):%F %T %Z}: {restore_words(last.status)}"
    return status, reason, words


def restore_words(done: DrillStatus) -> str:
    """What a restore beside the plane has shown."""
    return (
        f"{done.objects:,} objects of the plane were served from its backup after {done.restored or 0.0:.1f} s;"
        f" the last {done.lost_seconds or 0.0:.1f} s of writes were not in it"
    )


def _since(schedule: DrillSchedule, drills: Sequence[Drill], now: datetime, made: datetime | None) -> datetime | None:
    """Since when a drill is due; None: it is not."""
    tried = [each for each in drills if each.spec.fail is schedule.fail and each.status.started_at is not None]
    every = timedelta(seconds=schedule.every)
    if not tried:
        since = (made or now) + min(FIRST, every)
    else:
        last = max(tried, key=_began)
        over = last.status.phase in (DrillPhase.PASSED, DrillPhase.FAILED)
        since = _began(last) + (every if over else min(AGAIN, every))
    return since if since <= now else None


def _began(drill: Drill) -> datetime:
    assert drill.status.started_at is not None
    return drill.status.started_at


def _last(drills: Sequence[Drill], fail: Fail) -> Drill | None:
    """The last completed one."""
    over = (DrillPhase.PASSED, DrillPhase.FAILED)
    found = [each for each in drills if each.spec.fail is fail and each.status.phase in over]
    return max((each for each in found if each.status.started_at is not None), key=_began, default=None)


def _late(schedule: DrillSchedule, last: Drill | None, now: datetime) -> bool:
    """Whether it was not proven for twice its interval."""
    return last is not None and now - _began(last) > 2 * timedelta(seconds=schedule.every)


def _last_run(last: Drill | None) -> str:
    if last is None:
        return "never"
    when = f"{_began(last):%F %T %Z}"
    return when if last.status.phase is DrillPhase.PASSED else f"failed {when}: {last.status.message}"
