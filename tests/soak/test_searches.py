"""The planner in worlds that no other run has seen: samples of searches that are too big to be searched whole."""

from __future__ import annotations

import random

import pytest
from model.searches import MORE, sampled
from soak.conftest import Soak

pytestmark = pytest.mark.timeout(0)


def test_no_state_of_a_fresh_sample_breaks_a_rule(soak: Soak) -> None:
    for seed in soak.seeds():
        search = sampled(random.Random(seed).choice(MORE), seed)
        print(f"{search}: {search.run().states:,} states", flush=True)
