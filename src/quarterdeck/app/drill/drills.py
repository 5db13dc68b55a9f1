"""Running a failure drill, and the history of drills."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from quarterdeck.api.belongings import Drill, DrillPhase, DrillStatus
from quarterdeck.app.drill import plans
from quarterdeck.app.drill.books import begun, close_books, closed, ended, with_status
from quarterdeck.app.drill.plans import DrillPlan, planned_on, reported_by_manager
from quarterdeck.drills import judgement
from quarterdeck.drills.aim import Wish
from quarterdeck.drills.judgement import Answered, Sight, sight
from quarterdeck.engine.notices.events import warnings
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.status import Status, StatusReader
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.belongings import drills_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.faults import Fail
from quarterdeck.stores.lease import hold_lease
from quarterdeck.upstream.upstream import Upstream

if TYPE_CHECKING:  # few users run drills, and a probe takes long to load
    from quarterdeck.app.drill.drill_course import Course
    from quarterdeck.probe.result import FailedRequest

#: Only one drill at a time, for all planes: each is evaluated under the assumption that all else is healthy.
LEASE = "drill"
#: Seconds to wait for the plane to recover, and seconds of baseline that clients measure first.
PATIENCE = 180.0
_QUIET = 2.0
#: Seconds to wait for another drill to end: one whose process was killed has ended by then.
_STANDING_BY = 12.0
#: Requests per second and client.
_RATE = 20.0
#: Number of failed requests that are described.
_TOLD = 20


async def planned(home: Home, name: str, wish: Wish, *, hold: float | None) -> DrillPlan:
    """The plan of a drill, and the reasons against it. Changes nothing. See ``Quarterdeck.plan_drill``."""
    if wish.fail is Fail.TOTAL_LOSS:
        from quarterdeck.app.drill.restore_drill import restore_plan

        return await restore_plan(home, name, wish)
    return await plans.planned(home, name, wish, hold=hold)


async def drilled(
    home: Home,
    name: str,
    wish: Wish,
    *,
    requester: Requester,
    upstream: Callable[[], Upstream],
    hold: float | None = None,
    dangerous: bool = False,
    scheduled: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Drill:
    """Run a drill. ``upstream``: opened for what needs programs. See ``Quarterdeck.drill``."""
    await require_plane_in_reach(home, name)
    onlooker = StatusReader(home=home, name=name)
    async with hold_lease(home.store, LEASE, requester.name, wait=_STANDING_BY), AsyncExitStack() as stack:
        stack.push_async_callback(onlooker.close)
        await close_books(home, name, requester)
        if wish.fail is Fail.TOTAL_LOSS:
            from quarterdeck.app.drill.restore_drill import restore_drilled, restore_plan

            its = await restore_plan(home, name, wish)
            return await restore_drilled(home, upstream(), its, requester=requester, scheduled=scheduled, tell=tell)
        status = await onlooker.look()
        plan = await planned_on(home, wish, hold, status)
        plan.require(dangerous=dangerous)
        drill = await begun(home, plan, requester, dangerous=dangerous, scheduled=scheduled)
        try:
            course = await _run(home, plan, onlooker, _seen(plan, status), tell)
        except BaseException as error:
            words = str(error) if isinstance(error, QuarterdeckError) else "it was interrupted"
            await ended(home, drill, with_status(drill, phase=DrillPhase.INTERRUPTED, message=words), requester)
            raise
        return await ended(home, drill, _judged(drill, plan, course), requester)


async def history(home: Home, name: str) -> tuple[Drill, ...]:
    """The recorded drills of a plane, the oldest first; one whose process died is marked as such."""
    await recorded.existing(home.store, name)
    found = await drills_of(home.store, name)
    if await home.store.lease(LEASE) is None:
        return tuple(closed(each) for each in found)
    return found


def _seen(plan: DrillPlan, status: Status) -> Sight:
    at = asyncio.get_running_loop().time()
    reported = reported_by_manager(plan.wish.fail, status.plane)
    return sight(status.world, at=at, done=status.plan.done, troubles=warnings(status.world), reported=reported)


async def _run(
    home: Home, plan: DrillPlan, onlooker: StatusReader, before: Sight, tell: Callable[[str], None]
) -> Course:
    from quarterdeck.app.drill.drill_course import Drilling
    from quarterdeck.app.onlookers import probing

    async def looked() -> Sight:
        # First: the standby may take over within a second.
        unkept = await plan.keeping.why_not(plan.name) if plan.keeping is not None else ""
        seen = _seen(plan, await onlooker.look())
        return replace(seen, troubles=seen.troubles | {unkept}) if unkept else seen

    drilling = Drilling(
        look=looked,
        faults=plan.faults,
        hold=plan.hold,
        patience=PATIENCE,
        quiet=_QUIET,
        tell=tell,
        clock=asyncio.get_running_loop().time,
    )
    async with probing(home, plan.name, rate=_RATE, on_failure=None, on_summary=None) as clients:
        tell("clients are running")
        return await drilling.run(before, clients)


def _judged(drill: Drill, plan: DrillPlan, course: Course) -> DrillStatus:
    result, struck = course.result, course.struck
    samples = result.samples
    answers = [
        Answered(sent=at - ms / 1e3, at=at, ok=ok)
        for at, ms, ok in zip(samples.at, samples.ms, samples.ok, strict=True)
    ]
    redundant = judgement.redundant(course.before, course.sights, struck)
    find = judgement.reported if plan.found.by_report else judgement.detected
    detected = find(course.before, course.sights, struck)
    why = judgement.verdict(
        drill.spec.fail,
        plan.found,
        detected_after=detected,
        redundant_after=redundant,
        lost=result.writes.lost,
        missed=result.watches.missed,
        audited=result.writes.audited,
    )
    during = [each.overall for each in result.periods if each.start >= course.marked]
    return with_status(
        drill,
        phase=DrillPhase.FAILED if why else DrillPhase.PASSED,
        detected=_rounded(detected),
        served_again=_rounded(judgement.served_again(answers, course.marked)),
        last_failure=_rounded(judgement.last_failure(answers, course.marked)),
        last_failed_sent=_rounded(judgement.last_failed_sent(answers, course.marked)),
        undone=_rounded(course.undone - struck if course.undone is not None else None),
        redundant=_rounded(redundant),
        requests=sum(each.requests for each in during),
        failed=sum(each.failures for each in during),
        longest_stall_milliseconds=round(max((each.stall_ms for each in during), default=0.0), 1),
        acknowledged=result.writes.acknowledged,
        lost=result.writes.lost,
        missed=result.watches.missed,
        failures=tuple(_failure(each, course.marked) for each in result.failures if each.at >= course.marked)[:_TOLD],
        message=why,
        left=course.left,
    )


def _failure(failure: FailedRequest, marked: float) -> str:
    sent, ended = failure.sent - marked, failure.at - marked
    what = f"{failure.kind} {failure.request} by {failure.address or 'no address'}"
    return f"sent at {sent:.2f} s, failed at {ended:.2f} s: {what}: {failure.reason}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
