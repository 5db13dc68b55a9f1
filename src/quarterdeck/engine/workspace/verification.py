"""Verifying a backup: it is restored in a scratch etcd on this host, and the verification is noted in its store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.backup.chain import BackupMoment, Chain, KeyHash
from quarterdeck.backup.making import made_beside
from quarterdeck.backup.verifications import VerificationStore, VerifiedMoment
from quarterdeck.engine.workspace.backups import OpenBackups, scratch_folder
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import etcd_programs, proven
from quarterdeck.files import file_errors, remove_folder
from quarterdeck.upstream.upstream import Upstream

#: A folder in the scratch folder of a plane, in which one process at a time verifies a backup. What a killed process
#: left there is removed by the next one.
_FOLDER = "verification"


async def verify_moment(
    home: Home,
    upstream: Upstream,
    plane: ControlPlane,
    backups: OpenBackups,
    chain: Chain,
    moment: BackupMoment,
    live: KeyHash | None,
) -> VerifiedMoment:
    """Build the database of a moment, start an etcd on it, and compare revision, keys and hashes. ``live``: the hash
    that a member has now at that revision, where one could say it.

    Raises Corrupt where they differ or the backup is damaged, Conflict where another process verifies one of this
    plane, and what ``build`` and ``prove`` raise.
    """
    doing = f"verifying a backup of plane {plane.name}"
    programs = await etcd_programs(upstream, plane)
    scratch = scratch_folder(home.folder, plane.name)
    with file_errors(doing):
        await asyncio.to_thread(scratch.mkdir, mode=0o700, parents=True, exist_ok=True)
        with made_beside(scratch / _FOLDER, doing):
            folder = scratch / f".{_FOLDER}"
            await asyncio.to_thread(remove_folder, folder)
            folder.mkdir(mode=0o700)
            try:
                database = folder / "moment.db"
                hashes = () if live is None else (live,)
                proof = await proven(backups, chain, moment, database, programs, hashes=hashes)
            finally:
                await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(remove_folder, folder)))
    found = VerifiedMoment(
        cluster=moment.full.cluster,
        epoch=moment.full.epoch,
        revision=moment.revision,
        at=datetime.now(UTC),
        keys=proof.keys,
        database_bytes=proof.size_bytes,
        hashes=proof.hashes,
        live=live in proof.compared,
        duration_seconds=proof.seconds,
    )
    await VerificationStore(backups.store, backups.folder).add(found)
    return found
