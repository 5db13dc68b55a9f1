"""Which tests a run has (support/tiers.py), what came of it (support/tally.py), and which of them may be skipped in CI:
there a test that is skipped, and not on the list here, fails.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from support.tally import VARIABLE as TALLY
from support.tally import Tally, by_file, slowest
from support.tiers import Tier, tier_of_run, tiers_of

# An example that takes long on a busy machine is no failure.
settings.register_profile("patient", parent=settings(), deadline=None)
settings.load_profile("patient")

#: What may be skipped in CI (a pattern for node ids), and why that is well.
MAY_BE_SKIPPED: Mapping[str, str] = {
    "tests/contract/test_dns_*[[]*named*[]]": "CI has one primary server; the other one is tried where it is installed",
    "tests/contract/test_dns_*[[]*knotd*[]]": "as above",
    "tests/unit/test_turns.py::*": "kernels before 6.12 let nobody choose turns",
    "tests/unit/test_sites_courtesy.py::*": "a kernel may be built without autogroups",
    "tests/contract/test_site_local.py::test_a_unit_gives_way_*": "as above",
}

UNIT = Path(__file__).parent / "unit"
#: Why a test is left out that the tier has.
ARGUMENTS = "other arguments"

#: (file, reason) for each test that was collected and not selected.
LEFT_OUT = pytest.StashKey[list[tuple[str, str]]]()
#: The same by file, as a worker has counted it.
COUNTED = pytest.StashKey[dict[str, dict[str, int]]]()
#: Where the tally of this run is to be written ("": nowhere).
TALLY_FILE = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--minutes", type=float, default=30.0, help="tests/soak: for how long in all.")
    parser.addoption("--seed", type=int, default=None, help="tests/soak: the first seed; without it, a random one.")
    parser.addoption("--update-golden", action="store_true", help="tests/unit: keep what is said now in tests/golden.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = []
    # It is this run's: a run that a test starts must not write there, and may not be allowed to.
    config.stash[TALLY_FILE] = os.environ.pop(TALLY, "")


# --- which tests a run has


def tiers_with(item: pytest.Item) -> frozenset[Tier]:
    """The tiers that have a test."""
    return tiers_of({each.name for each in item.iter_markers()}, unit=UNIT in item.path.parents)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what the tier has, and every test that the command line names as FILE::TEST."""
    tier = tier_of_run()
    named = tuple(each.rsplit("/", 1)[-1] for each in config.args if "::" in each)
    kept, left = [], []
    for item in items:
        asked_for = any(item.nodeid.rsplit("/", 1)[-1].startswith(each) for each in named)
        (kept if asked_for or tier in tiers_with(item) else left).append(item)
    if left:
        items[:] = kept
        config.hook.pytest_deselected(items=left)


def pytest_deselected(items: Iterable[pytest.Item]) -> None:
    tier = tier_of_run()
    for item in items:
        has = tiers_with(item)
        why = ARGUMENTS if tier in has else next(str(each) for each in Tier if each in has)
        item.config.stash[LEFT_OUT].append((item.nodeid.split("::")[0], why))


# --- what came of it


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells the process that started it what was left out: that one collects nothing."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = by_file(session.config.stash[LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Each worker has collected the same, so the last one to end speaks for all."""
    if "left_out" in getattr(node, "workeroutput", {}):  # one that crashed has said nothing
        node.config.stash[COUNTED] = node.workeroutput["left_out"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the tally, where one is asked for."""
    path = config.stash[TALLY_FILE]
    if not path:
        return
    stats = terminalreporter.stats
    reports = [each for group in stats.values() for each in group if isinstance(each, pytest.TestReport)]
    Tally(
        passed=len(stats.get("passed", [])) + len(stats.get("xfailed", [])),
        failed=len(stats.get("failed", [])) + len(stats.get("error", [])),
        skipped=tuple((each.nodeid, _why(each)) for each in stats.get("skipped", [])),
        left_out=config.stash.get(COUNTED, by_file(config.stash[LEFT_OUT])),
        slowest=slowest((each.nodeid, each.duration) for each in reports),
    ).write(Path(path))


# --- what may be skipped in CI


def may_be_skipped(nodeid: str) -> bool:
    """Whether a test is on the list."""
    return any(fnmatch(nodeid, pattern) for pattern in MAY_BE_SKIPPED)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip of a test that is not on the list is a failure in CI."""
    report = yield
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if skipped and os.environ.get("CI") == "true" and not may_be_skipped(item.nodeid):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped in CI, and not on the list of tests/conftest.py: {_why(report)}"
    return report


def _why(report: pytest.TestReport | pytest.CollectReport) -> str:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")
