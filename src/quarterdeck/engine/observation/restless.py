"""Which programs end again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field

#: Seconds: a program that was started anew so many times within so long is restless. A machine starts one that ends at
#: once after 0.25 s, and then always later, up to 5 s; one that has run for a second at once.
WINDOW = 60.0
ENDS = 2


@dataclass
class Restless:
    """What was seen of units, look after look: how often each was started anew (``UnitStatus.restarts``)."""

    _seen: dict[Hashable, deque[tuple[float, int]]] = field(default_factory=dict)

    def note(self, unit: Hashable, restarts: int, now: float) -> bool:
        """Take a look at a unit at ``now`` (seconds on a clock that nobody sets); whether it is restless."""
        looks = self._seen.setdefault(unit, deque())
        if looks and restarts < looks[-1][1]:
            looks.clear()  # it was started on purpose, and is counted anew
        looks.append((now, restarts))
        while looks[0][0] < now - WINDOW:
            looks.popleft()
        return restarts - looks[0][1] >= ENDS
