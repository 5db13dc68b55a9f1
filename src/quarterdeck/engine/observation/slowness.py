"""Slow disks and links of members, and the leader that replaces a slow one. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from quarterdeck.etcd.facts import Durations, MemberTimes
from quarterdeck.model.steps.members import TransferLeadership
from quarterdeck.planner.quorum import quorum
from quarterdeck.planner.rules.membership import hand_over
from quarterdeck.planner.view import View

#: A disk or link is fast if it takes at most this share of the slow one's time.
_FAST = 0.2
#: Readings in a row before something counts as slow.
_READINGS = 2
_SHARE = 0.99
_SYNCS = 20

#: The latency of members, in seconds, by replica.
Took = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SlowPart:
    """A part that may be slow, and above how many seconds it is."""

    called: str
    slow: float


#: The disk is slow if 99 of 100 syncs of the log take longer than that: etcd itself warns from 1 s on.
DISK = SlowPart("disk", 0.5)
#: The link is slow if most others need longer than that to answer a member: half of the time between two heartbeats.
LINK = SlowPart("link", 0.05)


@dataclass(kw_only=True)
class Slow:
    """The members with a slow part. One without enough data keeps its state."""

    part: SlowPart
    _late: Counter[str] = field(default_factory=Counter)

    def judge(self, took: Took, members: Collection[str]) -> frozenset[str]:
        """The members that were slow in each of the last readings."""
        for name, seconds in took.items():
            self._late[name] = self._late[name] + 1 if seconds > self.part.slow else 0
        return frozenset(name for name, times in self._late.items() if times >= _READINGS and name in members)


def sync(now: MemberTimes, before: MemberTimes) -> float | None:
    """The seconds within which nearly all syncs since a reading were done; None if they were few."""
    since = now.fsync.since(before.fsync)
    return since.quantile(_SHARE) if since.buckets[-1][1] >= _SYNCS else None


def answered(now: MemberTimes, before: MemberTimes, voters: Collection[int]) -> float | None:
    """The seconds until a quorum of ``voters``, with the member itself, has answered it, since a reading; None where
    that was not measured, or the member alone is a quorum.
    """
    trips = [_median(now.trips[each], before.trips.get(each)) for each in voters if each in now.trips]
    known = sorted(each for each in trips if each is not None)
    others = quorum(len(voters)) - 1
    return known[others - 1] if 0 < others <= len(known) else None


def _median(now: Durations, before: Durations | None) -> float | None:
    return (now.since(before) if before is not None else now).quantile(0.5)


def eased(seen: View, part: SlowPart, took: Took, slow: Collection[str]) -> TransferLeadership | None:
    """A transfer to a member with a fast part, where the leader's is slow and everything else is healthy."""
    membership = seen.world.membership
    leader = membership.leader if membership is not None else None
    if membership is None or leader is None or leader not in slow or leader not in took:
        return None
    if not membership.at_rest or seen.resting is not None:
        return None
    bound = _FAST * took[leader]
    fast = [each for each in seen.world.memory.replicas if took.get(each.name, math.inf) <= bound]
    others = [each for each in fast if each.name not in slow and seen.is_healthy_voter(each)]
    others.sort(key=lambda each: took[each.name])
    return hand_over(seen, others, f"the {part.called} of the leader {leader} is slow, and this one's is not")
