"""Whatever a plane waits for, the reason names a thing of it (a replica, a machine, a site, an etcd cluster, or the DNS
server), and says what a person does about it, or when quarterdeck continues by itself.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from model.searches import FIRST, FULL, HEALED, NOBODY_JOINS, TWINS, UNSEEN, Search, fewer
from model.worlds import SITES
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan

#: Things that can be looked at: a site, or what is called by its site, an etcd cluster, or what has the plane's name.
_THING = re.compile(rf"\b(?:{'|'.join(SITES)})(?:-\w+)?\b|\betcd\b|\bthe DNS server\b")
#: A command; a field of the spec; something that a person does; or an end that comes without one, and when.
_NEXT = re.compile(
    r"'quarterdeck [a-z][^']*'|\bspec\.[a-z]|^(?:bring|put|move|have|remove|free) |\bcontinues (?:within|once|after) \S"
)

#: Creations, a move, a death, a person at the membership, what does not answer, and a full etcd.
WAITING = (
    FIRST[0],
    *(each for each in FIRST if each.hangs is not None),
    fewer(Search(replicas=3, to=3, faults=1)),
    fewer(Search(replicas=3, to=3, still=True, healing=HEALED, faults=1, kinds=UNSEEN)),
    fewer(Search(replicas=3, to=3, faults=1, kinds=NOBODY_JOINS)),
    fewer(Search(replicas=3, to=3, faults=1, kinds=FULL)),
    fewer(replace(TWINS[0], faults=1)),
)


def names_a_thing(reason: Wait) -> bool:
    return _THING.search(reason.what) is not None


def says_what_to_do(reason: Wait) -> bool:
    return _NEXT.search(reason.then) is not None


@pytest.mark.parametrize("search", WAITING, ids=str)
def test_every_reason_to_wait_names_a_thing_and_the_next_step(search: Search) -> None:
    reasons: set[Wait] = set()

    def planned(world: World) -> Plan:
        found = plan(world)
        failed = {each.error for each in world.failing}
        reasons.update(each for each in found.waiting if each.what not in failed)
        return found

    search.explorer(planned).explore(search.start())
    assert reasons
    assert not [str(each) for each in sorted(reasons, key=str) if not (names_a_thing(each) and says_what_to_do(each))]


def test_a_reason_without_a_thing_or_without_a_next_step_is_noticed() -> None:
    assert not names_a_thing(Wait("a quorum of the members to answer", ""))
    assert names_a_thing(Wait("machine east-a1 of east-1 to answer", ""))
    for then in ("", "it takes a while", "quarterdeck continues", "see 'status'"):
        assert not says_what_to_do(Wait("east-1 to drain", then))
    for then in (
        "quarterdeck continues within 5 s",
        "bring it back",
        "if it lasts, see 'quarterdeck status demo'",
    ):
        assert says_what_to_do(Wait("east-1 to drain", then))
