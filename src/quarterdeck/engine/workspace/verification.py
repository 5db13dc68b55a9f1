"""Verifying a backup: it is restored in a scratch etcd on this host, and the verification is noted in its store."""

from __future__ import annotations

from datetime import UTC, datetime

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.backup.chain import BackupMoment, Chain, KeyHash
from quarterdeck.backup.verifications import VerificationStore, VerifiedMoment
from quarterdeck.engine.workspace.backups import OpenBackups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import etcd_programs, proven
from quarterdeck.engine.workspace.scratch_moments import scratch_space
from quarterdeck.upstream.upstream import Upstream


async def verify_moment(
    home: Home,
    upstream: Upstream,
    plane: ControlPlane,
    backups: OpenBackups,
    chain: Chain,
    moment: BackupMoment,
    live: KeyHash | None,
    *,
    by_replay: bool = False,
) -> VerifiedMoment:
    """Build the database of a moment, start an etcd on it, and compare revision, keys and hashes. ``live``: the hash
    that a member has now at that revision, where one could say it. ``by_replay``: see ``proven``.

    Raises Corrupt where they differ or the backup is damaged, and what ``build`` and ``prove`` raise.
    """
    programs = await etcd_programs(upstream, plane)
    hashes = () if live is None else (live,)
    async with scratch_space(home, plane.name, f"verifying a backup of plane {plane.name}") as folder:
        path = folder / "moment.db"
        proof = await proven(backups, chain, moment, path, programs, hashes=hashes, by_replay=by_replay)
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
