"""Planes for the tests of this folder: one that they share and move to and fro, and homes of their own."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from support.plane_lab import PlaneLab, plane_lab
from support.planes import SMALL_NAME, KeptPlane, created, small_created

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


@pytest.fixture(scope="session")
def small_kept() -> Iterator[KeptPlane]:
    """The plane ``small``, of one replica, for tests that leave it well."""
    made = KeptPlane(SMALL_NAME, small_created)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def small(small_kept: KeptPlane) -> PlaneLab:
    """A home with the plane ``small``: one replica with little room, and a site that it cannot move to."""
    return small_kept.ready(1)


@pytest.fixture
def lab() -> Iterator[PlaneLab]:
    """A home of the test's own."""
    with plane_lab() as made:
        yield made
