"""Verifying the newest backup of a plane on a schedule, and counting what is stored, while the plane is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.backup.chain import Chain
from quarterdeck.backup.recording.collector import Subject
from quarterdeck.backup.recording.policy import FullReason
from quarterdeck.backup.recording.sources import live_hash
from quarterdeck.backup.verifications import VerificationStore, VerifiedMoment, due_at
from quarterdeck.backup.writer import ChainWriter, Now
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.verification import verify_moment
from quarterdeck.errors import Corrupt, QuarterdeckError, Unavailable
from quarterdeck.upstream.upstream import Upstream

#: Seconds between two looks at what is stored.
_COUNTING = 30.0
#: How often those of other processes are looked for.
_LISTING = timedelta(hours=1)
#: Seconds until a verification that could not be carried out is tried again.
_RETRYING = 600.0


class VerificationEvents(Protocol):
    """What is reported of the stored backups. All return at once."""

    def stored_now(self, fulls: int, size_bytes: int) -> None:
        """So many full backups are stored, and so many bytes in all."""
        ...

    def verified(self, verification: VerifiedMoment) -> None:
        """A backup passed its verification, perhaps before this process began."""
        ...

    def damaged(self, error: QuarterdeckError) -> None:
        """The newest backup did not pass. A new full backup is taken."""
        ...

    def not_verified(self, error: QuarterdeckError) -> None:
        """The newest backup could not be verified. It is tried again."""
        ...


@dataclass(kw_only=True)
class BackupVerifier:
    """Verifies the newest backup of one cluster when it is due. ``plane``: as it is stored now; ``renew``: has a full
    backup taken.
    """

    home: Home
    upstream: Upstream
    plane: Callable[[], ControlPlane]
    backups: OpenBackups
    writer: ChainWriter
    subject: Subject
    renew: Callable[[FullReason], None]
    events: VerificationEvents
    now: Now
    #: The object of the last full backup when a verification failed: the next one waits for another one.
    _damaged: str | None = None
    #: The verifications of this epoch, and when they were listed.
    _done: tuple[VerifiedMoment, ...] = ()
    _listed_at: datetime | None = None

    async def run(self) -> None:
        """Verify until cancelled. An unavailable store is waited for; the recorder reports it."""
        while True:
            pause = _COUNTING
            try:
                chain = await self.writer.read()
                self.events.stored_now(*_stored(chain))
                if await self._due(chain):
                    await self._verify(chain)
            except Corrupt as error:
                self._damaged = _last_full(self.writer.chain, self.subject)
                self.events.damaged(error)
            except QuarterdeckError as error:
                if not isinstance(error, Unavailable):
                    self.events.not_verified(error)
                    pause = _RETRYING
            await asyncio.sleep(pause)

    async def _due(self, chain: Chain) -> bool:
        every = self.plane().spec.backup.verify_every
        subject = self.subject
        fulls = chain.fulls_of(subject.cluster, subject.epoch)
        if every is None or not fulls:
            return False
        if self._damaged is not None:
            if _last_full(chain, subject) != self._damaged:
                return True
            self.renew(FullReason.DAMAGED)
            return False
        await self._list()
        return self.now() >= due_at(self._done, min(each.at for each in fulls), timedelta(seconds=every))

    async def _list(self) -> None:
        """List the verifications, at most once an hour: each is an object."""
        now, subject = self.now(), self.subject
        if self._listed_at is not None and now - self._listed_at < _LISTING:
            return
        found = await VerificationStore(self.backups.store, self.backups.folder).list()
        self._done = tuple(each for each in found if (each.cluster, each.epoch) == (subject.cluster, subject.epoch))
        self._listed_at = now
        if self._done:
            self.events.verified(self._done[-1])

    async def _verify(self, chain: Chain) -> None:
        subject = self.subject
        moment = chain.latest(subject.cluster, subject.epoch)
        live = await live_hash(subject.etcd, subject.urls(), moment.revision)
        found = await verify_moment(self.home, self.upstream, self.plane(), self.backups, chain, moment, live)
        self._damaged = None
        self._done = (*self._done, found)
        self.events.verified(found)
        await VerificationStore(self.backups.store, self.backups.folder).prune()


def _stored(chain: Chain) -> tuple[int, int]:
    stored = [
        *(each.stored for each in chain.fulls),
        *(each.stored for each in chain.increments),
        *(each.stored for each in chain.belongings),
    ]
    return len(chain.fulls), sum(each.size_bytes for each in stored)


def _last_full(chain: Chain, subject: Subject) -> str:
    return chain.fulls_of(subject.cluster, subject.epoch)[-1].stored.name
