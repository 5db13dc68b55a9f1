"""The links of a chain in a backup store: read from the newest checkpoint on, added by one writer, deleted when old.

Each link whose number is a multiple of ``CHECKPOINT_LINKS`` is a checkpoint. Links are deleted from the oldest one on,
and never the two newest checkpoints or what is behind them. So if a link is there, none behind it was deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError

from quarterdeck.backup.chain import Chain, ChainLink
from quarterdeck.backup.objects.port import ObjectExists, ObjectStore
from quarterdeck.concurrency import together
from quarterdeck.errors import Corrupt, LeaseLost, NotFound, PreconditionFailed

#: One link of so many has the state of the chain.
CHECKPOINT_LINKS: Final = 1024
_LINKS: Final = "links"
#: How many links are read at the same time: a store may take 30 ms for each.
_AT_ONCE: Final = 32
#: How often links are listed for one reading, while what was listed is being deleted.
_LISTINGS: Final = 5


class ChainStore:
    """The chain of one plane in a backup store."""

    def __init__(
        self, store: ObjectStore, plane: str, prefix: str, *, checkpoint_links: int = CHECKPOINT_LINKS
    ) -> None:
        """``plane``: the uid that its links must have; ``prefix``: the folder of the plane in the store."""
        self._store = store
        self._plane = plane
        self._prefix = prefix
        self._checkpoint_links = checkpoint_links

    async def read(self, known: Chain | None = None) -> Chain:
        """The chain as it is stored, from the links that ``known`` has not got, or from the newest checkpoint. Raises
        Corrupt where a link is missing, changed, or of another chain.

        A listing may be stale: the next link is asked for until there is none. What is listed may be deleted while it
        is read; then a newer checkpoint exists, and the links are listed again.
        """
        chain = known or Chain(self._plane)
        newest = 0
        for attempt in range(_LISTINGS):
            numbers = await self._numbers()
            newest = max(numbers, default=0)
            goes_on = not attempt and chain.length and chain.length + 1 in numbers
            checkpoint = newest - newest % self._checkpoint_links
            if checkpoint > chain.length + 1 and not goes_on:
                chain = await self._begun(checkpoint) or chain
            chain, complete = await self._continued(chain, newest)
            if complete:
                return chain
        raise Corrupt(
            self._reading(self._name(min(chain.length, newest) + 1)),
            "this link of the chain is missing" + (f", and link {newest} exists" if newest > chain.length else ""),
            "restore it, or start another chain with a full backup to another place",
        )

    async def continues(self, chain: Chain) -> bool:
        """Whether there is a link behind a chain, by few requests: ``read`` lists all links."""
        return await self._store.exists(self._name(chain.length + 1)) or await self._is_behind(chain)

    async def append(self, chain: Chain, link: ChainLink) -> Chain:
        """Add a link, and with it make its objects part of the backup. Raises LeaseLost where another writer was first,
        and PreconditionFailed for a link that drops what a kept backup needs.
        """
        number = chain.length + 1
        state = None if number % self._checkpoint_links else chain.state
        update = {"number": number, "previous": chain.head, "plane": self._plane, "state": state}
        link = link.model_copy(update=update)
        _check_dropped(chain, link)
        content = link.model_dump_json(exclude_none=True).encode()
        doing = f"adding to the backup at {self._store.address}"
        try:
            await self._store.create(self._name(number), content)
        except ObjectExists as error:
            if await self._store.read(self._name(number)) != content:  # an answer may be lost, and tried again
                raise LeaseLost(doing, f"another process has written link {number}") from error
        if await self._is_behind(chain):
            seen = f"link {chain.length} is gone: another process has written many since, or somebody has deleted it"
            raise LeaseLost(doing, seen)
        return chain.with_link(link, _hash(content))

    async def outlived(self, chain: Chain) -> tuple[str, ...]:
        """The names of links that no reader needs any more, in the order in which they must be deleted: those before
        the checkpoint before the newest one, so that a reader that has begun there can go on. Raises Corrupt where the
        newest checkpoint is damaged.
        """
        newest = chain.length - chain.length % self._checkpoint_links
        kept = newest - self._checkpoint_links
        if kept <= 0 or await self._begun(newest) is None:
            return ()
        return tuple(self._name(each) for each in await self._numbers() if each < kept)

    async def _numbers(self) -> list[int]:
        """The numbers of the links that are listed, in order."""
        return sorted(_number(each.name) for each in await self._store.names(f"{self._prefix}/{_LINKS}"))

    async def _is_behind(self, chain: Chain) -> bool:
        """Whether links of a chain were deleted, as they are when there are many newer ones. Since the oldest one is
        deleted first: if the last one is there, no link behind it was deleted.
        """
        if chain.length:
            return not await self._store.exists(self._name(chain.length))
        return any(each > 1 for each in await self._numbers())

    async def _begun(self, checkpoint: int) -> Chain | None:
        """The chain up to a checkpoint, and with it; None where it was deleted."""
        name = self._name(checkpoint)
        (content,) = await self._contents([name])
        if content is None:
            return None
        link = self._parsed(name, content)
        if link.number != checkpoint or link.state is None:
            raise Corrupt(self._reading(name), "it is no checkpoint, as links of this number are", "restore it")
        return Chain.before(link, link.state).with_link(link, _hash(content))

    async def _continued(self, chain: Chain, newest: int) -> tuple[Chain, bool]:
        """A chain with the links behind it, and whether that is all of them: up to ``newest`` at least."""
        while True:
            ahead = min(_AT_ONCE, max(1, newest - chain.length))
            names = [self._name(chain.length + each) for each in range(1, ahead + 1)]
            for name, content in zip(names, await self._contents(names), strict=True):
                if content is None:
                    complete = chain.length >= newest and not (chain.length and await self._is_behind(chain))
                    return chain, complete
                chain = chain.with_link(self._checked(name, content, chain), _hash(content))

    async def _contents(self, names: Sequence[str]) -> list[bytes | None]:
        """The content of each of these objects; None where there is none."""

        async def one(name: str) -> bytes | None:
            try:
                return await self._store.read(name)
            except NotFound:
                return None

        return await together(*map(one, names))

    def _name(self, number: int) -> str:
        return f"{self._prefix}/{_LINKS}/{number:020d}.json"

    def _reading(self, name: str) -> str:
        return f"reading {name} at {self._store.address}"

    def _checked(self, name: str, content: bytes, chain: Chain) -> ChainLink:
        link = self._parsed(name, content)
        if (link.number, link.previous) != (chain.length + 1, chain.head):
            raise Corrupt(
                self._reading(name),
                "it does not continue the link before it",
                "restore the links from a copy of the store",
            )
        return link

    def _parsed(self, name: str, content: bytes) -> ChainLink:
        doing = self._reading(name)
        try:
            link = ChainLink.model_validate_json(content)
        except ValidationError as error:
            raise Corrupt(doing, f"this is no link of a chain: {error.errors()[0]['msg']}", "restore it") from error
        if link.plane != self._plane:
            raise Corrupt(doing, f"it is of plane {link.plane}, not of {self._plane}", "use another store")
        return link


def _check_dropped(chain: Chain, link: ChainLink) -> None:
    doing, dropped = "dropping objects of a backup", set(link.dropped)
    if not dropped:
        return
    if unknown := dropped - chain.names():
        raise PreconditionFailed(doing, f"the chain does not have {min(unknown)}")
    belongings = dropped & {each.stored.name for each in chain.belongings}
    if not belongings:
        return
    kept = chain.with_link(link.model_copy(update={"dropped": tuple(dropped - belongings)}), "")
    if used := belongings - set(kept.outlived_belongings()):
        raise PreconditionFailed(doing, f"a backup that is kept needs the keys in {min(used)}", "keep it")


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _number(name: str) -> int:
    digits = name.rsplit("/", 1)[-1].removesuffix(".json")
    return int(digits) if digits.isdigit() else 0
