"""What is searched: who there is, how their clocks run, and what may go wrong.

In all of them time may pass at any moment, also in the middle of what somebody does; where ``freezes`` is given, so
often at most while somebody had something to do. The clock of whoever holds a lock first may be slow and that of who
waits fast, or the other way round, since either may be first.
"""

from __future__ import annotations

from dataclasses import replace

from model.leases.world import BRIEF, COARSE, FAST, FINE, LONG, RARE, SLOW, Member, Search
from quarterdeck.leases.protocol import Terms
from quarterdeck.leases.record import Timing


def member(
    identity: str,
    rate: int,
    *locks: int,
    precedence: int = 0,
    timings: tuple[Timing, ...] = (COARSE,),
    runs: str = "c",
    deaf: bool = False,
) -> Member:
    """A process with these locks, the primary one first; ``runs``: what its controllers are called."""
    terms = tuple(
        tuple(
            Terms(identity=identity, precedence=precedence, controllers=(f"{runs}{lock}",), timing=each)
            for lock in locks or (0,)
        )
        for each in timings
    )
    return Member(rate=rate, locks=locks or (0,), terms=terms, deaf=deaf)


ALONE = Search(name="alone", members=(member("a", 1, timings=(FINE,)),), losses=2, fine=True)
NESTED = Search(name="nested", members=(member("a", 1, 0, 1, timings=(FINE,)),), changes=1, fine=True, at_once=True)
TWO = Search(name="two", members=(member("a", SLOW), member("b", FAST)))
FAULTS = Search(
    name="faults",
    members=(member("a", SLOW), member("b", FAST, precedence=1)),
    crashes=1,
    losses=1,
    changes=1,
    at_once=True,
)
#: With the shorter term a slow clock has but one tick, so that nobody ever has the lock for good.
SHORTENED = Search(
    name="shortened",
    members=(member("a", SLOW, timings=(LONG, BRIEF)), member("b", FAST)),
    losses=1,
    changes=1,
    at_once=True,
    rests=False,
)
#: Renewals are rarer than tries here: a slow clock has to stop when the next one is due.
FICKLE = Search(
    name="fickle",
    members=(member("a", SLOW, timings=(RARE,)), member("b", FAST, timings=(RARE,))),
    losses=1,
    changes=2,
    freezes=0,
    at_once=True,
    rests=False,
)
THREE = Search(
    name="three",
    members=(member("c", FAST), member("a", SLOW), member("b", FAST, precedence=1)),
    freezes=2,
    at_once=True,
)
#: A kube-controller-manager, and a cloud-controller-manager of the next release: lock 2 is to move.
TYPES = Search(
    name="types",
    members=(member("kcm", SLOW, 0, 2, precedence=1), member("ccm", FAST, 1, 2, precedence=2)),
    freezes=1,
    at_once=True,
)
#: Two releases of one manager: all locks are to move.
RELEASES = Search(
    name="releases", members=(member("a", SLOW, 0, 1), member("b", FAST, 0, 1, precedence=1)), freezes=1, at_once=True
)
CLIENT_GO = Search(
    name="client-go",
    members=(member("a", SLOW, deaf=True), member("b", FAST, precedence=1)),
    changes=1,
    crashes=1,
    at_once=True,
)
OTHER_SETS = Search(
    name="other sets", members=(member("a", SLOW), member("b", FAST, runs="d")), crashes=1, at_once=True
)
ACTS = Search(
    name="acts", members=(member("a", SLOW), member("b", FAST)), acts=True, crashes=1, freezes=3, at_once=True
)
UNFENCED = replace(ACTS, name="acts, unfenced", fenced=False)

SEARCHES = (ALONE, NESTED, TWO, FAULTS, SHORTENED, FICKLE, THREE, TYPES, RELEASES, CLIENT_GO, OTHER_SETS, ACTS)

#: What takes minutes each.
SOAK = (
    Search(name="two, hand-over", members=(member("a", SLOW), member("b", FAST, precedence=1))),
    Search(name="two, losses", members=(member("a", SLOW), member("b", FAST)), losses=1),
    Search(name="two, crash", members=(member("a", FAST), member("b", SLOW, precedence=1)), crashes=1),
    replace(FAULTS, name="faults, more", losses=3, changes=2),
    replace(NESTED, name="nested, losses", losses=1),
    replace(TYPES, name="types, more", freezes=2),
    replace(TYPES, name="types, faults", losses=1, crashes=1, freezes=0),
    replace(RELEASES, name="releases, more", freezes=2),
    replace(RELEASES, name="releases, faults", losses=1, crashes=1, freezes=0),
    replace(THREE, name="three, faults", losses=1, crashes=1, freezes=0),
)

#: Sets that nobody may have; so the search does not even begin.
_NO_SETS = Member(
    rate=1,
    locks=(0, 0),
    terms=((Terms(identity="a", timing=FINE), Terms(identity="a", controllers=("c",), timing=FINE)),),
)
TWO_OF_ONE_NAME = Search(name="two locks of one name", members=(_NO_SETS,), fine=True, at_once=True)
OVERLAPPING = Search(
    name="overlapping sets",
    members=(
        Member(
            rate=1,
            locks=(0, 1, 2),
            terms=(tuple(Terms(identity="a", controllers=each, timing=FINE) for each in ((), ("c",), ("c", "d"))),),
        ),
    ),
    fine=True,
    at_once=True,
)
REFUSED = (TWO_OF_ONE_NAME, OVERLAPPING)
