"""The chain of a plane's backups: numbered links, each created once, that alone make stored objects a backup.

A link says which objects were added and which are no longer used. Its name is its number, so that of two writers one
succeeds and the other one learns that it was overtaken. It has the hash of the link before it: links of another chain,
or changed ones, are found. Objects that no link names are no backup; a writer that died has left them. Some links have
all that the links before them have made: a reader begins at such a checkpoint, and older links can be deleted.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from pydantic import AwareDatetime

from quarterdeck.api.base import Model
from quarterdeck.errors import Corrupt, NotFound

_MAIN: Final = "main"
#: How long a chain has the names of objects that were dropped: until then a sweep deletes them by their names.
_REMEMBERED: Final = timedelta(hours=2)


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
    #: When that one was taken.
    folded_from_at: AwareDatetime | None = None
    #: The first of the revisions before it that were lost: etcd had discarded them before they were recorded. None: it
    #: was taken without a gap, or begins an epoch.
    lost_from: int | None = None
    #: The size of the database; 0 where it is not known.
    database_bytes: int = 0
    stored: ObjectReference

    @property
    def taken_at(self) -> datetime:
        """When etcd gave what it is made of: it has the history since then, also what etcd has compacted."""
        return self.folded_from_at or self.at


class Increments(Model):
    """What a cluster did from one revision to another one, without a gap."""

    cluster: str
    epoch: int
    first: int
    last: int
    #: When its first and last revisions were seen.
    first_at: AwareDatetime
    last_at: AwareDatetime
    #: The size of its content before it is compressed; 0 where it is not known.
    raw_bytes: int = 0
    stored: ObjectReference


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
    #: See ``ChainLink.belongings_digest``.
    digest: str = ""


class Dropped(Model):
    """Objects that one link has dropped. A reader of the chain as it was before may still read them for a while."""

    at: AwareDatetime
    names: tuple[str, ...]


class ChainState(Model):
    """What the links before one have made, all together."""

    fulls: tuple[FullBackup, ...]
    increments: tuple[Increments, ...]
    belongings: tuple[StoredBelongings, ...]
    reached: Reached
    dropped: tuple[Dropped, ...]


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
    #: The SHA-256 of their plain content and of the recipients that it is encrypted for; hexadecimal.
    belongings_digest: str = ""
    #: The names of objects that are no longer used, and are deleted afterwards.
    dropped: tuple[str, ...] = ()
    #: The state of the chain before this link, where the link is a checkpoint.
    state: ChainState | None = None


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
    #: What was dropped lately, in the order of the links.
    dropped: tuple[Dropped, ...] = ()

    def with_link(self, link: ChainLink, head: str) -> Chain:
        """The chain with one more link, whose hash is ``head``."""
        dropped = (*self.dropped, Dropped(at=link.at, names=link.dropped)) if link.dropped else self.dropped
        fulls = (Reached(each.epoch, each.revision) for each in link.fulls if each.cluster == _MAIN)
        steps = (Reached(each.epoch, each.last) for each in link.increments if each.cluster == _MAIN)
        reached = max((self.reached, *fulls, *steps))
        added = () if link.belongings is None else (StoredBelongings(link.belongings, reached, link.belongings_digest),)
        return replace(
            self,
            length=link.number,
            head=head,
            writer=link.writer,
            fulls=_joined(self.fulls, link.fulls, link.dropped),
            increments=_joined(self.increments, link.increments, link.dropped),
            belongings=_joined(self.belongings, added, link.dropped),
            reached=reached,
            dropped=tuple(each for each in dropped if link.at - each.at < _REMEMBERED),
        )

    @property
    def state(self) -> ChainState:
        """All that its links have made."""
        return ChainState(
            fulls=self.fulls,
            increments=self.increments,
            belongings=self.belongings,
            reached=self.reached,
            dropped=self.dropped,
        )

    @staticmethod
    def before(link: ChainLink, state: ChainState) -> Chain:
        """The chain that a checkpoint continues, from its state."""
        return Chain(
            link.plane,
            length=link.number - 1,
            head=link.previous,
            fulls=state.fulls,
            increments=state.increments,
            belongings=state.belongings,
            reached=state.reached,
            dropped=state.dropped,
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

    def at_or_after(self, cluster: str, revision: int, epoch: int) -> BackupMoment:
        """The first moment that has everything up to a revision: a later one where the backups began, or have a gap, at
        this revision. Raises NotFound.
        """
        for first, last in self.ranges(cluster, epoch):
            if last >= revision:
                return self.at_revision(cluster, max(first, revision), epoch)
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

    def epochs(self, cluster: str) -> list[int]:
        """The epochs of a cluster that have a full backup, the newest first."""
        return sorted({each.epoch for each in self.fulls if each.cluster == cluster}, reverse=True)

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
