"""Removal of the events' cluster, and new epochs: the founder's data is restored from a survivor or a backup."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import PurePosixPath

from quarterdeck.actions.addresses import peer_url
from quarterdeck.actions.handlers import Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.units import token_of
from quarterdeck.actions.volumes import delete_events_volumes, main_volume, volume_name, volume_of
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.endings import why_it_ended
from quarterdeck.components.etcd import DATA, DATABASE, restored_revision, restoring
from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.model.capabilities import Job
from quarterdeck.model.clusters import MEMBER, Cluster
from quarterdeck.model.epochs import BackupOrigin, StandbyOrigin, SurvivorOrigin
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.clusters import DeleteKept, ReleaseMember, RestoreMember, WithdrawConsent
from quarterdeck.model.units import Program
from quarterdeck.model.world import World
from quarterdeck.stores.port import amend


async def release_member(plane: Plane, step: ReleaseMember, _: World) -> None:
    """Remove a replica's member of a removed events' cluster: nothing uses it, and no later cluster must ever find its
    data.
    """
    record = plane.memory.replica(step.replica)
    site, unit = plane.site(record.site), plane.unit(record, MEMBER[step.cluster])
    assert step.cluster is not Cluster.MAIN, "the main cluster is removed with its plane"
    await plane.check()
    await site.stop_unit(record.machine, unit, kill=True)
    await plane.check()
    await site.remove_unit(record.machine, unit)
    await delete_events_volumes(plane, record)


#: Seconds that a restore may take: it reads and writes the database once (8 GiB at 30 MB/s, and twice that).
_DEADLINE = 600.0


async def restore_member(plane: Plane, step: RestoreMember, _: World) -> None:
    """Create the founder's volume again, and in it the data of a new cluster from the database of the epoch's origin.
    Leftovers of an interrupted attempt are deleted: the founder is never started before the data is complete.

    Raises Unavailable where the data of the origin is missing, is older than the epoch promised, or cannot be restored.
    """
    record, memory = plane.memory.replica(step.replica), plane.memory.of(step.cluster)
    doing, seed = f"restoring {record.name} from {step.origin}", memory.seed
    if memory.replica(record.name).started or seed is None or seed.founder != record.name:
        raise PreconditionFailed(doing, f"{record.name} already has data", "see 'status'")
    restoring = _Restoring(plane, record, step.cluster, doing)
    match step.origin:
        case SurvivorOrigin(replica=survivor) | StandbyOrigin(standby=survivor):
            await restoring.from_survivor(plane.memory.replica(survivor), seed.revision)
        case BackupOrigin() as backup:
            await restoring.from_backup(backup, seed.revision)


@dataclass(frozen=True, slots=True)
class _Restoring:
    """The data of a replica's member of a cluster, on its machine."""

    plane: Plane
    record: Replica
    cluster: Cluster
    doing: str

    @property
    def volume(self) -> str:
        return volume_name(self.plane, self.record, self.cluster)

    @property
    def storage_class(self) -> str:
        return self.plane.memory.of(self.cluster).replica(self.record.name).storage_class

    async def from_survivor(self, survivor: Replica, revision: int) -> None:
        """The survivor's database is only read. It was flushed when ``revision`` was promised, so it lacks none of
        that unless its disk was replaced or set back.
        """
        source = await volume_of(self.plane, survivor)
        if source is None:
            seen = f"volume {volume_name(self.plane, survivor)} is gone from machine {survivor.machine}"
            raise Unavailable(self.doing, seen, "restore it with all its data")
        found = restored_revision(await self._made(source.path / DATABASE, source.used_bytes))
        if found is not None and found < revision:
            seen = (
                f"the database of {survivor.name} ends at etcd revision {found:,}, and revision {revision:,} is needed"
            )
            next_step = f"bring back the disk that {survivor.name} had, or see 'restore {self.plane.name}'"
            raise Unavailable(self.doing, seen, next_step)

    async def from_backup(self, backup: BackupOrigin, revision: int) -> None:
        """The database is copied to a volume of its own on the machine, which is deleted afterwards."""
        plane, machine = self.plane, self.record.machine
        database = await plane.database(backup, revision, self.cluster)
        size = (await asyncio.to_thread(database.stat)).st_size
        site, scratch = plane.site(self.record.site), f"{self.volume}-restore"
        await plane.check()
        await site.delete_volume(machine, scratch)
        await self._require_room(2 * size)
        await plane.check()
        await site.create_volume(machine, scratch, self.storage_class)
        try:
            path = await site.fill_volume(machine, scratch, "db", database)
            await self._made(path, size)
        finally:
            await site.delete_volume(machine, scratch)
        await asyncio.to_thread(database.unlink, missing_ok=True)  # it holds the plane's secrets; it can be built again

    async def _made(self, database: PurePosixPath, size: int) -> str:
        """Make the founder's volume, with the data of a new cluster from a database on its machine of ``size`` bytes.
        The output of etcdutl.
        """
        plane, record = self.plane, self.record
        site = plane.site(record.site)
        utility = await site.install(record.machine, Program("etcdutl", await plane.etcdutl()))
        await plane.check()
        await site.delete_volume(record.machine, self.volume)
        await self._require_room(size)
        await plane.check()
        target = await site.create_volume(record.machine, self.volume, self.storage_class)
        argv = restoring(
            utility,
            database,
            target.path / DATA,
            name=record.name,
            peer=peer_url(record, self.cluster),
            token=token_of(plane, self.cluster),
        )
        ended = await site.run_job(record.machine, Job(name=f"restore {record.name}", argv=argv, deadline=_DEADLINE))
        if ended.exit_code != 0:
            seen = f"etcdutl: {why_it_ended(ended.output, ended.exit_code)}"
            raise Unavailable(self.doing, seen, "fix the cause; quarterdeck retries")
        return ended.output

    async def _require_room(self, size: int) -> None:
        free = await self.plane.site(self.record.site).free_bytes(self.record.machine, self.storage_class)
        if free < size:
            seen = f"{size:,} bytes must be copied, and machine {self.record.machine} has room for {free:,}"
            raise Unavailable(self.doing, seen, "make room there, but do not delete any of the old data")


async def withdraw_consent(plane: Plane, step: WithdrawConsent, _: World) -> None:
    """Remove the consent to that epoch from the plane's spec; a consent to another one stays."""

    def withdrawn(seen: ControlPlane) -> ControlPlane:
        word = seen.spec.new_epoch
        if word is None or word.epoch != step.epoch:
            return seen
        return seen.with_spec(new_epoch=None)

    await plane.check()
    async with plane.writing:
        plane.resource = await amend(plane.store, ControlPlane, plane.name, withdrawn, lease=plane.lease)


async def delete_kept(plane: Plane, step: DeleteKept, _: World) -> None:
    """Delete data of a former epoch."""
    await plane.check()
    await plane.site(step.site).delete_volume(step.machine, main_volume(plane.name, step.replica))


HANDLERS: Handlers = {
    ReleaseMember: release_member,
    RestoreMember: restore_member,
    WithdrawConsent: withdraw_consent,
    DeleteKept: delete_kept,
}
