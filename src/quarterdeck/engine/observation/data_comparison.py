"""Whether the members of an etcd cluster have the same data: each one's hash of all keys up to one revision.

Members apply the same log, so that all have the same, unless a disk or a program erred. What most of all voters have is
the plane's data then. Where no such majority is known nobody can say whose is right, and a person has to.
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

#: How often all are asked until each has told its hash at one revision, and the seconds in between: one that lags has
#: not come so far yet, and one that is just forgetting history hashes less than the others.
_TRIES = 5
_BETWEEN = 0.3

Hashes = Mapping[str, KeySpaceHash | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """All voters of a cluster with the hash of what each has at ``revision`` (None: not known), and what follows."""

    cluster: Cluster
    revision: int
    hashes: Mapping[str, int | None]

    @property
    def right(self) -> int | None:
        """The hash that most of all voters have, known or not; None if no hash is that of so many."""
        known = Counter(each for each in self.hashes.values() if each is not None)
        found, count = known.most_common(1)[0] if known else (None, 0)
        return found if count >= quorum(len(self.hashes)) else None

    @property
    def differ(self) -> tuple[str, ...]:
        """The replicas whose member has something else than most have."""
        right = self.right
        return tuple(name for name, has in self.hashes.items() if right is not None and has not in (None, right))

    @property
    def same(self) -> bool:
        """Whether the data of all voters is known, and the same."""
        return None not in self.hashes.values() and len({*self.hashes.values()}) == 1

    @property
    def torn(self) -> bool:
        """Whether members differ, and nobody can say whose data is right."""
        return self.right is None and len({each for each in self.hashes.values() if each is not None}) > 1


async def compare(plane: Plane, cluster: Cluster = Cluster.MAIN) -> Compared:
    """Compare what the voters of a cluster have. Each reads all its keys for it. Raises Unavailable without a quorum.

    Who seems to differ is asked again at another revision, and differs only if it does then as well.
    """
    found = await _once(plane, cluster)
    if not found.differ and not found.torn:
        return found
    again = await _once(plane, cluster)
    once = set(again.differ) - set(found.differ)
    return replace(again, hashes={name: None if name in once else has for name, has in again.hashes.items()})


async def _once(plane: Plane, cluster: Cluster) -> Compared:
    """All voters at one revision; who has not told its hash at it after several tries has none."""
    urls = client_urls(plane, cluster)
    voters = await _voters(plane, cluster, urls)
    tries = 0
    while True:
        revision = await plane.etcd.revision(urls)
        said = await asyncio.gather(*(_hash(plane, record, cluster, revision) for record in voters.values()))
        hashes = dict(zip(voters, said, strict=True))
        tries += 1
        if tries == _TRIES or _comparable(hashes):
            return Compared(cluster=cluster, revision=revision, hashes=_of_one_kind(hashes))
        await asyncio.sleep(_BETWEEN)


async def _voters(plane: Plane, cluster: Cluster, urls: tuple[str, ...]) -> dict[str, Replica | None]:
    """The voters by name. One that no replica is recorded for counts, too; its data is not known."""
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
        return None  # it has not come so far, or has forgotten that already


def _comparable(hashes: Hashes) -> bool:
    """Whether all have told their hash, of the same history."""
    return None not in hashes.values() and len({each.compact_revision for each in hashes.values() if each}) == 1


def _of_one_kind(hashes: Hashes) -> dict[str, int | None]:
    """The hashes of those that have the history which most have."""
    histories = Counter(each.compact_revision for each in hashes.values() if each is not None)
    most = histories.most_common(1)[0][0] if histories else 0
    return {
        name: each.hash if each is not None and each.compact_revision == most else None for name, each in hashes.items()
    }


async def compare_all(plane: Plane) -> tuple[Compared, ...]:
    """Both clusters of a plane, if it has both. Raises Unavailable where one that is there has no quorum."""
    if not plane.memory.created:
        doing, step = f"comparing the data of plane {plane.name}", f"see 'quarterdeck status {plane.name}'"
        raise Unavailable(doing, "its etcd was not founded yet", step)
    return tuple([await compare(plane, each) for each in plane.memory.clusters])


async def same_data(move: Move) -> Finding:
    """All members have the same data: who comes copies what one of them has. One that a person wants exchanged may have
    other data.
    """
    found = await compare(move.plane)
    if found.torn:
        seen = f"members differ at etcd revision {found.revision:,}, and no majority agrees"
        return refuse("same data", seen, f"find out whose data is right: 'quarterdeck etcd check {move.plane.name}'")
    wrong = [name for name in found.differ if name not in move.wanted.spec.replace_replicas]
    if wrong:
        seen = f"{', '.join(wrong)} has other data than most at etcd revision {found.revision:,}"
        return refuse("same data", seen, f"have it exchanged: 'replica replace {move.plane.name} {wrong[0]}'")
    silent = [name for name, has in found.hashes.items() if has is None]
    if silent:
        return Finding("same data", Verdict.WARN, f"not known of {', '.join(silent)}")
    return ok("same data", f"{len(found.hashes)} members at etcd revision {found.revision:,}")
