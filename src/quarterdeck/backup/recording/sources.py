"""Which members a backup is taken from."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quarterdeck.backup.chain import KeyHash
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import MemberReport
from quarterdeck.etcd.faults import EtcdCompacted, EtcdUnavailable, Reason
from quarterdeck.etcd.port import EtcdCluster


async def reports(etcd: EtcdCluster, urls: Sequence[str]) -> dict[str, MemberReport]:
    """The status of each member that answers."""

    async def one(url: str) -> MemberReport | None:
        try:
            return await etcd.status(url)
        except Unavailable:
            return None

    found = await asyncio.gather(*map(one, urls))
    return {url: each for url, each in zip(urls, found, strict=True) if each is not None}


async def sources(etcd: EtcdCluster, urls: Sequence[str]) -> list[str]:
    """The voters that answer and follow a leader, followers first: the leader has the most to do. Raises Unavailable
    where there are none.
    """
    found = await reports(etcd, urls)
    voters = [url for url, each in found.items() if not each.is_learner and each.leader_id]
    if not voters:
        seen = f"{len(found)} of {len(urls)} members answer, and no voter that follows a leader"
        next_step = "a majority of the members must be up"
        raise EtcdUnavailable("looking for a member to back up", seen, next_step, reason=Reason.NO_LEADER)
    return sorted(voters, key=lambda url: found[url].is_leader)


async def hash_at(etcd: EtcdCluster, url: str, revision: int) -> KeyHash | None:
    """A member's hash of all keys at a revision. None where its history is compacted past that, or it does not answer
    in time: it reads its whole database for it.
    """
    try:
        found = await etcd.hash_keys(url, revision)
    except (EtcdCompacted, Unavailable):
        return None
    return KeyHash(value=found.hash, revision=revision, compact_revision=found.compact_revision)


async def live_hash(etcd: EtcdCluster, urls: Sequence[str], revision: int) -> KeyHash | None:
    """The hash that one of the members has now at a revision, followers first. None where none of them can say it."""
    try:
        asked = await sources(etcd, urls)
    except Unavailable:
        return None
    for url in asked:
        if (found := await hash_at(etcd, url, revision)) is not None:
            return found
    return None
