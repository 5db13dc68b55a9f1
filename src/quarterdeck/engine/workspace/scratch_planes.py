"""A plane as it was at a moment of its backup, served by an apiserver of its own for as long as it is looked at."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.backup.belongings import PlaneArchive, read_archive
from quarterdeck.backup.build import opened
from quarterdeck.backup.chain import BackupMoment, Chain
from quarterdeck.backup.kubernetes.scratch_apiserver import ScratchApiserver, ScratchPrograms, scratch_apiserver
from quarterdeck.backup.scratch_etcd import EtcdPrograms
from quarterdeck.components.credentials import EncryptionKey
from quarterdeck.engine.workspace import revisions
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import proven
from quarterdeck.engine.workspace.scratch_moments import scratch_space
from quarterdeck.pki.codec import decode
from quarterdeck.upstream.catalog import UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream

_PROGRAMS = (UpstreamProgram.ETCD, UpstreamProgram.ETCDUTL, UpstreamProgram.KUBE_APISERVER)
#: Seconds for the start of each program: a large database is copied, and the machine may be busy.
_DEADLINE = 300.0


@asynccontextmanager
async def scratch_plane(
    home: Home, upstream: Upstream, plane: ControlPlane, backups: OpenBackups, chain: Chain, moment: BackupMoment
) -> AsyncIterator[ScratchApiserver]:
    """An apiserver on a database of a moment, with the revision and the keys that the plane had then, or has now where
    the backup has none. Nothing of the plane is touched. The database is proven first, as for each restore. Raises what
    ``proven`` and ``scratch_apiserver`` raise.
    """
    template, keys = await _belongings(home, plane, backups, chain, moment)
    programs = await _programs(upstream, template)
    async with scratch_space(home, plane.name, f"reading a backup of plane {plane.name}") as folder:
        database = folder / "moment.db"
        await proven(backups, chain, moment, database, programs.etcd)
        async with scratch_apiserver(
            database, programs, template, keys, revision=moment.revision, deadline=_DEADLINE
        ) as apiserver:
            yield apiserver


async def _belongings(
    home: Home, plane: ControlPlane, backups: OpenBackups, chain: Chain, moment: BackupMoment
) -> tuple[ReplicaTemplate, tuple[EncryptionKey, ...]]:
    """What the plane ran then, and the keys of that time, with those of today behind them: no name is used twice."""
    present = (await secrets_of(home.store, plane)).encryption_keys
    reference = chain.belongings_at(moment.revision, moment.full.epoch)
    if reference is None:
        known = await revisions.known(home.store, plane, guess=True)
        return known.template(known.goal), present
    async with opened(backups.store, reference, backups.keys.identities) as parts:
        archive = read_archive(b"".join([part async for part in parts]))
    keys = {each.name: each for each in (*_keys(archive), *present)}
    wanted = archive.plane.status.revision
    template = next(each.spec for each in archive.revisions if each.name == wanted)
    return template, tuple(keys.values())


def _keys(archive: PlaneArchive) -> tuple[EncryptionKey, ...]:
    return decode(archive.secrets.data.get_secret_value()).encryption_keys


async def _programs(upstream: Upstream, template: ReplicaTemplate) -> ScratchPrograms:
    """The programs on this host; downloaded if they are missing."""
    versions = Versions.parse(kubernetes=template.kubernetes_version, etcd=template.etcd.version)
    paths = await upstream.ensure(_PROGRAMS, versions)
    etcd = EtcdPrograms(paths[UpstreamProgram.ETCD], paths[UpstreamProgram.ETCDUTL])
    return ScratchPrograms(etcd, paths[UpstreamProgram.KUBE_APISERVER])
