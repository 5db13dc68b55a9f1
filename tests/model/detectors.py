"""The checks that may notice a mutant of the planner: its unit tests, and searches. Imports the planner.

They come in rounds (``Rounds``), and a mutant is tried with the next one only if the one before did not notice it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from model.searches import BIRTHS, INSIDE, MORE, SHAPES, STANDBY, Search, sampled

TESTS = Path(__file__).parents[1]

CALM = tuple(Search(replicas=each, to=to, wishes=1) for each, to in ((1, 1), (3, 3), (3, 1), (1, 3), (3, None)))
#: The planner's unit tests.
UNITS = (*sorted((TESTS / "unit").glob("test_planner_*.py")), TESTS / "unit" / "test_quorum.py")
#: Tests that search by themselves.
SEARCHING = tuple(TESTS / "model" / f"test_{each}.py" for each in ("attachment", "recovery", "survival", "waiting"))
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


@dataclass(frozen=True)
class Check:
    """A unit test or a search. ``fails`` runs it."""

    name: str
    fails: Callable[[], bool]


#: The unit tests, then the searches that take seconds, then those that take minutes.
Rounds: TypeAlias = Sequence[Sequence[Check]]


def _fails(search: Search) -> bool:
    """Whether a search finds that a claim does not hold, or that the planner itself fails."""
    try:
        search.run()
    except Exception:  # noqa: BLE001 - a planner that fails is noticed as well
        return True
    return False


def _check(search: Search) -> Check:
    return Check(str(search), partial(_fails, search))


#: The searches that take seconds.
SMALL_SEARCHES = tuple(_check(each) for each in (*CALM, *SMALL, *HERE, *STANDBY))
#: Those that take up to minutes.
LARGE_SEARCHES = tuple(_check(each) for each in FAULTY)


class _Session:
    """A plugin of pytest that hands the collected tests and the searches to ``use`` in place of running the tests."""

    def __init__(self, use: Callable[[Rounds], None]) -> None:
        self.use = use
        self.failed = False
        self.error: Exception | None = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            units, searching = self._tests(session, UNITS), self._tests(session, SEARCHING)
            self.use((units, (*SMALL_SEARCHES, *searching), LARGE_SEARCHES))
        except Exception as error:  # noqa: BLE001 - pytest would print it and go on
            self.error = error
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def _tests(self, session: pytest.Session, files: Sequence[Path]) -> tuple[Check, ...]:
        return tuple(Check(each.nodeid, partial(self._fails, each)) for each in session.items if each.path in files)

    def _fails(self, item: pytest.Item) -> bool:
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.failed


def with_checks(use: Callable[[Rounds], None]) -> None:
    """Call ``use`` with all checks. Raises RuntimeError if pytest cannot collect the tests."""
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", "--assert=plain")
    session = _Session(use)
    code = pytest.main(
        [*plain, "-c", str(TESTS.parent / "pyproject.toml"), *map(str, (*UNITS, *SEARCHING))], plugins=[session]
    )
    if session.error:
        raise session.error
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise RuntimeError(f"the planner's unit tests cannot be collected: {code!r}")
