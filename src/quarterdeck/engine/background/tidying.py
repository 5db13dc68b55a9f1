"""Free room in etcd's databases is given back to the disk before anybody lacks it, one member at a time."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.background.duties import share
from quarterdeck.engine.background.tending import tend
from quarterdeck.model.membership import MemberFact
from quarterdeck.model.steps.members import TransferLeadership
from quarterdeck.model.steps.upkeep import Defragment
from quarterdeck.model.world import World
from quarterdeck.planner.members import has_the_data, serves
from quarterdeck.planner.rules.upkeep import defragmented, relieved
from quarterdeck.planner.view import View, view

#: A database is loose in which so many bytes, and this share of it, are free room.
LEAST = 100 * 2**20
SHARE = 0.5
#: Bytes in use up to which a member is defragmented by itself: it serves nobody meanwhile, about a second for so many.
#: A larger one is where a person says so, or when there is no room left.
MOST = 256 * 2**20
#: Seconds between two tries, of which few fail.
_AGAIN = 60.0


@dataclass(kw_only=True)
class Tidy:
    """A duty: at most every so many seconds one member of a plane is defragmented, while all else is well."""

    every: float = 3600.0
    _last: float = -math.inf
    _tried: float = -math.inf

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        now = asyncio.get_running_loop().time()
        if self._last == -math.inf:
            self._last = now - self.every * share(plane.name)
        if now - self._last < self.every or now - self._tried < _AGAIN:
            return
        seen = view(world)
        for each in (seen, seen.events):
            step = tidied(each) if each is not None else None
            if step is not None:
                self._tried = now
                await tend(plane, step, world)
                if isinstance(step, Defragment):
                    self._last = now
                return


def tidied(seen: View) -> Defragment | TransferLeadership | None:
    """Whose turn it is to give free room back, who leads last, and not before it has handed over. Pure.

    All members and apiservers must be well, and nothing else go on; there must be others that serve meanwhile.
    """
    membership, memory = seen.world.membership, seen.world.memory
    if membership is None or not membership.at_rest or len(membership.voters) < 3:
        return None
    settled = memory.full is None and seen.resting is None
    if not settled or not all(_is_whole(seen, each) for each in membership.voters):
        return None
    if not all(serves(seen.plane.world, each) for each in memory.replicas):
        return None
    turn = sorted((each for each in membership.voters if is_loose(each)), key=lambda each: each.id)
    follower = next((each for each in turn if each.replica != membership.leader), None)
    if follower is not None:
        return defragmented(seen, follower, "most of its database is free room")
    return relieved(seen) if turn else None


def is_loose(member: MemberFact) -> bool:
    """Whether much of a member's database is free room, and it would be given back in a moment."""
    space = member.space
    if space is None or space.in_use > MOST:
        return False
    return space.size - space.in_use >= max(LEAST, SHARE * space.size)


def _is_whole(seen: View, member: MemberFact) -> bool:
    known = any(each.name == member.replica and not each.differs for each in seen.world.memory.replicas)
    return known and has_the_data(seen.world, member)
