"""What modules of the contract tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.hosts_lab import HostsLab
from support.hosts_site import EAST

#: Modules whose tests on hosts share a worker, and so a lab, with those of the other modules here; all others share
#: another one.
_ONE_HALF = frozenset({"test_site_contract", "test_site_data_guard"})
#: Modules with a lab of their own.
_APART = frozenset({"test_keepalived", "test_probe_from_host", "test_hosts_lab"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have each lab of hosts be in one worker: it takes longer to boot than most tests take."""
    for item in items:
        if item.get_closest_marker("hosts"):
            module = item.path.stem
            lab = module if module in _APART else "hosts of sites" if module in _ONE_HALF else "hosts"
            item.add_marker(pytest.mark.xdist_group(lab))


@pytest.fixture(scope="session")
def machines() -> Iterator[HostsLab]:
    """The hosts of site east: each test leaves them as they were."""
    with HostsLab(EAST) as lab:
        yield lab
