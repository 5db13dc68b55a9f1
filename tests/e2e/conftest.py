"""Planes for the tests of this folder: one that they share and move to and fro, and homes of their own."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from support.plane_lab import PlaneLab, plane_lab
from support.planes import KeptPlane, created

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared() -> Iterator[KeptPlane]:
    """The plane ``demo``, three replicas on loopback, for tests that leave it as they found it: well."""
    made = KeptPlane("demo", created)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def demo(shared: KeptPlane) -> PlaneLab:
    """A home with the plane ``demo``: three healthy replicas at one of the sites east and west."""
    return shared.ready()


@pytest.fixture
def lab() -> Iterator[PlaneLab]:
    """A home of the test's own."""
    with plane_lab() as made:
        yield made
