"""Taking, listing and verifying the backups of a plane."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.actions.addresses import client_urls, urls_in
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.app.backup.copies import Copies
from quarterdeck.app.backup.objects import BackedUpObjects
from quarterdeck.app.backup.removal import PlaneBackups, delete_backups, stored_backups
from quarterdeck.app.backup.restores import Restores
from quarterdeck.backup.chain import BackupMoment, Chain, FullBackup, KeyHash
from quarterdeck.backup.recording.sources import live_hash
from quarterdeck.backup.sweep import overdue
from quarterdeck.backup.verifications import VerificationStore, VerifiedMoment
from quarterdeck.concurrency import until_one_ends
from quarterdeck.drivers.clients import open_etcd
from quarterdeck.engine.background.backup import may_record, record
from quarterdeck.engine.background.backup_report import BackupState
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import leases, recorded
from quarterdeck.engine.workspace.backups import OpenBackups, backup_keys, open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.restores import MAIN
from quarterdeck.engine.workspace.secrets_in_use import secrets_in_use
from quarterdeck.engine.workspace.verification import verify_moment
from quarterdeck.errors import NotFound, PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.stores.lease import hold_lease

#: Seconds between two looks at the chain, or at the plane.
_LOOK = 0.3
#: Seconds that the belongings of the plane may take to be stored behind its data. They are looked at every two seconds,
#: and are not stored while they are incomplete, or are being changed.
_BELONGINGS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBackup:
    """A moment that can be restored."""

    plane: str
    store: str
    revision: int
    #: The newest full backup that it needs.
    full: FullBackup
    #: Bytes of all objects that are read to restore it.
    size_bytes: int
    #: Whether the whole plane can come back from it, not only its data.
    whole_plane: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupRange:
    """A stretch of revisions of one cluster that can be restored, each of them."""

    cluster: str
    epoch: int
    first: int
    last: int
    first_at: datetime
    last_at: datetime
    fulls: int
    size_bytes: int
    whole_plane: bool
    #: The newest verification of one of its revisions; None: none was verified.
    verification: VerifiedMoment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupList:
    """All that can be restored of a plane."""

    plane: str
    store: str
    #: The public keys of age for which the backups are encrypted now.
    recipients: tuple[str, ...]
    ranges: tuple[BackupRange, ...]
    #: The sizes in bytes of objects that should have been deleted and are still there, such as locked ones.
    overdue: tuple[int, ...] = ()


class Backups:
    """``Quarterdeck.backups``. The rules for calls of ``Quarterdeck`` apply."""

    def __init__(self, home: Home, engine: Callable[[], Engine]) -> None:
        """``engine``: opened for what needs programs."""
        self._home = home
        self._engine = engine
        self.restores = Restores(home, engine)
        self.objects = BackedUpObjects(home, engine, self.restores)
        self.copies = Copies(home, engine, self.restores)

    async def create(self, name: str, *, timeout: float = 600.0) -> TakenBackup:
        """Return once everything that was acknowledged before this call can be restored. The manager of the plane backs
        it up; where there is none, this process does until then. The plane's keys are waited for, but not for long.

        Raises PreconditionFailed where backups are disabled or etcd does not exist yet, Unavailable with the error with
        which the manager's task ended meanwhile, TimedOut, and what the backup store raises.
        """
        called = datetime.now(UTC)
        await require_plane_in_reach(self._home, name)
        plane = await recorded.existing(self._home.store, name)
        if not may_record(plane):
            seen, then = "it has no etcd now", f"see 'quarterdeck status {name}'"
            if not plane.spec.backup.enabled:
                seen, then = "spec.backup.enabled is false", "set it to true, and apply the spec"
            raise PreconditionFailed(f"backing up plane {name}", seen, then)
        revision = await self._revision(name)
        backups = await open_backups(self._home, plane)
        epoch = plane.status.memory.epoch
        doing = f"backing up plane {name} to {backups.url}"
        try:
            async with asyncio.timeout(timeout):
                return await self._covered(plane, backups, epoch, revision, called)
        except TimeoutError as error:
            seen = f"etcd revision {revision:,} was not stored within {timeout:g} s"
            raise TimedOut(doing, seen, f"see 'quarterdeck events {name}'") from error

    async def list(self, name: str) -> BackupList:
        """All that can be restored of a plane. Raises what the backup store raises."""
        plane = await recorded.existing(self._home.store, name)
        backups = await open_backups(self._home, plane)
        chain = await backups.chains.read()
        recipients = backups.deposit.recipients.keys
        done = await VerificationStore(backups.store, backups.folder).list()
        late = await overdue(backups.store, backups.folder, chain, datetime.now(UTC))
        return BackupList(
            plane=name,
            store=backups.url,
            recipients=recipients,
            ranges=ranges_of(chain, done),
            overdue=tuple(each.size for each in late),
        )

    async def verify(self, name: str, *, to: str = "latest", by_replay: bool = False) -> VerifiedMoment:
        """Build the database of a moment (as ``Restores.plan`` does), start an etcd on it, and compare revision, keys
        and hashes; also with the hash of a member, where the plane answers and still has that revision. Raises Corrupt
        where they differ.
        """
        plane = await recorded.existing(self._home.store, name)
        backups = await open_backups(self._home, plane)
        chain = await backups.chains.read()
        moment = await self.restores.moment(backups, chain, to)
        live = await self._live_hash(plane, moment)
        upstream = self._engine().upstream
        return await verify_moment(self._home, upstream, plane, backups, chain, moment, live, by_replay=by_replay)

    async def stored(self, name: str) -> PlaneBackups:
        """See ``stored_backups``."""
        return await stored_backups(self._home, name)

    async def delete(self, found: PlaneBackups) -> None:
        """See ``delete_backups``."""
        await delete_backups(found)

    async def _live_hash(self, plane: ControlPlane, moment: BackupMoment) -> KeyHash | None:
        if not may_record(plane) or moment.full.epoch != plane.status.memory.epoch:
            return None
        async with AsyncExitStack() as stack:
            etcd = open_etcd(await secrets_in_use(self._home.store, plane), stack)
            urls = urls_in(memory_from_status(plane.status.memory), Cluster(moment.full.cluster))
            return await live_hash(etcd, urls, moment.revision)

    async def key(self) -> tuple[Path, str]:
        """The file with the private key of this home's backups, and its public key."""
        keys = await backup_keys(self._home.folder)
        return keys.path, keys.recipient

    async def _revision(self, name: str) -> int:
        async with open_plane(self._home, name) as plane:
            return await plane.etcd.revision(client_urls(plane))

    async def _covered(
        self, plane: ControlPlane, backups: OpenBackups, epoch: int, revision: int, called: datetime
    ) -> TakenBackup:
        found: list[TakenBackup] = []

        async def wait() -> None:
            found.append(await _until_covered(plane, backups, epoch, revision))

        if await recorded.manager_of(self._home.store, plane.name):
            await until_one_ends(wait(), self._watch(plane.name, backups.url, called))
            return found[0]
        engine = self._engine()
        async with AsyncExitStack() as stack:
            lease = hold_lease(
                self._home.store, leases.lease_name(plane.name), engine.requester.name, wait=12.0, clocks=engine.clocks
            )
            guard = await stack.enter_async_context(lease)
            await until_one_ends(wait(), record(self._home, engine.upstream, plane.name, BackupState(), guard.check))
        return found[0]

    async def _watch(self, name: str, url: str, since: datetime) -> None:
        """Raise the error with which the manager's task has ended since then. What it reported before may be over."""
        while True:
            plane = await recorded.existing(self._home.store, name)
            now = find_condition(plane.status.conditions, ConditionType.BACKED_UP)
            if now is not None and now.reason == ConditionReason.BACKUP_FAILED and now.last_transition_time >= since:
                seen = f"the task of the manager has ended: {now.message}"
                raise Unavailable(f"backing up plane {name} to {url}", seen, "fix the cause, and run this again")
            await asyncio.sleep(_LOOK)


async def _until_covered(plane: ControlPlane, backups: OpenBackups, epoch: int, revision: int) -> TakenBackup:
    chain, latest = await backups.chains.read(), math.inf
    while True:
        with suppress(NotFound):
            moment = chain.at_or_after(MAIN, revision, epoch)
            now, whole = asyncio.get_running_loop().time(), chain.belongings_at(moment.revision, epoch) is not None
            latest = min(latest, now + _BELONGINGS)
            if whole or now >= latest:
                return TakenBackup(
                    plane=plane.name,
                    store=backups.url,
                    revision=moment.revision,
                    full=moment.full,
                    size_bytes=moment.stored_bytes,
                    whole_plane=whole,
                )
        await asyncio.sleep(_LOOK)
        if await backups.chains.continues(chain):
            chain = await backups.chains.read(chain)


def ranges_of(chain: Chain, verifications: Sequence[VerifiedMoment]) -> tuple[BackupRange, ...]:
    """What can be restored from a chain, the newest last. ``verifications``: the newest one last."""
    clusters = sorted({(each.epoch, each.cluster) for each in chain.fulls})
    return tuple(
        _range(chain, verifications, cluster, epoch, first, last)
        for epoch, cluster in clusters
        for first, last in chain.ranges(cluster, epoch)
    )


def _range(
    chain: Chain, verifications: Sequence[VerifiedMoment], cluster: str, epoch: int, first: int, last: int
) -> BackupRange:
    verified = [each for each in verifications if (each.cluster, each.epoch) == (cluster, epoch)]
    verified = [each for each in verified if first <= each.revision <= last]
    fulls = [each for each in chain.fulls_of(cluster, epoch) if first <= each.revision <= last]
    its = [each for each in chain.increments_of(cluster, epoch) if first <= each.last <= last]
    times = [*((each.revision, each.at) for each in fulls), *((each.last, each.last_at) for each in its)]
    stored = [*(each.stored for each in fulls), *(each.stored for each in its)]
    return BackupRange(
        cluster=cluster,
        epoch=epoch,
        first=first,
        last=last,
        first_at=min(times)[1].astimezone(UTC),
        last_at=max(times)[1].astimezone(UTC),
        fulls=len(fulls),
        size_bytes=sum(each.size_bytes for each in stored),
        whole_plane=cluster == MAIN and chain.belongings_at(last, epoch) is not None,
        verification=verified[-1] if verified else None,
    )
