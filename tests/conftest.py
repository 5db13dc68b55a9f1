"""In CI nothing is skipped without a word: what is not on the list here fails."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from fnmatch import fnmatch

import pytest
from hypothesis import settings

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


def may_be_skipped(nodeid: str) -> bool:
    """Whether a test is on the list."""
    return any(fnmatch(nodeid, pattern) for pattern in MAY_BE_SKIPPED)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Sentences for people are kept by one command (``support/golden.py``)."""
    parser.addoption("--update-golden", action="store_true", help="keep what the unit tests say now in tests/golden")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip of a test that is not on the list is a failure in CI."""
    report = yield
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if skipped and os.environ.get("CI") == "true" and not may_be_skipped(item.nodeid):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped in CI, and not on the list of tests/conftest.py: {_why(report)}"
    return report


def _why(report: pytest.TestReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
