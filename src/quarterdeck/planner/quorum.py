"""Quorum arithmetic: which site is the quorum site, and the shortest way to move the quorum.

Only voters that are healthy in this observation count towards a quorum; all voters count for its size.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Voter:
    """A voter, for the arithmetic."""

    replica: str
    site: str
    healthy: bool = True


@dataclass(frozen=True, slots=True, order=True)
class VoterChange:
    """One membership change: a learner is promoted, or (``remove``) a voter is removed. Sorts promotions first."""

    remove: bool
    voter: Voter


def quorum(voters: int) -> int:
    """How many of ``voters`` must agree."""
    return voters // 2 + 1


def has_quorum(voters: Iterable[Voter]) -> bool:
    """Whether the healthy ones of ``voters`` are a quorum of all of them."""
    known = tuple(voters)
    return sum(voter.healthy for voter in known) >= quorum(len(known))


def margin(voters: Iterable[Voter]) -> int:
    """How many more healthy voters may fail before the quorum is lost; negative when it is lost."""
    known = tuple(voters)
    return sum(voter.healthy for voter in known) - quorum(len(known))


def quorum_site(voters: Iterable[Voter]) -> str | None:
    """The site whose healthy voters are a quorum by themselves; None when no site has one."""
    known = tuple(voters)
    healthy: dict[str, int] = {}
    for voter in known:
        if voter.healthy:
            healthy[voter.site] = healthy.get(voter.site, 0) + 1
    return next((site for site, count in healthy.items() if count >= quorum(len(known))), None)


def after(voters: frozenset[Voter], change: VoterChange) -> frozenset[Voter]:
    """The voters after one change."""
    return voters - {change.voter} if change.remove else voters | {change.voter}


def shortest_swap(
    voters: frozenset[Voter], site: str, promotable: tuple[Voter, ...], removable: tuple[Voter, ...]
) -> tuple[VoterChange, ...] | None:
    """The changes after which ``site`` is the quorum site.

    Of all orders, the one with the fewest states without a quorum site, then the fewest removals (more voters tolerate
    more losses). All of ``promotable`` are healthy and at ``site``, so each promotion helps, and this order also has
    the fewest changes. Every state on the way has a quorum of healthy voters. None when there is no such order.
    """
    # Promotions and removals are each done in the given order, so a state is the number of each.
    queue: list[tuple[int, int, int, tuple[VoterChange, ...]]] = [(0, 0, 0, ())]
    seen: set[tuple[int, int]] = set()
    while queue:
        homeless, removed, added, path = heapq.heappop(queue)
        now = (voters | set(promotable[:added])) - set(removable[:removed])
        if quorum_site(now) == site:
            return path
        if (added, removed) in seen:
            continue
        seen.add((added, removed))
        changes = []
        if added < len(promotable):
            changes.append((VoterChange(False, promotable[added]), added + 1, removed))
        if removed < len(removable):
            changes.append((VoterChange(True, removable[removed]), added, removed + 1))
        for change, then_added, then_removed in changes:
            then = after(now, change)
            if not has_quorum(then):
                continue
            cost = homeless + (quorum_site(then) is None)
            heapq.heappush(queue, (cost, then_removed, then_added, (*path, change)))
    return None
