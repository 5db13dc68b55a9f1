"""The chain of a plane's backups: numbered links, each created once, that alone make stored objects a backup.

A link says which objects were added and which are no longer used. Its name is its number, so that of two writers one
succeeds and the other one learns that it was overtaken. It has the hash of the link before it: links of another chain,
or changed ones, are found. Objects that no link names are no backup; a writer that died has left them.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Protocol, TypeVar

from pydantic import AwareDatetime, ValidationError

from quarterdeck.api.base import Model
from quarterdeck.backup.objects.port import ObjectExists, ObjectStore
from quarterdeck.concurrency import together
from quarterdeck.errors import Corrupt, LeaseLost, NotFound, PreconditionFailed

_LINKS: Final = "links"
#: How many links are read at the same time: a store may take 30 ms for each, and a day has 86,400.
_AT_ONCE: Final = 32
_MAIN: Final = "main"


class ObjectReference(Model):
    """A stored object."""

    name: str
    #: SHA-256 of its stored bytes, hexadecimal.
    sha256: str
    size_bytes: int


class KeyHash(Model):
    """etcd's hash of all keys at a revision. Comparable only with the same compact revision (etcd: mvcc/hash.go)."""

    value: int
    revision: int
    compact_revision: int


class FullBackup(Model):
    """A database of etcd as of one revision."""

    #: ``main`` or ``events``.
    cluster: str
    #: How often the cluster has begun from a survivor or a backup.
    epoch: int
    revision: int
    at: AwareDatetime
    etcd_version: str
    #: etcd's own, at this revision, or of a folded one at that of the full backup that it was made of. None: etcd could
    #: not say it, because the history was compacted meanwhile.
    hash: KeyHash | None = None
    #: The revision of the full backup out of etcd that it was made of, where it was not taken from etcd itself.
    folded_from: int | None = None
    #: The first of the revisions before it that were lost: etcd had discarded them before they were recorded. None: it
    #: was taken without a gap, or begins an epoch.
    lost_from: int | None = None
    #: The size of the database; 0 where it is not known.
    database_bytes: int = 0
    stored: ObjectReference


class Increments(Model):
    """What a cluster did from one revision to another one, without a gap."""

    cluster: str
    epoch: int
    first: int
    last: int
    first_at: AwareDatetime
    last_at: AwareDatetime
    stored: ObjectReference


class ChainLink(Model):
    """One step of a chain."""

    number: int
    #: SHA-256 of the link before it; "" for the first one.
    previous: str
    #: The uid of the plane.
    plane: str
    #: The process that wrote it.
    writer: str
    at: AwareDatetime
    fulls: tuple[FullBackup, ...] = ()
    increments: tuple[Increments, ...] = ()
    #: All that the plane needs to come back besides etcd's data (``belongings``), where it has changed.
    belongings: ObjectReference | None = None
    #: The names of objects that are no longer used, and are deleted afterwards.
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BackupMoment:
    """How a moment is restored: a full backup, the increments behind it in order, and the revision to stop at."""

    full: FullBackup
    increments: tuple[Increments, ...]
    revision: int

    @property
    def at(self) -> datetime:
        """When its newest part was recorded."""
        return self.increments[-1].last_at if self.increments else self.full.at

    @property
    def objects(self) -> tuple[ObjectReference, ...]:
        """The stored objects that it is restored from, in order."""
        return (self.full.stored, *(each.stored for each in self.increments))

    @property
    def stored_bytes(self) -> int:
        """The size of all of them."""
        return sum(each.size_bytes for each in self.objects)


@dataclass(frozen=True, slots=True, order=True)
class Reached:
    """How far a plane had come: revisions grow within an epoch."""

    epoch: int = -1
    revision: int = 0


@dataclass(frozen=True, slots=True)
class StoredBelongings:
    """The belongings of a plane as they were when its main cluster had been backed up to ``reached``."""

    stored: ObjectReference
    reached: Reached


class _Stored(Protocol):
    @property
    def stored(self) -> ObjectReference: ...


_Part = TypeVar("_Part", bound=_Stored)


@dataclass(frozen=True, slots=True)
class Chain:
    """All links of a plane, joined."""

    plane: str
    length: int = 0
    #: The hash of the last link, and the process that wrote it.
    head: str = ""
    writer: str = ""
    fulls: tuple[FullBackup, ...] = ()
    increments: tuple[Increments, ...] = ()
    #: In the order of their links.
    belongings: tuple[StoredBelongings, ...] = ()
    #: How far the main cluster was ever backed up, also by objects that have been dropped.
    reached: Reached = Reached()
    dropped: frozenset[str] = field(default_factory=frozenset)

    def with_link(self, link: ChainLink, head: str) -> Chain:
        """The chain with one more link, whose hash is ``head``."""
        dropped = self.dropped | set(link.dropped) if link.dropped else self.dropped
        fulls = (Reached(each.epoch, each.revision) for each in link.fulls if each.cluster == _MAIN)
        steps = (Reached(each.epoch, each.last) for each in link.increments if each.cluster == _MAIN)
        reached = max((self.reached, *fulls, *steps))
        added = () if link.belongings is None else (StoredBelongings(link.belongings, reached),)
        return replace(
            self,
            length=link.number,
            head=head,
            writer=link.writer,
            fulls=_joined(self.fulls, link.fulls, link.dropped),
            increments=_joined(self.increments, link.increments, link.dropped),
            belongings=_joined(self.belongings, added, link.dropped),
            reached=reached,
            dropped=dropped,
        )

    def names(self) -> frozenset[str]:
        """The names of the objects that it consists of."""
        fulls, increments = (each.stored.name for each in self.fulls), (each.stored.name for each in self.increments)
        return frozenset((*fulls, *increments, *(each.stored.name for each in self.belongings)))

    def belongings_at(self, revision: int, epoch: int) -> ObjectReference | None:
        """The newest belongings that were stored at a revision of the main cluster, or before it; None where there are
        none: then only data can be restored to it.
        """
        found = [each for each in self.belongings if each.reached <= Reached(epoch, revision)]
        return found[-1].stored if found else None

    def outlived_belongings(self) -> tuple[str, ...]:
        """The names of belongings that are used by no revision that can be restored: newer ones were stored before the
        oldest full backup.
        """
        oldest = min((Reached(each.epoch, each.revision) for each in self._of_main()), default=self.reached)
        before = [each.stored.name for each in self.belongings if each.reached <= oldest]
        return tuple(before[:-1])

    def _of_main(self) -> list[FullBackup]:
        return [each for each in self.fulls if each.cluster == _MAIN]

    def at_revision(self, cluster: str, revision: int, epoch: int) -> BackupMoment:
        """The shortest way to a revision; of two full backups of one revision the later one is used. Raises NotFound
        where no backup has it, with the nearest revisions that can be restored.
        """
        fulls = [each for each in reversed(self.fulls_of(cluster, epoch)) if each.revision <= revision]
        for full in sorted(fulls, key=lambda each: -each.revision):
            steps = self._steps(full, revision)
            if _end(full, steps) >= revision:
                return BackupMoment(full, steps, revision)
        raise self._not_covered(f"revision {revision:,}", cluster, epoch)

    def latest(self, cluster: str, epoch: int) -> BackupMoment:
        """The newest moment. Raises NotFound where there is no full backup."""
        reached = [(full, self._steps(full, None)) for full in reversed(self.fulls_of(cluster, epoch))]
        if not reached:
            raise self._not_covered("the newest moment", cluster, epoch)
        full, steps = max(reached, key=lambda each: (_end(*each), each[0].revision))
        return BackupMoment(full, steps, _end(full, steps))

    def ranges(self, cluster: str, epoch: int) -> tuple[tuple[int, int], ...]:
        """The first and last revision of each stretch of revisions that can be restored, in order."""
        found: list[tuple[int, int]] = []
        for full in sorted(self.fulls_of(cluster, epoch), key=lambda each: each.revision):
            last = _end(full, self._steps(full, None))
            if found and full.revision <= found[-1][1] + 1:
                found[-1] = (found[-1][0], max(found[-1][1], last))
            else:
                found.append((full.revision, last))
        return tuple(found)

    def fulls_of(self, cluster: str, epoch: int) -> list[FullBackup]:
        """The full backups of a cluster in an epoch, in the order of their links."""
        return [each for each in self.fulls if (each.cluster, each.epoch) == (cluster, epoch)]

    def increments_of(self, cluster: str, epoch: int) -> list[Increments]:
        """The increments of a cluster in an epoch, in the order of their links."""
        return [each for each in self.increments if (each.cluster, each.epoch) == (cluster, epoch)]

    def _steps(self, full: FullBackup, to: int | None) -> tuple[Increments, ...]:
        """The increments that continue a full backup without a gap, up to a revision. Of two that begin early enough
        the one that goes further is used.
        """
        its = self.increments_of(full.cluster, full.epoch)
        its.sort(key=lambda each: each.first, reverse=True)  # a chain may have 100,000 of them: each is seen once
        steps: list[Increments] = []
        reached, furthest = full.revision, None
        while to is None or reached < to:
            while its and its[-1].first <= reached + 1:
                each = its.pop()
                furthest = each if furthest is None or each.last > furthest.last else furthest
            if furthest is None or furthest.last <= reached:
                break
            steps.append(furthest)
            reached = furthest.last
        return tuple(steps)

    def _not_covered(self, what: str, cluster: str, epoch: int) -> NotFound:
        ranges = self.ranges(cluster, epoch)
        stretches = ", ".join(f"{first:,} to {last:,}" for first, last in ranges)
        seen = f"no backup has it; revisions that can be restored: {stretches or 'none'}"
        return NotFound(f"looking for {what} of cluster {cluster}", seen, "choose one of these" if ranges else "")


class ChainStore:
    """The chain of one plane in a backup store."""

    def __init__(self, store: ObjectStore, plane: str, prefix: str) -> None:
        """``plane``: the uid that its links must have; ``prefix``: the folder of the plane in the store."""
        self._store = store
        self._plane = plane
        self._prefix = prefix

    async def read(self, known: Chain | None = None) -> Chain:
        """The chain as it is stored, from the links that ``known`` has not got. Raises Corrupt where a link is missing,
        changed, or of another chain. A listing may be stale: the next link is asked for until there is none.
        """
        chain = known or Chain(self._plane)
        listed = await self._store.names(f"{self._prefix}/{_LINKS}")
        newest = max((_number(each.name) for each in listed), default=0)
        while True:
            ahead = min(_AT_ONCE, max(1, newest - chain.length))
            names = [self._name(chain.length + each) for each in range(1, ahead + 1)]
            for name, content in zip(names, await self._contents(names), strict=True):
                if content is None:
                    if chain.length < newest:
                        raise Corrupt(
                            f"reading {name} at {self._store.address}",
                            f"this link of the chain is missing, and link {newest} exists",
                            "restore it, or start another chain with a full backup to another place",
                        )
                    return chain
                chain = chain.with_link(self._checked(name, content, chain), _hash(content))

    async def continues(self, chain: Chain) -> bool:
        """Whether there is a link behind a chain, by one request: ``read`` lists all links."""
        return await self._store.exists(self._name(chain.length + 1))

    async def append(self, chain: Chain, link: ChainLink) -> Chain:
        """Add a link, and with it make its objects part of the backup. Raises LeaseLost where another writer was first,
        and PreconditionFailed for a link that drops what a kept backup needs.
        """
        link = link.model_copy(update={"number": chain.length + 1, "previous": chain.head, "plane": self._plane})
        _check_dropped(chain, link)
        content = link.model_dump_json().encode()
        try:
            await self._store.create(self._name(link.number), content)
        except ObjectExists as error:
            if await self._store.read(self._name(link.number)) != content:  # an answer may be lost, and tried again
                seen = f"another process has written link {link.number}"
                raise LeaseLost(f"adding to the backup at {self._store.address}", seen) from error
        return chain.with_link(link, _hash(content))

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

    def _checked(self, name: str, content: bytes, chain: Chain) -> ChainLink:
        doing = f"reading {name} at {self._store.address}"
        try:
            link = ChainLink.model_validate_json(content)
        except ValidationError as error:
            raise Corrupt(doing, f"this is no link of a chain: {error.errors()[0]['msg']}", "restore it") from error
        if link.plane != self._plane:
            raise Corrupt(doing, f"it is of plane {link.plane}, not of {self._plane}", "use another store")
        if (link.number, link.previous) != (chain.length + 1, chain.head):
            raise Corrupt(
                doing, "it does not continue the link before it", "restore the links from a copy of the store"
            )
        return link


async def verified(content: AsyncGenerator[bytes, None], reference: ObjectReference) -> AsyncGenerator[bytes, None]:
    """The stored bytes of an object. Raises Corrupt at their end where they are not those that were stored."""
    digest, size = hashlib.sha256(), 0
    async for part in content:
        digest.update(part)
        size += len(part)
        yield part
    if (digest.hexdigest(), size) != (reference.sha256, reference.size_bytes):
        seen = f"its content has changed: {size} bytes, {reference.size_bytes} were stored"
        raise Corrupt(f"reading {reference.name}", seen, "restore another moment, or from another backup")


def unused(chain: Chain, stored: Sequence[str]) -> list[str]:
    """The objects that no link names, or that one has dropped. New ones may still become part of the chain."""
    used = chain.names()
    return [name for name in stored if name not in used]


def _end(full: FullBackup, steps: Sequence[Increments]) -> int:
    """The revision to which increments continue a full backup."""
    return steps[-1].last if steps else full.revision


def _joined(known: tuple[_Part, ...], added: tuple[_Part, ...], dropped: Collection[str]) -> tuple[_Part, ...]:
    """What there is after a link. Most links drop nothing, and a chain may have 100,000 of them."""
    if not dropped:
        return (*known, *added)
    names = frozenset(dropped)
    return tuple(each for each in (*known, *added) if each.stored.name not in names)


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
