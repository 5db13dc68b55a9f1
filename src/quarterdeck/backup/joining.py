"""Joins increments that continue each other to one object, which is compressed far better than its parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from quarterdeck.backup.build import read_increments
from quarterdeck.backup.chain import Chain, Increments
from quarterdeck.backup.deposit import Deposit
from quarterdeck.backup.records import Increment, encode
from quarterdeck.backup.sealing import Identities
from quarterdeck.backup.writer import ChainWriter
from quarterdeck.concurrency import together
from quarterdeck.errors import Corrupt, PreconditionFailed, QuarterdeckError

#: Bytes of joined increments before they are compressed: reading one holds all of it in memory.
JOINED_BYTES: Final = 8 << 20
#: So much larger than its largest part is what was joined. So each byte is stored again a few times only (the logarithm
#: of ``JOINED_BYTES`` to this base), and what is larger than a quarter of ``JOINED_BYTES`` stays as it is.
_GROWTH: Final = 4
#: A link names all parts that it drops.
_PARTS: Final = 1024
#: How many of them are read at the same time.
_AT_ONCE: Final = 16


def joinable(chain: Chain, before: datetime, *, without: Collection[str] = ()) -> list[tuple[Increments, ...]]:
    """Runs of increments to be joined, each of one cluster and epoch and in the order of revisions. All were recorded
    ``before`` that time, and none is one of ``without``, the names of objects that cannot be read.
    """
    found: list[tuple[Increments, ...]] = []
    its = sorted(chain.increments, key=lambda each: (each.cluster, each.epoch, each.first))
    for _, group in groupby(its, key=lambda each: (each.cluster, each.epoch)):
        stretch: list[Increments] = []
        for each in group:
            fits = 0 < each.raw_bytes < JOINED_BYTES and each.last_at < before and each.stored.name not in without
            if not fits or (stretch and each.first != stretch[-1].last + 1):
                found += _runs(stretch)
                stretch = []
            if fits:
                stretch.append(each)
        found += _runs(stretch)
    return found


async def join(
    writer: ChainWriter, deposit: Deposit, run: Sequence[Increments], identities: Identities
) -> Mapping[str, QuarterdeckError]:
    """Join a run of increments, and have the chain name what they were joined to in place of them. They stay in the
    store until a sweep deletes them. Where some of them cannot be read, nothing is done: their names, each with the
    error. Memory: a few times ``JOINED_BYTES``.

    Raises Unavailable, LeaseLost, and PreconditionFailed where the chain does not have them any more.
    """
    parts: list[Increment] = []
    unreadable: dict[str, QuarterdeckError] = {}

    async def read(of: Increments) -> tuple[Increment, ...]:
        try:
            return await read_increments(deposit.store, of, identities)
        except (Corrupt, PreconditionFailed) as error:
            unreadable[of.stored.name] = error
            return ()

    for at in range(0, len(run), _AT_ONCE):
        for each in await together(*map(read, run[at : at + _AT_ONCE])):
            parts += each
    if unreadable:
        return unreadable
    content = await asyncio.to_thread(_joined, parts)
    joined = Increments(
        cluster=run[0].cluster,
        epoch=run[0].epoch,
        first=run[0].first,
        last=run[-1].last,
        # The first time at which one of them counts: clocks are set back.
        first_at=min(min(each.first_at, each.last_at) for each in run),
        last_at=run[-1].last_at,
        raw_bytes=len(content),
        stored=await deposit.put(_whole(content)),
    )
    await writer.append(increments=[joined], dropped=[each.stored.name for each in run])
    return {}


def _runs(stretch: Sequence[Increments]) -> Iterator[tuple[Increments, ...]]:
    """The runs of a stretch of increments without a gap, the newest one first."""
    end = len(stretch)
    while end > 1:
        begin = _begin(stretch, end)
        if begin < end:
            yield tuple(stretch[begin:end])
        end = min(begin, end - 1)


def _begin(stretch: Sequence[Increments], end: int) -> int:
    """Where the longest run begins that ends before ``end``; that is ``end`` where there is none."""
    begin, total, largest = end, 0, 0
    for at in range(end - 1, max(0, end - _PARTS) - 1, -1):
        size = stretch[at].raw_bytes
        total, largest = total + size, max(largest, size)
        if total > JOINED_BYTES:
            break
        if total >= _GROWTH * largest:
            begin = at
    return begin


def _joined(parts: Sequence[Increment]) -> bytes:
    return b"".join(map(encode, parts))


async def _whole(content: bytes) -> AsyncGenerator[bytes, None]:
    yield content
