"""The progress of a plane that another process drives: its steps, its waits, and its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from quarterdeck.api.base import ConditionStatus, find_condition
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.events import EventReason
from quarterdeck.api.operation import Operation, OperationPhase
from quarterdeck.engine.notices.conditions import why_stalled
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.errors import Paused, QuarterdeckError, Unavailable, error_class
from quarterdeck.stores.port import EntryOutcome, EventType, JournalEntry, Store

#: Events that repeat the journal or the conditions.
_TOLD_ELSEWHERE = frozenset({EventReason.STEP_FAILED, EventReason.RECONCILE_ERROR, EventReason.WATCHER_LOST})
#: Age in seconds up to which an operation counts as just begun.
_JUST = 5.0


class Onlooker(Protocol):
    """Receives, as text, what another process does."""

    def begins_to(self, words: str) -> None:
        """A step began."""
        ...

    def did(self, words: str, seconds: float, error: str) -> None:
        """A step ended; ``error`` when it failed, and is retried."""
        ...

    def waits(self, words: str) -> None:
        """The plane waits for this now."""
        ...

    def wants(self, wish: str) -> None:
        """An action is required of a person."""
        ...

    def notes(self, words: str) -> None:
        """Something is in progress, and may take a while."""
        ...

    def warns(self, words: str) -> None:
        """Something is unhealthy, or failed and is retried."""
        ...


@dataclass(kw_only=True)
class Progressed:
    """Reports to an onlooker what happens to a plane, from its stored state. ``after``: the last journal entry that was
    reported.
    """

    store: Store
    plane: str
    onlooker: Onlooker | None
    after: int
    since: float
    _warned: set[str] = field(default_factory=set)

    @classmethod
    async def of(cls, store: Store, plane: str, onlooker: Onlooker | None) -> Progressed:
        """From now on; for an operation that has not begun, or has just begun, from its beginning."""
        last = await store.journal(plane, limit=1)
        after = last[-1].id if last else 0
        now = datetime.now(UTC)
        running = await recorded.current(store, plane)
        if running is not None:
            first = await store.journal(plane, operation=running.metadata.name)
            began = running.status.started_at
            if began is None or (first and now.timestamp() - first[0].time < _JUST):
                after = first[0].id - 1 if first else after
        return cls(store=store, plane=plane, onlooker=onlooker, after=after, since=now.timestamp())

    async def look(self, plane: ControlPlane | None) -> None:
        """Report what is new, and what ``plane`` waits for."""
        if self.onlooker is None:
            return
        for entry in await self.store.journal(self.plane, after=self.after):
            self.after = entry.id
            _tell(self.onlooker, entry)
        for event in await self.store.events(self.plane):
            if event.last >= self.since and event.message not in self._warned:
                self._warned.add(event.message)
                if event.reason == EventReason.MANUAL_CHANGE_REQUIRED:
                    self.onlooker.wants(event.message)
                elif event.reason == EventReason.SENDS_PROGRAM:
                    self.onlooker.notes(event.message)
                elif event.type is EventType.WARNING and event.reason not in _TOLD_ELSEWHERE:
                    self.onlooker.warns(event.message)
        reconciling = find_condition(plane.status.conditions, ConditionType.RECONCILING) if plane is not None else None
        if reconciling is not None and reconciling.status is ConditionStatus.TRUE and reconciling.message:
            self.onlooker.waits(reconciling.message)


def _tell(onlooker: Onlooker, entry: JournalEntry) -> None:
    match entry.outcome:
        case EntryOutcome.STARTED:
            onlooker.begins_to(entry.text)
        case EntryOutcome.DONE:
            onlooker.did(entry.text, _seconds(entry), "")
        case EntryOutcome.FAILED:
            onlooker.did(entry.text, _seconds(entry), str(entry.detail.get("error", "it failed")))
        case EntryOutcome.NOTED:
            if entry.kind == "Trouble":
                onlooker.warns(f"{entry.text}; retrying")


def _seconds(entry: JournalEntry) -> float:
    seconds = entry.detail.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else 0.0


def ended(plane: ControlPlane, operation: Operation | None) -> bool:
    """Whether nothing is left to do to a plane that another process drives, by the last observation of that process.
    Raises the error of the operation in progress, and Paused.
    """
    if plane.metadata.deletion_timestamp is not None:
        return False
    if paused := operations.why_paused(plane, datetime.now(UTC)):
        raise Paused(f"driving plane {plane.name}", paused, f"continue it with 'resume {plane.name}'")
    if operation is not None and operation.status.phase is OperationPhase.FAILED and why_stalled(plane):
        raise stored_error(operation)
    ready = find_condition(plane.status.conditions, ConditionType.READY)
    if operation is not None or ready is None or ready.observed_generation != plane.metadata.generation:
        return False
    return ready.status is ConditionStatus.TRUE or ready.reason == ConditionReason.NO_LEADER


def still_awaited(plane: ControlPlane) -> str:
    """What a plane waits for, or needs a person for, as its driver last reported; "" for nothing."""
    if stalled := why_stalled(plane):
        return stalled
    reconciling = find_condition(plane.status.conditions, ConditionType.RECONCILING)
    return reconciling.message if reconciling is not None and reconciling.status is ConditionStatus.TRUE else ""


def unled(plane: str, why: str) -> Unavailable:
    """The error of a command that waited for a plane whose controllers have no leader: waiting longer does not help."""
    return Unavailable(f"waiting for plane {plane}", f"it runs as declared, and {why}", f"see 'status {plane}'")


def stored_error(operation: Operation) -> QuarterdeckError:
    """The error of an operation in another process, as it would have been raised in this one."""
    doing, _, seen = operation.status.message.partition(": ")
    return error_class(operation.status.error)(doing, seen)
