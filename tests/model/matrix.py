"""Which classes of faults, each alone, bring each planner with one thing wrong to light.

``python -m model.matrix [NAME ...]`` prints a line for each case of ``test_fault_kinds.py``: the classes that
catch it, with the number of the claim that then does not hold. It fails if those are others than the case says. Takes
some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from model.invariants import Broken
from model.kinds import Kind
from model.test_fault_kinds import CASES, Case
from quarterdeck.planner import planner


def caught(case: Case, kinds: frozenset[Kind]) -> int:
    """The number of the claim that faults of these classes break (0: none)."""
    start = case.start(kinds)
    with pytest.MonkeyPatch.context() as patch:
        case.apply(patch)
        try:
            case.search(kinds).explorer(planner.plan).explore(start)
        except Broken as broken:
            return broken.number
    return 0


def catching(case: Case) -> Iterator[tuple[Kind, int]]:
    """The classes that catch a case, each alone."""
    calm = caught(case, frozenset())
    if calm:
        raise AssertionError(f"{case} is caught without any fault, by claim {calm}")
    for kind in Kind:
        number = caught(case, frozenset({kind}))
        if number:
            yield kind, number


def main(names: list[str]) -> int:
    """Whether some case is caught by other classes than it says."""
    wrong = 0
    for case in CASES:
        if names and not {case.kind.name, case.apply.__name__} & set(names):
            continue
        found = dict(catching(case))
        known = found.keys() == {case.kind, *case.also}
        wrong += not known
        listing = ", ".join(f"{kind.name} ({number})" for kind, number in found.items())
        print(f"{'' if known else 'NOT AS IT SAYS: '}{case}: {listing or 'nobody'}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
