"""Continuous backups of a managed plane: a task that records its etcd for as long as the plane's lease is held."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from quarterdeck.actions.addresses import urls_in
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.api.base import ConditionStatus
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.events import EventReason
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.backup.chain import FullBackup, Increments
from quarterdeck.backup.collector import Subject
from quarterdeck.backup.recorder import Recorder
from quarterdeck.backup.recording import FullReason, Side
from quarterdeck.backup.sealing import Recipients
from quarterdeck.backup.spool import Spool
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.concurrency import until_one_ends
from quarterdeck.drivers.clients import open_etcd
from quarterdeck.engine.background.backup_upkeep import BackupUpkeep
from quarterdeck.engine.background.tasks import BackgroundTask, Check, LongTask, ShortTurn, Work
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.workspace.backups import OpenBackups, open_backups, scratch_folder
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.plane_archive import archive_of
from quarterdeck.engine.workspace.restores import forget_restored
from quarterdeck.errors import Conflict, Corrupt, LeaseLost, NotFound, QuarterdeckError, Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Memory
from quarterdeck.model.world import World
from quarterdeck.stores.port import EventType

#: Bytes of changes that wait on the disk for a store that does not answer. etcd is asked for what does not fit, which
#: has compacted what is older than 5 to 10 minutes (kube-apiserver: --etcd-compaction-interval).
SPOOL_BYTES = 1 << 30
#: Seconds: how often the stored plane is read.
_FOLLOWING = 2.0


def backup_tasks(home: Home) -> tuple[BackgroundTask, ...]:
    """The background tasks of one plane that back it up and report how that goes."""
    state = BackupState()
    return (
        ShortTurn(name="the state of backups", turn=ReportBackups(state).turn),
        LongTask(name="backups", due=BackUp(home=home, state=state).due),
    )


@dataclass(kw_only=True)
class BackupState:
    """How the backups of a plane go, as its task last reported it: ``RecorderEvents``."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: Everything up to this revision of the main cluster can be restored, which was all there was ``at`` that time.
    revision: int = 0
    at: datetime | None = None
    #: Since when something does not answer, and its error.
    failing: dict[Side, tuple[datetime, QuarterdeckError]] = field(default_factory=dict)
    #: The error with which the task ended; it is started again after a while.
    ended: QuarterdeckError | None = None
    happened: list[Happening] = field(default_factory=list)

    def begin(self) -> None:
        """A task begins, perhaps with another cluster or another store: what the last one reported is void."""
        self.revision, self.at, self.ended = 0, None, None
        self.failing.clear()

    def restorable(self, revision: int, at: datetime) -> None:
        """See ``RecorderEvents``."""
        self.revision, self.at = revision, at

    def stored(self, increments: Increments) -> None:
        """See ``RecorderEvents``."""

    def full_taken(self, full: FullBackup, reason: FullReason) -> None:
        """See ``RecorderEvents``."""
        size = full.stored.size_bytes
        words = f"a full backup of etcd revision {full.revision:,} is complete ({size:,} bytes): {reason.value}"
        self.happened.append(Happening(EventReason.FULL_BACKUP, words, EventType.NORMAL))

    def gap(self, first: int, last: int) -> None:
        """See ``RecorderEvents``."""
        words = f"etcd revisions {first:,} to {last:,} cannot be restored: etcd discarded them before they were stored"
        self.happened.append(Happening(EventReason.BACKUP_GAP, words))

    def spool_discarded(self, why: str) -> None:
        """See ``RecorderEvents``."""
        words = f"changes that waited for the backup store were discarded, and are read from etcd again: {why}"
        self.happened.append(Happening(EventReason.BACKUP_SPOOL_DISCARDED, words))

    def unreadable(self, errors: Sequence[QuarterdeckError]) -> None:
        """See ``UpkeepEvents``."""
        others = f"; so are {len(errors) - 1} other objects" if len(errors) > 1 else ""
        words = f"some moments of the backup cannot be restored: {errors[0].doing}: {errors[0].seen}{others}"
        self.happened.append(Happening(EventReason.BACKUP_DAMAGED, words))

    def failed(self, side: Side, since: datetime, error: QuarterdeckError) -> None:
        """See ``RecorderEvents``."""
        self.failing[side] = since, error

    def answers(self, side: Side) -> None:
        """See ``RecorderEvents``."""
        self.failing.pop(side, None)


#: How long something may not answer before the condition says so: shorter failures are retried without notice.
_TOLERATED = timedelta(seconds=15)
_UNAVAILABLE = {
    Side.STORE: ConditionReason.STORE_UNAVAILABLE,
    Side.CLUSTER: ConditionReason.CLUSTER_UNAVAILABLE,
}


@dataclass(kw_only=False)
class ReportBackups:
    """Writes the condition of backups, and records their events."""

    state: BackupState

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        while self.state.happened:
            await plane.store.record(self.state.happened[0].event(plane.name, plane.clock()))
            self.state.happened.pop(0)
        await tell_condition(plane, ConditionType.BACKED_UP, self._condition(plane))

    def _condition(self, plane: Plane) -> tuple[ConditionStatus, ConditionReason, str] | None:
        if not plane.resource.spec.backup.enabled:
            return None
        if self.state.ended is not None:
            return ConditionStatus.FALSE, ConditionReason.BACKUP_FAILED, str(self.state.ended)
        for side, (since, error) in self.state.failing.items():
            if self.state.now() - since > _TOLERATED:
                words = f"the {side.value} has not answered since {since:%Y-%m-%d %H:%M:%S} UTC: {error.seen}"
                return ConditionStatus.FALSE, _UNAVAILABLE[side], words
        if self.state.at is None:
            return ConditionStatus.UNKNOWN, ConditionReason.FIRST_BACKUP, "the first backup is not complete yet"
        return ConditionStatus.TRUE, ConditionReason.CONTINUOUS, "each change of etcd is stored within seconds"


@dataclass(kw_only=True)
class BackUp:
    """The long task that backs up a plane."""

    home: Home
    state: BackupState

    async def due(self, plane: Plane, world: World) -> Work | None:
        """See ``LongTask``."""
        return partial(self._record, plane.name) if may_record(plane.resource) else None

    async def _record(self, name: str, check: Check) -> None:
        try:
            await record(self.home, name, self.state, check)
        except LeaseLost:
            raise  # the next holder of the lease reports its own task
        except QuarterdeckError as error:
            self.state.ended = error
            raise


def may_record(plane: ControlPlane) -> bool:
    """Whether a plane has an etcd that is to be backed up."""
    memory = plane.status.memory
    return plane.spec.backup.enabled and plane.metadata.deletion_timestamp is None and memory.created


async def record(home: Home, name: str, state: BackupState, check: Check) -> None:
    """Back up a plane until what is backed up changes: its epoch, or the place of its backups. It uses connections of
    its own, which outlive an open plane. Raises LeaseLost, Corrupt, PreconditionFailed, InvalidInput.
    """
    plane = await home.store.get(ControlPlane, name)
    followed = _Followed(home, plane)
    state.begin()
    await forget_restored(home, plane)
    async with AsyncExitStack() as stack:
        backups = await open_backups(home, plane)
        etcd = open_etcd(await secrets_of(home.store, plane), stack)
        writer = ChainWriter(backups.chains, f"{os.getpid()}-{secrets.token_hex(4)}", check, state.now)
        scratch = scratch_folder(home.folder, name)
        upkeep = BackupUpkeep(
            backups, writer, lambda: followed.plane, scratch=scratch, check=check, now=state.now, told=state
        )
        works = [followed.run(), _archive(home, followed, backups, writer), upkeep.run()]
        for cluster in _clusters(plane):
            subject = Subject(
                plane=plane.metadata.uid or "",
                cluster=cluster.value,
                epoch=followed.epoch(cluster),
                etcd=etcd,
                urls=partial(followed.urls, cluster),
            )
            recorder = Recorder(
                subject,
                backups.deposit,
                writer,
                Spool(scratch / f"spool-{cluster.value}", SPOOL_BYTES),
                scratch=scratch,
                told=state if cluster is Cluster.MAIN else BackupState(),
                now=state.now,
            )
            works.append(recorder.run())
        await until_one_ends(*works)


def _clusters(plane: ControlPlane) -> tuple[Cluster, ...]:
    memory = memory_from_status(plane.status.memory)
    events = plane.spec.backup.events and memory.events.created
    return (Cluster.MAIN, Cluster.EVENTS) if events else (Cluster.MAIN,)


@dataclass
class _Followed:
    """The stored plane while it is backed up."""

    home: Home
    plane: ControlPlane

    @property
    def memory(self) -> Memory:
        return memory_from_status(self.plane.status.memory)

    def epoch(self, cluster: Cluster) -> int:
        return self.memory.epoch if cluster is Cluster.MAIN else self.memory.events.epoch

    def urls(self, cluster: Cluster) -> Sequence[str]:
        """The client URLs of the members of a cluster."""
        return urls_in(self.memory, cluster)

    async def run(self) -> None:
        """Return when another task has to begin: the epoch, the clusters, the keys or the settings are others."""
        first = self._what()
        while True:
            await asyncio.sleep(_FOLLOWING)
            try:
                self.plane = await self.home.store.get(ControlPlane, self.plane.name)
            except NotFound:
                return
            if self._what() != first:
                return

    def _what(self) -> object:
        plane, memory = self.plane, self.memory
        return (
            plane.metadata.uid,
            plane.spec.backup,
            plane.spec.certificates.generation,
            may_record(plane),
            (memory.epoch, memory.events.epoch),
            _clusters(plane),
        )


async def _archive(home: Home, followed: _Followed, backups: OpenBackups, writer: ChainWriter) -> None:
    """Store the belongings of the plane whenever they have changed, or others are to open them."""
    while True:
        try:
            content = await archive_of(home.store, followed.plane)
            digest = _digest(content, backups.deposit.recipients)
            stored = (await writer.read()).belongings
            if not stored or stored[-1].digest != digest:
                await writer.append(belongings=await backups.deposit.put(_parts(content)), belongings_digest=digest)
        except (Conflict, Corrupt, NotFound, Unavailable):
            pass  # it is being changed or was deleted, or the backup store does not answer, which the recorder reports
        await asyncio.sleep(_FOLLOWING)


def _digest(content: bytes, recipients: Recipients) -> str:
    return hashlib.sha256(b"\0".join((*(each.encode() for each in sorted(recipients.keys)), content))).hexdigest()


async def _parts(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content
