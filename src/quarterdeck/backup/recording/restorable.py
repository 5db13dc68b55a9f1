"""How far a cluster can be restored, and as of when: of a quiet cluster that is now, whenever it changed last."""

from __future__ import annotations

import asyncio
from datetime import datetime

from quarterdeck.backup.recording.policy import RecorderEvents
from quarterdeck.errors import Unavailable

#: How many answers of a quorum are remembered while the store does not answer.
_REMEMBERED = 1000


class Restorable:
    """The newest revision that can be restored, and a time before which there was nothing newer."""

    def __init__(self, cluster: str, events: RecorderEvents) -> None:
        self._cluster, self._events = cluster, events
        #: None: nothing can be restored yet.
        self.revision: int | None = None
        self.at: datetime | None = None
        #: The newest revisions that a quorum reported, each with its time, as far as they are not stored yet.
        self._seen: list[tuple[int, datetime]] = []
        self._moved = asyncio.Event()
        self._ended: BaseException | None = None

    def reached(self, revision: int, at: datetime) -> None:
        """This revision is stored, and all before it. ``at``: when it was the newest one."""
        self.revision = max(self.revision or 0, revision)
        self._advance(at)

    def seen(self, revision: int, at: datetime) -> None:
        """A quorum was asked at that time, and this was the newest revision."""
        self._seen = [*(each for each in self._seen if each[0] != revision), (revision, at)][-_REMEMBERED:]
        self._advance(None)

    def ended(self, error: BaseException) -> None:
        """Nothing is recorded any more."""
        self._ended = error
        self._moved.set()

    async def covered(self, revision: int) -> None:
        """Return once this revision can be restored. Raises Unavailable where the recording ends before."""
        while self.revision is None or self.revision < revision:
            if self._ended is not None:
                doing = f"waiting until revision {revision:,} of cluster {self._cluster} is stored"
                seen = f"the recording has ended ({self._ended or type(self._ended).__name__})"
                raise Unavailable(doing, seen, "try again while the plane is driven") from self._ended
            self._moved.clear()
            await self._moved.wait()

    def _advance(self, at: datetime | None) -> None:
        if self.revision is None:
            return
        times = [at] if at is not None else []
        times += [each for revision, each in self._seen if revision <= self.revision]
        self._seen = [each for each in self._seen if each[0] > self.revision]
        newest = max((*times, *((self.at,) if self.at is not None else ())), default=None)
        if newest is not None and times:
            self.at = newest
            self._events.restorable(self.revision, newest)
        self._moved.set()
