"""Readers: all clients that only read, whatever their connections."""

from __future__ import annotations

from quarterdeck.probe.ledger import Ledger
from quarterdeck.probe.objects import Requests, parse_object
from quarterdeck.probe.pace import Pace
from quarterdeck.probe.reporter import Reporter


class Reader:
    """Reads the writers' objects in turn, linearizable, and checks each answer against the ledger.

    The kinds ``reader``, ``new-connection``, ``keep-alive``, ``pinned`` and ``http2`` differ only in their client.
    """

    def __init__(self, *, reporter: Reporter, requests: Requests, ledger: Ledger) -> None:
        self._reporter = reporter
        self._requests = requests
        self._ledger = ledger
        self._turn = 0

    async def run(self, pace: Pace) -> None:
        """Read until the pace ends."""
        while await pace.tick():
            slots = self._ledger.slots
            if not slots:
                continue  # nothing was written yet
            slot = slots[self._turn % len(slots)]
            self._turn += 1
            floor = self._ledger.floor(slot)
            outcome, seen = await self._reporter.call(self._requests.read(slot), parse_object)
            if seen is not None or outcome.status == 404:
                self._ledger.read(floor, None if seen is None else seen.number)
