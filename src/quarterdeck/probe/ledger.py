"""The ledger of writes: what was acknowledged, and what was read later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quarterdeck.probe.schema import Writes

_KEPT_EXAMPLES = 20


@dataclass(frozen=True, slots=True, order=True)
class ObjectSlot:
    """One object of one writer."""

    writer: int
    index: int

    @property
    def name(self) -> str:
        """The object's name."""
        return f"writer-{self.writer}-{self.index:03d}"


class Ledger:
    """Numbers are unique and increasing per writer, so an object that shows a smaller one has lost a write."""

    def __init__(self) -> None:
        self._floor: dict[ObjectSlot, int] = {}
        self._acknowledged = 0
        self._unknown = 0
        self._lost: set[tuple[int, int]] = set()
        self._examples: list[str] = []
        self._stale = 0
        self._audited = False

    @property
    def slots(self) -> tuple[ObjectSlot, ...]:
        """All objects with acknowledged writes."""
        return tuple(self._floor)

    @property
    def acknowledged(self) -> int:
        """Acknowledged writes."""
        return self._acknowledged

    @property
    def lost(self) -> int:
        """Acknowledged writes that were missing later."""
        return len(self._lost)

    def acknowledge(self, slot: ObjectSlot, number: int) -> None:
        """The server acknowledged the write."""
        self._acknowledged += 1
        self._floor[slot] = max(number, self._floor.get(slot, 0))

    def fail(self) -> None:
        """A write was not acknowledged: it may have taken place or not."""
        self._unknown += 1

    def floor(self, slot: ObjectSlot) -> int:
        """The lowest number that a read which begins now may return; 0 when nothing was acknowledged."""
        return self._floor.get(slot, 0)

    def read_back(self, slot: ObjectSlot, floor: int, seen: int | None, how: str = "read back") -> None:
        """A writer's read of its own object, which showed ``seen`` (None: no object). Each loss counts once."""
        if (seen or 0) < floor:
            if (slot.writer, floor) not in self._lost and len(self._examples) < _KEPT_EXAMPLES:
                found = "no object" if seen is None else f"number {seen}"
                self._examples.append(f"{slot.name}: number {floor} acknowledged, {how} shows {found}")
            self._lost.add((slot.writer, floor))

    def read(self, floor: int, seen: int | None) -> None:
        """Another client's linearizable read that began when ``floor`` was acknowledged."""
        self._stale += (seen or 0) < floor

    def audit(self, listed: Mapping[ObjectSlot, int]) -> None:
        """Compare with a listing of all objects at the end."""
        self._audited = True
        for slot, floor in self._floor.items():
            self.read_back(slot, floor, listed.get(slot), how="the final list")

    def writes(self) -> Writes:
        """The figures."""
        return Writes(
            acknowledged=self._acknowledged,
            unknown=self._unknown,
            lost=len(self._lost),
            stale_reads=self._stale,
            audited=self._audited,
            examples=tuple(self._examples),
        )
