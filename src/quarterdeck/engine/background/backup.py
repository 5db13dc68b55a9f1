"""Continuous backups of a managed plane: a task that records its etcd for as long as the plane's lease is held."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from quarterdeck.actions.addresses import client_url, urls_in
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.backup.recording.collector import Subject
from quarterdeck.backup.recording.recorder import Recorder
from quarterdeck.backup.recording.spool import Spool
from quarterdeck.backup.sealing import Recipients
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.concurrency import until_one_ends
from quarterdeck.drivers.clients import open_etcd
from quarterdeck.engine.background.backup_report import BackupState, ReportBackups
from quarterdeck.engine.background.backup_upkeep import BackupUpkeep
from quarterdeck.engine.background.backup_verification import BackupVerifier
from quarterdeck.engine.background.tasks import BackgroundTask, Check, LongTask, ShortTurn, Work
from quarterdeck.engine.workspace.backups import OpenBackups, open_backups, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.plane_archive import archive_of
from quarterdeck.engine.workspace.restores import forget_restored
from quarterdeck.engine.workspace.secrets_in_use import secrets_in_use
from quarterdeck.errors import Conflict, Corrupt, LeaseLost, NotFound, QuarterdeckError, Unavailable
from quarterdeck.etcd.port import EtcdCluster
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.memory import Memory
from quarterdeck.model.world import World
from quarterdeck.upstream.upstream import Upstream

#: Bytes of changes that wait on the disk for a store that does not answer. etcd is asked for what does not fit, which
#: has compacted what is older than 5 to 10 minutes (kube-apiserver: --etcd-compaction-interval).
SPOOL_BYTES = 1 << 30
#: Seconds: how often the stored plane is read.
_FOLLOWING = 2.0


def backup_tasks(home: Home, upstream: Upstream) -> tuple[BackgroundTask, ...]:
    """The background tasks of one plane that back it up and report how that goes."""
    state = BackupState()
    return (
        ShortTurn(name="the state of backups", turn=ReportBackups(state=state).turn),
        LongTask(name="backups", due=BackUp(home=home, upstream=upstream, state=state).due),
    )


@dataclass(kw_only=True)
class BackUp:
    """The long task that backs up a plane."""

    home: Home
    upstream: Upstream
    state: BackupState

    async def due(self, plane: Plane, world: World) -> Work | None:
        """See ``LongTask``."""
        return partial(self._record, plane.name) if may_record(plane.resource) else None

    async def _record(self, name: str, check: Check) -> None:
        try:
            await record(self.home, self.upstream, name, self.state, check)
        except LeaseLost:
            raise  # the next holder of the lease reports its own task
        except QuarterdeckError as error:
            self.state.ended = error
            raise


def may_record(plane: ControlPlane) -> bool:
    """Whether a plane has an etcd that is to be backed up."""
    memory = plane.status.memory
    return plane.spec.backup.enabled and plane.metadata.deletion_timestamp is None and memory.created


async def record(home: Home, upstream: Upstream, name: str, state: BackupState, check: Check) -> None:
    """Back up a plane until what is backed up changes: its epoch, or the place of its backups. It uses connections of
    its own, which outlive an open plane. Raises LeaseLost, Corrupt, PreconditionFailed, InvalidInput.
    """
    plane = await home.store.get(ControlPlane, name)
    followed = _Followed(home, plane)
    state.begin()
    await forget_restored(home, plane)
    async with AsyncExitStack() as stack:
        backups = await open_backups(home, plane)
        etcd = open_etcd(await secrets_in_use(home.store, plane), stack)
        writer = ChainWriter(backups.chains, f"{os.getpid()}-{secrets.token_hex(4)}", check, state.now)
        scratch = scratch_folder(home.folder, name)
        upkeep = BackupUpkeep(
            backups, writer, lambda: followed.plane, scratch=scratch, check=check, now=state.now, events=state
        )
        recording = _Recording(home, upstream, followed, backups, writer, etcd, scratch, state)
        works = [each for cluster in _clusters(plane) for each in recording.works(cluster)]
        await until_one_ends(followed.run(), _archive(home, followed, backups, writer), upkeep.run(), *works)


@dataclass(frozen=True)
class _Recording:
    """What is recorded of one plane, and by what."""

    home: Home
    upstream: Upstream
    followed: _Followed
    backups: OpenBackups
    writer: ChainWriter
    etcd: EtcdCluster
    scratch: Path
    state: BackupState

    def works(self, cluster: Cluster) -> Iterator[Coroutine[Any, Any, None]]:
        """The recorder of a cluster, and the verifier of the main one."""
        main, now = cluster is Cluster.MAIN, self.state.now
        subject = Subject(
            plane=self.followed.plane.metadata.uid or "",
            cluster=cluster.value,
            epoch=self.followed.epoch(cluster),
            etcd=self.etcd,
            urls=partial(self.followed.urls, cluster),
            standbys=self.followed.standbys if main else tuple,
        )
        spool = Spool(self.scratch / f"spool-{cluster.value}", SPOOL_BYTES)
        state = self.state if main else BackupState()
        recorder = Recorder(
            subject, self.backups.deposit, self.writer, spool, scratch=self.scratch, events=state, now=now
        )
        yield recorder.run()
        if main:
            yield self._verifier(subject, recorder).run()

    def _verifier(self, subject: Subject, recorder: Recorder) -> BackupVerifier:
        return BackupVerifier(
            home=self.home,
            upstream=self.upstream,
            plane=lambda: self.followed.plane,
            backups=self.backups,
            writer=self.writer,
            subject=subject,
            renew=recorder.renew,
            events=self.state,
            now=self.state.now,
        )


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

    def standbys(self) -> Sequence[str]:
        """The client URLs of the standbys that have served."""
        return [client_url(each) for each in self.memory.standbys if each.started]

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
