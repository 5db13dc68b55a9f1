"""Whether the members of an etcd cluster have the same data: each one's hash of all keys up to one revision.

Members apply the same log, so all have the same data, unless a disk or a program erred. Then the data of the majority
of voters is the plane's. Where no majority is known, a person must decide whose data is right.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from quarterdeck.actions.addresses import client_url, client_urls, owners
from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.move import Move
from quarterdeck.engine.observation.queries import or_none
from quarterdeck.errors import NotFound, Unavailable
from quarterdeck.etcd.facts import KeySpaceHash
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.findings import Finding, Verdict, ok, refuse
from quarterdeck.model.memory import Replica
from quarterdeck.planner.quorum import quorum

#: How often all are queried until each has returned its hash at one revision, and the seconds in between: a lagging one
#: has not reached it yet, and one that is just compacting hashes less than the others.
_TRIES = 5
_BETWEEN = 0.3

Hashes = Mapping[str, KeySpaceHash | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """All voters of a cluster with the hash of their data at ``revision`` (None: unknown), and what follows."""

    cluster: Cluster
    revision: int
    hashes: Mapping[str, int | None]

    @property
    def right(self) -> int | None:
        """The hash of a majority of all voters; None if there is none."""
        known = Counter(each for each in self.hashes.values() if each is not None)
        found, count = known.most_common(1)[0] if known else (None, 0)
        return found if count >= quorum(len(self.hashes)) else None

    @property
    def differ(self) -> tuple[str, ...]:
        """The replicas whose member has other data than the majority."""
        right = self.right
        return tuple(name for name, has in self.hashes.items() if right is not None and has not in (None, right))

    @property
    def same(self) -> bool:
        """Whether the data of all voters is known, and the same."""
        return None not in self.hashes.values() and len({*self.hashes.values()}) == 1

    @property
    def torn(self) -> bool:
        """Whether members differ, and it cannot be decided whose data is right."""
        return self.right is None and len({each for each in self.hashes.values() if each is not None}) > 1


async def compare(plane: Plane, cluster: Cluster = Cluster.MAIN) -> Compared:
    """Compare the data of the voters of a cluster. Each reads all its keys for it. Raises Unavailable without a quorum.

    A voter that seems to differ is queried again at another revision, and must differ there as well.
    """
    found = await _once(plane, cluster)
    if not found.differ and not found.torn:
        return found
    again = await _once(plane, cluster)
    once = set(again.differ) - set(found.differ)
    return replace(again, hashes={name: None if name in once else has for name, has in again.hashes.items()})


async def _once(plane: Plane, cluster: Cluster) -> Compared:
    """All voters at one revision; one that has not returned its hash after several attempts has none."""
    urls = client_urls(plane, cluster)
    voters = await _voters(plane, cluster, urls)
    tries = 0
    while True:
        revision = await plane.etcd.revision(urls)
        answers = await asyncio.gather(*(_hash(plane, record, cluster, revision) for record in voters.values()))
        hashes = dict(zip(voters, answers, strict=True))
        tries += 1
        if tries == _TRIES or _comparable(hashes):
            return Compared(cluster=cluster, revision=revision, hashes=_of_one_kind(hashes))
        await asyncio.sleep(_BETWEEN)


async def _voters(plane: Plane, cluster: Cluster, urls: tuple[str, ...]) -> dict[str, Replica | None]:
    """The voters by name. One without a recorded replica counts as well; its data is unknown."""
    listed = await plane.etcd.members(urls)
    owner = owners(plane, cluster, listed)
    voters = ((each, owner.get(each.id)) for each in listed if not each.is_learner)
    return {record.name if record is not None else f"{each.id:x}": record for each, record in voters}


async def _hash(plane: Plane, record: Replica | None, cluster: Cluster, revision: int) -> KeySpaceHash | None:
    if record is None:
        return None
    try:
        return await or_none(plane.etcd.hash_keys(client_url(record, cluster), revision))
    except NotFound:
        return None  # it has not reached the revision, or has compacted it


def _comparable(hashes: Hashes) -> bool:
    """Whether all have returned their hash, of the same history."""
    return None not in hashes.values() and len({each.compact_revision for each in hashes.values() if each}) == 1


def _of_one_kind(hashes: Hashes) -> dict[str, int | None]:
    """The hashes of those with the most common history."""
    histories = Counter(each.compact_revision for each in hashes.values() if each is not None)
    most = histories.most_common(1)[0][0] if histories else 0
    return {
        name: each.hash if each is not None and each.compact_revision == most else None for name, each in hashes.items()
    }


async def compare_all(plane: Plane) -> tuple[Compared, ...]:
    """All clusters of a plane. Raises Unavailable where an existing one has no quorum."""
    if not plane.memory.created:
        doing, step = f"comparing the data of plane {plane.name}", f"see 'quarterdeck status {plane.name}'"
        raise Unavailable(doing, "its etcd was not founded yet", step)
    return tuple([await compare(plane, each) for each in plane.memory.clusters])


async def same_data(move: Move) -> Finding:
    """All members have the same data: a new one copies from one of them. A member that a person wants replaced may have
    other data.
    """
    found = await compare(move.plane)
    if found.torn:
        seen = f"members differ at etcd revision {found.revision:,}, and no majority agrees"
        return refuse("same data", seen, f"find out which data is right: 'quarterdeck etcd check {move.plane.name}'")
    wrong = [name for name in found.differ if name not in move.wanted.spec.replace_replicas]
    if wrong:
        seen = f"{', '.join(wrong)} has other data than most members at etcd revision {found.revision:,}"
        return refuse("same data", seen, f"replace it: 'replica replace {move.plane.name} {wrong[0]}'")
    silent = [name for name, has in found.hashes.items() if has is None]
    if silent:
        return Finding("same data", Verdict.WARN, f"unknown for {', '.join(silent)}")
    return ok("same data", f"{len(found.hashes)} members at etcd revision {found.revision:,}")
