"""The events' etcd in a restore: its own moment of the same backups, or nothing. Events are never worth a restore."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.epochs import RestoreEvents
from quarterdeck.backup.chain import BackupMoment, Chain
from quarterdeck.backup.moments import newest_moment_at
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.engine.workspace.restores import restored_database
from quarterdeck.errors import Corrupt, NotFound
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.epochs import BackupOrigin

_EVENTS = Cluster.EVENTS.value


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsPlan:
    """What the events' etcd of a restored plane begins with: a ``moment`` whose database is built and proven; None: it
    begins empty, and ``why``.
    """

    moment: BackupMoment | None = None
    database: Path | None = None
    why: str = ""

    @property
    def restore(self) -> RestoreEvents | None:
        """The moment, as the consent names it."""
        if self.moment is None:
            return None
        return RestoreEvents(epoch=self.moment.full.epoch, revision=self.moment.revision)

    @property
    def words(self) -> str:
        """That, as a sentence for people."""
        if self.moment is None:
            return f"Kubernetes events begin empty: {self.why}"
        return f"Kubernetes events: etcd revision {self.moment.revision:,} of their own etcd"


async def events_plan(
    engine: Engine,
    plane: ControlPlane,
    backups: OpenBackups,
    chain: Chain,
    *,
    at: datetime | None,
    by_replay: bool = False,
) -> EventsPlan | None:
    """The newest moment of the events' etcd that was seen by ``at`` (None: the newest one), with its database, which is
    built as ``Restores.plan`` does. None for a plane without one. Raises what building a database raises, except for a
    backup that is damaged.
    """
    if not plane.spec.etcd.events.separate:
        return None
    moment = await _moment(backups, chain, at)
    if moment is None:
        return EventsPlan(why="no backup has them")
    origin = BackupOrigin(store=backups.url, folder=backups.folder, epoch=moment.full.epoch)
    try:
        built = await restored_database(
            engine.home, engine.upstream, plane, origin, moment.revision, Cluster.EVENTS, by_replay=by_replay
        )
    except Corrupt as error:
        return EventsPlan(why=str(error))
    return EventsPlan(moment=moment, database=built.path)


async def _moment(backups: OpenBackups, chain: Chain, at: datetime | None) -> BackupMoment | None:
    now, identities = datetime.now(UTC), backups.keys.identities
    try:
        if at is None:
            return chain.latest(_EVENTS, max(chain.epochs(_EVENTS), default=0))
        return await newest_moment_at(chain, _EVENTS, at, now=now, store=backups.store, identities=identities)
    except NotFound:
        return None
