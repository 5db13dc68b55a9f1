"""Writers: sequential writes of unique numbers, each read back."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.probe.ledger import Ledger, ObjectSlot
from quarterdeck.probe.objects import Requests, parse_object
from quarterdeck.probe.order import EventCheck
from quarterdeck.probe.pace import Pace
from quarterdeck.probe.reporter import Reporter


class Writer:
    """Writes to its own objects in turn, and reports it to the ledger and to every watcher's ledger."""

    def __init__(
        self,
        writer: int,
        slots: int,
        *,
        reporter: Reporter,
        requests: Requests,
        ledger: Ledger,
        checks: Sequence[EventCheck],
    ) -> None:
        self.slots = tuple(ObjectSlot(writer, index) for index in range(slots))
        self._reporter = reporter
        self._requests = requests
        self._ledger = ledger
        self._checks = checks
        self._number = 0

    async def run(self, pace: Pace) -> None:
        """Write and read back in turn until the pace ends."""
        while await pace.tick():
            self._number += 1
            slot = self.slots[self._number % len(self.slots)]
            if await self._write(slot, self._number) and await pace.tick():
                await self._read_back(slot)

    async def _write(self, slot: ObjectSlot, number: int) -> bool:
        started = self._reporter.now()
        for check in self._checks:
            check.begun(slot, number, started)
        request = self._requests.write(slot, number)
        outcome, _ = await self._reporter.call(request, parse_object)
        if outcome.ok:
            self._ledger.acknowledge(slot, number)
            for check in self._checks:
                check.acknowledged(slot, number)
        else:
            self._ledger.fail()
            for check in self._checks:
                check.failed(slot, number)
        return outcome.ok

    async def _read_back(self, slot: ObjectSlot) -> None:
        floor = self._ledger.floor(slot)
        outcome, seen = await self._reporter.call(self._requests.read(slot), parse_object)
        if seen is not None or outcome.status == 404:
            self._ledger.read_back(slot, floor, None if seen is None else seen.number)
