"""Databases that are restored from backups: built and proven on this host before anything of a plane is touched."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.backup.build import build
from quarterdeck.backup.chain import BackupMoment, Chain, KeyHash
from quarterdeck.backup.making import remove_left
from quarterdeck.backup.proof import Proof, hashes_of, prove
from quarterdeck.backup.replay import replay
from quarterdeck.backup.revival import revive
from quarterdeck.backup.scratch_etcd import EtcdPrograms
from quarterdeck.engine.workspace.backups import OpenBackups, open_backups_at, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.files import file_errors
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.epochs import BackupOrigin
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream

MAIN = Cluster.MAIN.value
#: Seconds that a database is kept which nothing was restored from.
_KEPT_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RestoredDatabase:
    """A database that is ready to serve. ``proof`` is None where it had been built before."""

    path: Path
    proof: Proof | None


async def restored_database(
    home: Home,
    upstream: Upstream,
    plane: ControlPlane,
    origin: BackupOrigin,
    revision: int,
    cluster: Cluster = Cluster.MAIN,
    *,
    by_replay: bool = False,
) -> RestoredDatabase:
    """The database of a cluster of a plane at a revision of a backup, built and proven unless it was before.
    ``by_replay``: see ``proven``; then it is always built, in place of the one before.

    Raises NotFound where the backup has no such revision, and what ``build`` and ``prove`` raise.
    """
    target = _path(home, plane.name, origin, revision, cluster)
    if not by_replay and await asyncio.to_thread(target.exists):
        return RestoredDatabase(target, None)
    backups = await open_backups_at(home, plane, origin.store, origin.folder)
    chain = await backups.chains.read()
    moment = chain.at_revision(cluster.value, revision, origin.epoch)
    built = target.with_suffix(".built")
    with file_errors("restoring a database"):
        await asyncio.to_thread(target.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
    programs = await etcd_programs(upstream, plane)
    proof = await proven(backups, chain, moment, built, programs, by_replay=by_replay)
    with file_errors(f"preparing {built}"):
        await asyncio.to_thread(revive, built)
        await asyncio.to_thread(built.rename, target)
    return RestoredDatabase(target, proof)


async def proven(
    backups: OpenBackups,
    chain: Chain,
    moment: BackupMoment,
    target: Path,
    programs: EtcdPrograms,
    *,
    hashes: Sequence[KeyHash] = (),
    by_replay: bool = False,
) -> Proof:
    """Build a database of a moment at ``target``, and prove it with a real etcd. ``hashes``: further ones that it must
    have, besides those in the chain. ``by_replay``: an etcd does once more what the increments say, instead of rows
    that are written into its file.
    """
    store, identities = backups.store, backups.keys.identities
    if by_replay:
        await replay(store, moment, identities, target, programs)
    else:
        await build(store, moment, identities, target)
    return await prove(target, moment.revision, (*hashes_of(chain, moment), *hashes), programs)


async def etcd_programs(upstream: Upstream, plane: ControlPlane) -> EtcdPrograms:
    """The programs of a plane's etcd on this host; downloaded if they are missing."""
    versions = Versions.parse(kubernetes=plane.spec.kubernetes_version, etcd=plane.spec.etcd.version)
    paths = await upstream.ensure((UpstreamProgram.ETCD, UpstreamProgram.ETCDUTL), versions)
    return EtcdPrograms(etcd=paths[UpstreamProgram.ETCD], etcdutl=paths[UpstreamProgram.ETCDUTL])


async def forget_restored(home: Home, plane: ControlPlane) -> None:
    """Delete databases that were built to restore a plane, for they hold its secrets: those of its present epoch, once
    the founder has them, and those that were built more than a day ago. A later one may be about to be used.
    """
    memory, folder = memory_from_status(plane.status.memory), scratch_folder(home.folder, plane.name)
    used = {
        _path(home, plane.name, seed.origin, seed.revision, cluster)
        for cluster in Cluster
        if (seed := memory.of(cluster).seed) is not None
        if seed.restored and isinstance(seed.origin, BackupOrigin)
    }

    def delete() -> None:
        remove_left(folder)
        oldest = time.time() - _KEPT_S
        for each in folder.glob("restore-*"):
            if each in used or each.stat().st_mtime < oldest:
                each.unlink(missing_ok=True)

    with file_errors("deleting a restored database"):
        await asyncio.to_thread(delete)


def _path(home: Home, plane: str, origin: BackupOrigin, revision: int, cluster: Cluster) -> Path:
    place = hashlib.sha256(f"{origin.store} {origin.folder}".encode()).hexdigest()[:12]
    return scratch_folder(home.folder, plane) / f"restore-{cluster}-{place}-{origin.epoch}-{revision}.db"
