"""Long runs with other seeds each time: ./test seeds -- --minutes 60 [--seed N]."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True)
class Soak:
    """One test's share of the time, and its seeds."""

    seconds: float
    first: int

    def seeds(self) -> Iterator[int]:
        """Seeds until the time is over, one at least. The one that something failed with is printed last."""
        end, seed = time.monotonic() + self.seconds, self.first
        while True:
            print(f"seed {seed}", flush=True)
            yield seed
            seed += 1
            if time.monotonic() > end:
                return


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> Soak:
    """The time in equal parts for all tests that were asked for and take a share of it."""
    given = request.config.getoption("--seed")
    first = given if given is not None else random.SystemRandom().randrange(10**6)
    parts = sum(isinstance(each, pytest.Function) and "soak" in each.fixturenames for each in request.session.items)
    return Soak(60.0 * request.config.getoption("--minutes") / parts, first)
