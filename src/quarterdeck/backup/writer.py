"""The one writer of a plane's chain in this process: all that adds to the chain goes through it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from quarterdeck.backup.chain import Chain, ChainLink, FullBackup, Increments, ObjectReference
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.errors import LeaseLost

#: Returns only if no other process can hold the plane's lease now; raises LeaseLost.
Check: TypeAlias = Callable[[], Awaitable[None]]
#: The time of day, with its time zone.
Now: TypeAlias = Callable[[], datetime]


class ChainWriter:
    """Appends links under the plane's lease, one after the other. After LeaseLost it is used no more."""

    def __init__(self, chains: ChainStore, writer: str, check: Check, now: Now) -> None:
        """``writer``: the id of this run of the process. No other run has it, and no other writer of this run."""
        self._chains, self._writer, self._check, self._now = chains, writer, check, now
        self._lock = asyncio.Lock()
        self._chain: Chain | None = None
        #: Whether a link may have been written that is not known here: an answer was lost.
        self._in_doubt = False

    @property
    def chain(self) -> Chain:
        """The chain as far as it was read or written here. Read it first."""
        assert self._chain is not None, "the chain was not read yet"
        return self._chain

    async def read(self) -> Chain:
        """The chain, read once, and again after an answer was lost. Raises Unavailable, Corrupt, and LeaseLost where
        another process has added a link.
        """
        async with self._lock:
            return await self._read()

    async def outlived_links(self) -> tuple[str, ...]:
        """See ``ChainStore.outlived``."""
        return await self._chains.outlived(self.chain)

    async def append(
        self,
        *,
        fulls: Sequence[FullBackup] = (),
        increments: Sequence[Increments] = (),
        belongings: ObjectReference | None = None,
        belongings_digest: str = "",
        dropped: Sequence[str] = (),
    ) -> Chain:
        """Add a link with this. After Unavailable it may be called with the same again, and adds nothing twice. No link
        is added that only drops what is no part of the chain.

        Raises LeaseLost where another process holds the plane's lease or has added a link, and what ``ChainStore``
        raises.
        """
        link = ChainLink(
            number=0,
            previous="",
            plane="",
            writer=self._writer,
            at=self._now(),
            fulls=tuple(fulls),
            increments=tuple(increments),
            belongings=belongings,
            belongings_digest=belongings_digest,
            dropped=tuple(dropped),
        )
        async with self._lock:
            await self._read()
            while not _has(self.chain, link):
                await self._check()
                self._in_doubt = True
                await self._append(link)
                self._in_doubt = False
            return self.chain

    async def _read(self) -> Chain:
        if self._chain is None:
            self._chain = await self._chains.read()
        elif self._in_doubt:
            await self._follow()
            self._in_doubt = False
        return self.chain

    async def _append(self, link: ChainLink) -> None:
        """Append a link, or find one of ours there, whose answer was lost."""
        try:
            self._chain = await self._chains.append(self.chain, link)
        except LeaseLost as error:
            await self._follow(error)

    async def _follow(self, error: LeaseLost | None = None) -> None:
        """Read what was added behind the chain. Raises LeaseLost where another process did that."""
        chain = await self._chains.read(self.chain)
        if chain.length > self.chain.length and chain.writer != self._writer:
            seen = f"another process has written link {chain.length}"
            raise error or LeaseLost("adding to a backup", seen)
        self._chain = chain


def _names(link: ChainLink) -> set[str]:
    belongings = set() if link.belongings is None else {link.belongings.name}
    fulls, increments = {each.stored.name for each in link.fulls}, {each.stored.name for each in link.increments}
    return fulls | increments | belongings


def _has(chain: Chain, link: ChainLink) -> bool:
    """Whether a chain has what a link says already. No name is used twice."""
    names = chain.names()
    known = names.union(*(each.names for each in chain.dropped))
    return _names(link) <= known and names.isdisjoint(link.dropped)
