"""Whatever a plane waits for, the reason names a thing of it: a replica, a machine, a site, an etcd cluster, or the DNS
server.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from model.searches import FIRST, FULL, HEALED, NOBODY_JOINS, TWINS, UNSEEN, Search, fewer
from model.worlds import SITES
from quarterdeck.model.steps import Plan
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan

#: Things that can be looked at: a site, or what is called by its site, an etcd cluster, or what has the plane's name.
_THING = re.compile(rf"\b(?:{'|'.join(SITES)})(?:-\w+)?\b|\betcd\b|\bthe DNS server\b")

#: A creation, a move, a death, a person at the membership, what does not answer, and a full etcd.
WAITING = (
    FIRST[0],
    fewer(Search(replicas=3, to=3, faults=1)),
    fewer(Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=UNSEEN)),
    fewer(Search(replicas=3, to=3, still=True, faults=1, kinds=NOBODY_JOINS)),
    fewer(Search(replicas=3, to=3, faults=1, kinds=FULL)),
    fewer(replace(TWINS[0], faults=1)),
)


def names_a_thing(reason: str) -> bool:
    return _THING.search(reason) is not None


@pytest.mark.parametrize("search", WAITING, ids=str)
def test_every_reason_to_wait_names_a_thing(search: Search) -> None:
    reasons: set[str] = set()

    def planned(world: World) -> Plan:
        found = plan(world)
        reasons.update(set(found.waiting) - {each.told for each in world.failing})
        return found

    search.explorer(planned).explore(search.start())
    assert reasons
    assert not [each for each in sorted(reasons) if not names_a_thing(each)]


def test_a_reason_without_a_thing_is_noticed() -> None:
    assert not names_a_thing("a quorum of the members to answer")
    assert names_a_thing("machine east-a1 of east-1 to answer")
