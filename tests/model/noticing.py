"""Who may notice that a rule of the planner is wrong: the quick ones first. Imported only where one is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from model.searches import BIRTHS, INSIDE, MORE, SHAPES, Search, sampled

UNIT = Path(__file__).parents[1] / "unit"
Check = Callable[[], bool]

CALM = tuple(Search(replicas=each, to=to, wishes=1) for each, to in ((1, 1), (3, 3), (3, 1), (1, 3), (3, None)))
#: The same inside a site.
HERE = tuple(replace(search, wishes=1) for search in INSIDE)
#: Seconds each, and they notice most of what only faults bring to light.
SMALL = (
    Search(replicas=1, to=1, faults=1, data_loss=True, front="north"),
    Search(replicas=1, to=1, faults=1, data_loss=True),
)
FAULTY = (
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in BIRTHS),
    *(Search(replicas=each, to=to, faults=1, data_loss=True) for each, to in SHAPES[1:4]),
    *(sampled(search, 1) for search in MORE),
)


def checks(quick: bool) -> list[tuple[str, Check]]:
    """Each says whether it notices."""
    asked = (*CALM[:2], *SMALL, *CALM[2:], *HERE, *(() if quick else FAULTY))
    searches = [(str(search), partial(breaks, search)) for search in asked]
    return [*searches[:2], ("units", units), *searches[2:]]


def units() -> bool:
    """Whether a unit test of the planner fails."""
    files = [str(path) for path in (*sorted(UNIT.glob("test_planner_*.py")), UNIT / "test_quorum.py")]
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain")
    return pytest.main(["-x", "-q", *plain, "-c", str(UNIT.parents[1] / "pyproject.toml"), *files]) != 0


def breaks(search: Search) -> bool:
    """Whether a search finds that a claim does not hold, or that the planner itself fails."""
    try:
        search.run()
    except Exception:  # noqa: BLE001 - a planner that fails is noticed as well
        return True
    return False
