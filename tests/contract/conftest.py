"""What modules of the contract tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.hosts_lab import HostsLab
from support.hosts_site import EAST


@pytest.fixture(scope="session")
def machines() -> Iterator[HostsLab]:
    """The hosts of site east: each test leaves them as they were."""
    with HostsLab(EAST) as lab:
        yield lab
