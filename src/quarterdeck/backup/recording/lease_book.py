"""The times of a cluster's leases, beside its increments: a watch tells which lease a key has, and no more of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from quarterdeck.backup.records import LeaseTimes
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import LeaseLife
from quarterdeck.etcd.port import EtcdCluster

#: What a lease is given that ended before it could be read, in seconds: the keys that it had must end too where a
#: moment is restored at which it lived.
_UNREAD_SECONDS = 60


class LeaseBook:
    """The leases as they were last read. All are read each ``every`` seconds at most, and only while keys get leases;
    new ones at once. The time granted to a lease never changes, and a restore grants all of it again.
    """

    def __init__(self, etcd: EtcdCluster, urls: Callable[[], Sequence[str]], every: float) -> None:
        self._etcd, self._urls, self._every = etcd, urls, every
        self._known: dict[int, LeaseTimes] = {}
        self._read_at = 0.0

    async def read(self) -> None:
        """Read all leases. Raises Unavailable."""
        self._known = _times(await self._etcd.lease_times(self._urls()))
        self._read_at = asyncio.get_running_loop().time()

    async def after(self, used: frozenset[int]) -> tuple[LeaseTimes, ...]:
        """The leases for an increment whose keys got the leases ``used``: those before it and those after it, since a
        moment in its middle may be restored. Where etcd does not answer, what is known of them.
        """
        before = self._known
        try:
            if used and asyncio.get_running_loop().time() - self._read_at >= self._every:
                await self.read()
            elif new := used - before.keys():
                self._known = before | _times(await self._etcd.lease_times(self._urls(), new))
        except Unavailable:
            pass  # it is read with the next increment that has leases; the watch tells that etcd does not answer
        ended = {each: LeaseTimes(each, _UNREAD_SECONDS, _UNREAD_SECONDS) for each in used}
        return tuple(sorted((ended | before | self._known).values(), key=lambda each: each.lease))


def _times(lives: Sequence[LeaseLife]) -> dict[int, LeaseTimes]:
    return {each.id: LeaseTimes(each.id, each.granted_ttl, each.ttl) for each in lives}
