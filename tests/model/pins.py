"""How much each search sees at least, and which classes of faults: a checker that grew kinder would see less."""

from __future__ import annotations

from model.kinds import ASKED_FOR, Kind
from model.searches import FIRST_SEED, OTHERWISE, Search

ALL: frozenset[Kind] = frozenset()
NO_DATA_LOSS = frozenset({Kind.DATA_LOST, Kind.BLANK})
#: One replica at one site: nothing to be cut off from, nobody else to lead.
ALONE = NO_DATA_LOSS | {Kind.LEADER_MOVES, Kind.SNAPSHOT, Kind.SWAP_BROKEN_OFF, Kind.VOTER_LAGS}
CUTS = frozenset({Kind.CUT, Kind.CUT_ONE_WAY})

#: By replicas, the replicas asked for, and the fixed address: the least number of states of a search with one fault and
#: losses of data, and the classes of faults that it does not see.
ONE_FAULT: dict[tuple[int, int | None, str | None], tuple[int, frozenset[Kind]]] = {
    (5, 3, None): (22_000, ALL),
    (3, 3, None): (16_000, ALL),
    (3, 1, None): (8_000, ALL),
    (1, 3, None): (9_000, ALL),
    (1, 1, None): (6_000, ALL),
    (1, None, None): (270, ALONE | CUTS | {Kind.MIXED_LOOK}),
    (1, 0, None): (340, ALONE | CUTS | {Kind.TAKEOVER, Kind.SOME_STEPS}),
    (1, 1, "north"): (3_700, ALL),
    (1, None, "north"): (260, ALONE | {Kind.MIXED_LOOK}),
    (1, 0, "north"): (220, ALONE | {Kind.TAKEOVER, Kind.SOME_STEPS}),
}
#: The samples of every run see at least so many states, those of other seeds so many; seeds decide which classes of
#: faults.
SAMPLE = 1_000
ANY_SAMPLE = 200


def least_of(search: Search) -> int:
    """The least number of states."""
    if search.to is None and (search.broken or search.hangs):
        return 60 if search.replicas > 1 else 15  # where etcd alone was started there is little that can happen
    if search.standby:
        return 100
    if search.healing is not None or Kind.ALTERED in (search.kinds or ()):
        return 8 if search.still else 300
    if search.sample is not None:
        return SAMPLE if search.sample.seed == FIRST_SEED else ANY_SAMPLE
    if search.direct or search.promoted or search.wish == OTHERWISE:
        return 1_000 if search.faults and search.to else 100
    if search.named:
        return 60 if len(search.named) == 1 else 250
    if search.kinds is not None:
        return 30 if search.kinds & ASKED_FOR else 1_000 if search.to else 200
    if search.change is not None:
        if search.change.reload:
            return 100 if search.faults else 30  # nothing stops, so that little can happen meanwhile
        if search.together:
            return 600 if search.faults else 6  # all is done in two rounds
        return 900 if search.faults else 6
    if (search.faults, search.wishes) == (1, 0):
        return ONE_FAULT.get((search.replicas, search.to, search.front), (500, ALL))[0]
    return 10_000 if search.faults else 150


def missing_of(search: Search) -> frozenset[Kind] | None:
    """The classes of faults that it does not see (None: that depends)."""
    if not search.faults:
        return frozenset(Kind)
    if search.standby or search.healing is not None or search.direct or search.promoted or search.wish == OTHERWISE:
        return None
    if search.to is None and (search.broken or search.hangs):
        return None
    if search.kinds is not None:
        return frozenset(Kind) - search.kinds if search.sample is None else None
    if search.change is not None:
        return None
    if search.sample is None and (search.faults, search.wishes) == (1, 0):
        found = ONE_FAULT.get((search.replicas, search.to, search.front))
        return found[1] | ASKED_FOR if found is not None else None
    return None
