"""The records of drills: what is stored about each, and when."""

from __future__ import annotations

from quarterdeck.api.base import Metadata
from quarterdeck.api.belongings import Drill, DrillPhase, DrillSpec, DrillStatus
from quarterdeck.api.events import EventReason
from quarterdeck.app.drill.plans import DrillPlan
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.workspace.belongings import drills_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import NotFound
from quarterdeck.stores.port import EntryOutcome, EventType, JournalEntry

#: Number of records kept per plane.
KEPT = 20


def with_status(drill: Drill, **changes: object) -> DrillStatus:
    """The stored facts of a drill, with this change."""
    return drill.status.model_copy(update=changes)


async def begun(home: Home, plan: DrillPlan, requester: Requester, *, dangerous: bool, scheduled: bool) -> Drill:
    """Record the start of a drill. All but the last few records are deleted."""
    before = await drills_of(home.store, plan.name)
    number = before[-1].spec.number + 1 if before else 1
    drill = await home.store.create(
        Drill(
            metadata=Metadata(name=f"{plan.name}-drill-{number}"),
            spec=DrillSpec(
                plane=plan.name,
                number=number,
                fail=plan.wish.fail,
                struck=plan.struck,
                hold=plan.hold,
                dangerous=dangerous,
                scheduled=scheduled,
                requested_by=requester.name,
            ),
            status=DrillStatus(started_at=requester.now()),
        )
    )
    await home.store.delete_together(*((Drill, each.name) for each in before[: -KEPT + 1]))
    await _noted(home, drill, EntryOutcome.STARTED, f"drill {plan.wish.fail}: {'; '.join(plan.struck)}", requester)
    return drill


async def ended(home: Home, drill: Drill, status: DrillStatus, requester: Requester) -> Drill:
    """Record the end of a drill. A deleted plane took its drills along."""
    status = status.model_copy(update={"finished_at": requester.now()})
    drill = drill.model_copy(update={"status": status})
    try:
        drill = await home.store.update(drill)
    except NotFound:
        return drill
    passed = status.phase is DrillPhase.PASSED
    words = f"drill {drill.spec.fail} {'is passed' if passed else status.message}"
    await _noted(home, drill, EntryOutcome.DONE if passed else EntryOutcome.FAILED, words, requester)
    kind = EventType.NORMAL if passed else EventType.WARNING
    reason = {DrillPhase.PASSED: EventReason.DRILL_PASSED, DrillPhase.FAILED: EventReason.DRILL_FAILED}.get(
        status.phase, EventReason.DRILL_INTERRUPTED
    )
    await home.store.record(Happening(reason, words, kind).event(drill.spec.plane, requester.now().timestamp()))
    return drill


async def _noted(home: Home, drill: Drill, outcome: EntryOutcome, text: str, requester: Requester) -> None:
    entry = JournalEntry(
        plane=drill.spec.plane, time=requester.now().timestamp(), kind="Drill", text=text, outcome=outcome
    )
    await home.store.append(entry)


async def close_books(home: Home, name: str, requester: Requester) -> None:
    """Mark the drills whose process died: nothing runs them now."""
    for each in await drills_of(home.store, name):
        known = closed(each)
        if known is not each:
            await ended(home, each, known.status, requester)


def closed(drill: Drill) -> Drill:
    """The record of a drill that nothing runs now."""
    if drill.status.phase is not DrillPhase.RUNNING:
        return drill
    status = with_status(drill, phase=DrillPhase.INTERRUPTED, message="its process died")
    return drill.model_copy(update={"status": status})
