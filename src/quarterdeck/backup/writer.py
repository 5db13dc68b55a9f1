"""The one writer of a plane's chain in this process: all that adds to the chain goes through it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quarterdeck.backup.chain import Chain, ChainLink, ChainStore, FullBackup, Increments, ObjectReference
from quarterdeck.backup.recording import Check, Now
from quarterdeck.errors import LeaseLost


class ChainWriter:
    """Appends links under the plane's lease, one after the other. After LeaseLost it is used no more."""

    def __init__(self, chains: ChainStore, writer: str, check: Check, now: Now) -> None:
        """``writer``: the id of this run of the process. No other run has it, and no other writer of this run."""
        self._chains, self._writer, self._check, self._now = chains, writer, check, now
        self._lock = asyncio.Lock()
        self._chain: Chain | None = None
        #: The objects of links of which it is not known whether they were written: an answer was lost.
        self._in_doubt: set[str] = set()

    @property
    def chain(self) -> Chain:
        """The chain as far as it was read or written here. Read it first."""
        assert self._chain is not None, "the chain was not read yet"
        return self._chain

    async def read(self) -> Chain:
        """The chain, read once. Raises Unavailable, Corrupt."""
        async with self._lock:
            if self._chain is None:
                self._chain = await self._chains.read()
            return self._chain

    async def append(
        self,
        *,
        fulls: Sequence[FullBackup] = (),
        increments: Sequence[Increments] = (),
        belongings: ObjectReference | None = None,
        dropped: Sequence[str] = (),
    ) -> Chain:
        """Add a link with this. After Unavailable it may be called with the same again, and adds nothing twice.

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
            dropped=tuple(dropped),
        )
        await self.read()
        names = _names(link)
        async with self._lock:
            while not (names & self._in_doubt and _has(self.chain, link)):
                await self._check()
                self._in_doubt |= names
                if await self._appended(link):
                    break
            self._in_doubt -= names
            return self.chain

    async def _appended(self, link: ChainLink) -> bool:
        """Append a link; False where one of ours is there, whose answer was lost, and now is known."""
        try:
            self._chain = await self._chains.append(self.chain, link)
        except LeaseLost:
            self._chain = await self._chains.read(self.chain)
            if self.chain.writer != self._writer:
                raise
            return False
        return True


def _names(link: ChainLink) -> set[str]:
    belongings = set() if link.belongings is None else {link.belongings.name}
    fulls, increments = {each.stored.name for each in link.fulls}, {each.stored.name for each in link.increments}
    return fulls | increments | belongings | set(link.dropped)


def _has(chain: Chain, link: ChainLink) -> bool:
    return _names(link) <= chain.names() | chain.dropped and chain.dropped.issuperset(link.dropped)
