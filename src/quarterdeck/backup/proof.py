"""The proof of a database that was built: etcd itself checks it, starts on it, and has the hashes that it had."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck import clocks
from quarterdeck.backup.chain import BackupMoment, Chain, KeyHash
from quarterdeck.backup.scratch_etcd import EtcdPrograms, scratch_etcd, snapshot_status
from quarterdeck.concurrency import beside
from quarterdeck.errors import Corrupt
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.faults import EtcdCompacted
from quarterdeck.etcd.kv import Get

_ALL = b"\0"


@dataclass(frozen=True, slots=True)
class Proof:
    """The verdict of etcd on a database. ``compared``: the number of hashes that equal those of the cluster;
    ``incomparable``: the number that could not be compared, because the database no longer has what was hashed.
    """

    at: datetime
    revision: int
    keys: int
    size_bytes: int
    compared: tuple[KeyHash, ...]
    incomparable: int
    seconds: float

    @property
    def hashes(self) -> int:
        """The number of hashes that were compared."""
        return len(self.compared)


def hashes_of(chain: Chain, moment: BackupMoment) -> tuple[KeyHash, ...]:
    """The hashes that a cluster had from the full backup of a moment, or the one that it was folded from, up to it."""
    full = moment.full
    first = full.revision if full.folded_from is None else full.folded_from
    its = [each.hash for each in chain.fulls_of(full.cluster, full.epoch)]
    known = {(each.revision, each.compact_revision, each.value): each for each in its if each is not None}
    return tuple(each for (revision, *_), each in sorted(known.items()) if first <= revision <= moment.revision)


async def prove(
    database: Path, revision: int, hashes: Sequence[KeyHash], programs: EtcdPrograms, *, deadline: float = 600.0
) -> Proof:
    """Check that etcd takes a database for whole, serves from it, is at ``revision``, and has these hashes.

    It does so on a copy beside the database, which needs as much room again. ``deadline``: seconds for each step.
    Raises Corrupt where it does not, and what ``scratch_etcd`` raises.
    """
    began = clocks.steady()
    doing = f"checking {database}"
    async with (
        beside(snapshot_status(database, programs.etcdutl, deadline=deadline)) as checking,
        scratch_etcd(database, programs, deadline=deadline) as member,
    ):
        status = await checking
        if status.revision != revision:
            raise _differs(doing, f"it has revision {status.revision}, and revision {revision} was built")
        found = await member.kv.get(Get(key=_ALL, range_end=_ALL, count_only=True), deadline=deadline)
        if found.revision != revision:
            raise _differs(doing, f"an etcd on it begins with revision {found.revision}, and not {revision}")
        in_order = sorted(hashes, key=lambda each: (each.compact_revision, each.revision))
        compared = tuple([each for each in in_order if await _is_equal(member, each, doing, deadline)])
    return Proof(
        at=datetime.now(UTC),
        revision=revision,
        keys=found.count,
        size_bytes=status.size_bytes,
        compared=compared,
        incomparable=len(hashes) - len(compared),
        seconds=clocks.steady() - began,
    )


async def _is_equal(member: EtcdMember, known: KeyHash, doing: str, deadline: float) -> bool:
    """Whether the member could compute a hash that can be compared with a known one: then they are equal. It forgets
    the history that had been forgotten when that one was computed. Raises Corrupt where they differ.
    """
    if known.compact_revision > 0:
        with suppress(EtcdCompacted):  # it has forgotten that, and perhaps more
            await member.kv.compact(known.compact_revision, physical=True, deadline=deadline)
    try:
        now = await member.maintenance.hash_keys(revision=known.revision, deadline=deadline)
    except EtcdCompacted:
        return False
    if now.compact_revision != known.compact_revision:
        return False
    if now.hash != known.value:
        seen = f"the hash at revision {known.revision} is {now.hash:08x}, and the cluster had {known.value:08x}"
        raise _differs(doing, seen)
    return True


def _differs(doing: str, seen: str) -> Corrupt:
    return Corrupt(doing, seen, "use another backup, or an earlier one")
