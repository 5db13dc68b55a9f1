"""The number of operations: counted for all of a store's at once, and not at every scrape."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from quarterdeck import clocks
from quarterdeck.api.operation import Operation, OperationPhase
from quarterdeck.errors import QuarterdeckError
from quarterdeck.metrics.metrics import Metrics
from quarterdeck.stores.port import Store

#: Seconds between two counts.
EVERY = 30.0


@dataclass(kw_only=True)
class OperationCounter:
    """Counts the operations of a store. ``steady``: a monotonic clock."""

    store: Store
    metrics: Metrics
    steady: Callable[[], float] = clocks.steady
    _read: float = -math.inf

    async def count(self) -> None:
        """Count them, if it is due. If the store fails, the numbers are unknown, and all other metrics are served."""
        if self.steady() - self._read < EVERY:
            return
        self._read = self.steady()
        try:
            found = await self.store.list(Operation)
        except QuarterdeckError:
            self.metrics.asked({})
            return
        counts = Counter((each.spec.plane, str(each.status.phase)) for each in found)
        planes = {each.spec.plane for each in found}
        self.metrics.asked(
            {(plane, str(phase)): counts[plane, str(phase)] for plane in planes for phase in OperationPhase}
        )
