"""Folds increments into a new full backup, in the store and without asking etcd: a restore reads less then."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import BinaryIO, Final

from quarterdeck.backup.build import expected_bytes, write_moment
from quarterdeck.backup.chain import Chain, FullBackup
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.making import make_scratch
from quarterdeck.backup.sealing import Identities
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.files import file_errors

_PART = 1 << 20
#: How large the increments behind a full backup are at least, as they are stored, before they are folded.
FOLDED_BYTES: Final = 1 << 30


def fold_due(chain: Chain, cluster: str, epoch: int) -> FullBackup | None:
    """The newest full backup, where the increments behind it are larger than it and than ``FOLDED_BYTES``; or None."""
    fulls = chain.fulls_of(cluster, epoch)
    if not fulls:
        return None
    newest = max(fulls, key=lambda each: each.revision)
    behind = (each for each in chain.increments_of(cluster, epoch) if each.last > newest.revision)
    size = sum(each.stored.size_bytes for each in behind)
    return newest if size >= max(FOLDED_BYTES, newest.stored.size_bytes) else None


async def fold(
    writer: ChainWriter, deposit: Deposit, cluster: str, epoch: int, identities: Identities, scratch: Path
) -> FullBackup | None:
    """Make a full backup of the newest moment that the chain has, and add it; None where it has one already.

    ``identities`` open what is stored. ``scratch`` is a folder with room for the database: it is in a file without a
    name there, so that nothing is left of it. Memory: a part of the database, and one increment. The new one has etcd's
    hash of the one that it was made of: its rows are in it, and can still be compared. It has all history since then;
    only a full backup that is taken from etcd has none that was compacted.

    Raises NotFound without a full backup, Corrupt where stored objects are damaged, PreconditionFailed for wrong keys,
    Unavailable also where the disk has no room, and LeaseLost.
    """
    chain = await writer.read()
    moment = chain.latest(cluster, epoch)
    if not moment.increments:
        return None
    doing = f"folding the backup of cluster {cluster}"
    with file_errors(doing):
        await asyncio.to_thread(make_scratch, scratch, expected_bytes(moment), doing)
        file = tempfile.TemporaryFile(dir=scratch)  # noqa: SIM115 - in a thread that is cancelled it would stay open
    with file:
        with file_errors(doing):
            await write_moment(deposit.store, moment, identities, _path(file))
        async with aclosing(_parts(file, doing)) as parts:
            stored = await deposit.put(parts)
        size = os.fstat(file.fileno()).st_size
    full = moment.full.model_copy(
        update={
            "revision": moment.revision,
            "at": moment.at,
            "database_bytes": size,
            "stored": stored,
            "lost_from": None,
            "folded_from": moment.full.revision if moment.full.folded_from is None else moment.full.folded_from,
            "folded_from_at": moment.full.taken_at,
        }
    )
    await writer.append(fulls=[full])
    return full


async def _parts(file: BinaryIO, doing: str) -> AsyncGenerator[bytes, None]:
    """The database in parts, and behind it its SHA-256, as in a snapshot of etcd."""
    digest, at = hashlib.sha256(), 0
    while True:
        with file_errors(doing):
            part = await asyncio.to_thread(os.pread, file.fileno(), _PART, at)
        if not part:
            break
        digest.update(part)
        at += len(part)
        yield part
    yield digest.digest()


def _path(file: BinaryIO) -> Path:
    """The path of a file without a name, for as long as it is open."""
    return Path(f"/proc/self/fd/{file.fileno()}")
