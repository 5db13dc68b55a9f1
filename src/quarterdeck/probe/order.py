"""Whether a watcher sees every write once and in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quarterdeck.probe.ledger import ObjectSlot

_KEPT_EXAMPLES = 20
_MOST_PENDING = 100_000


@dataclass(slots=True)
class _Due:
    slot: ObjectSlot
    started: float
    acknowledged: bool = False


class EventCheck:
    """One watcher's ledger. Writers report the writes, and the watcher the events.

    Events of one watch come in the order of their resourceVersion (the etcd revision), also across streams when each
    resumes from the last event.
    """

    def __init__(self) -> None:
        self.revision = 0  # of the last event or list: where a watch resumes
        self.events = 0
        self.missed = 0
        self.duplicated = 0
        self.out_of_order = 0
        self.examples: list[str] = []
        self._due: dict[tuple[int, int], _Due] = {}
        self._last: dict[ObjectSlot, int] = {}

    def begun(self, slot: ObjectSlot, number: int, started: float) -> None:
        """A write has begun: its event may come from now on."""
        self._due[slot.writer, number] = _Due(slot, started)
        if len(self._due) > _MOST_PENDING:
            oldest = next(iter(self._due))
            self._missed(oldest, self._due.pop(oldest), "not received for very long")

    def acknowledged(self, slot: ObjectSlot, number: int) -> None:
        """The write was acknowledged: its event must come."""
        due = self._due.get((slot.writer, number))
        if due is not None:
            due.acknowledged = True

    def failed(self, slot: ObjectSlot, number: int) -> None:
        """The write was not acknowledged: its event may come or not."""
        self._due.pop((slot.writer, number), None)

    def event(self, slot: ObjectSlot, number: int, revision: int) -> float | None:
        """An event arrived; returns when its write was begun, if it was due."""
        self.events += 1
        last = self._last.get(slot, 0)
        due = self._due.pop((slot.writer, number), None)
        if revision <= self.revision or number <= last:
            if due is None:
                self.duplicated += 1
                self._note(f"{slot.name}: number {number} (revision {revision}) came again")
            else:
                self.out_of_order += 1
                self._note(f"{slot.name}: number {number} (revision {revision}) came after {self.revision}")
        self.revision = max(revision, self.revision)
        self._last[slot] = max(number, last)
        return None if due is None else due.started

    def bookmark(self, revision: int) -> None:
        """The server reported that there is nothing up to ``revision``."""
        self.revision = max(revision, self.revision)

    def listed(self, objects: Mapping[ObjectSlot, int], revision: int) -> None:
        """All objects were listed, at first or after 410 Gone. What newer writes hide was never received."""
        for slot, number in objects.items():
            self._last[slot] = max(number, self._last.get(slot, 0))
            self._due.pop((slot.writer, number), None)
        for key, due in list(self._due.items()):
            if key[1] < objects.get(due.slot, 0):
                del self._due[key]
                if due.acknowledged:
                    self._missed(key, due, "hidden by the list after 410 Gone")
        self.revision = revision

    @property
    def caught_up(self) -> bool:
        """Whether every acknowledged write was received."""
        return not any(due.acknowledged for due in self._due.values())

    def settle(self) -> None:
        """Nothing more will come: what is still due was missed."""
        for key, due in self._due.items():
            if due.acknowledged:
                self._missed(key, due, "never came")
        self._due.clear()

    def _missed(self, key: tuple[int, int], due: _Due, how: str) -> None:
        self.missed += 1
        self._note(f"{due.slot.name}: number {key[1]} {how}")

    def _note(self, example: str) -> None:
        if len(self.examples) < _KEPT_EXAMPLES:
            self.examples.append(example)
