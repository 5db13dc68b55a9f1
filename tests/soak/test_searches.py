"""The planner in worlds that no other run has seen: samples of searches that are too big to be searched whole."""

from __future__ import annotations

import random

import pytest
from model.searches import BACK, HEALS_MORE, MORE, NORTH, Search, sampled
from model.test_recovery import ALL_THE_SAME, lost, searched

from quarterdeck.planner.simulated.parts import Power
from soak.conftest import Soak

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


def test_no_state_of_a_fresh_sample_breaks_a_rule(soak: Soak) -> None:
    for seed in soak.seeds():
        search = sampled(random.Random(seed).choice((*MORE, *HEALS_MORE)), seed)
        print(f"{search}: {search.run().states:,} states", flush=True)


@pytest.mark.parametrize("search", [BACK, NORTH], ids=["back", "another-site"])
def test_one_fault_and_a_change_of_mind_at_any_moment_break_no_rule(search: Search) -> None:
    explorer = search.run()
    print(f"{explorer.states:,} states, {explorer.walker.steps:,} steps")


def test_a_cut_off_majority_may_come_back_at_any_moment_of_a_recovery_in_which_something_fails() -> None:
    explorer = searched(lost(Power.FROZEN, ALL_THE_SAME), faults=1)
    print(f"{explorer.states:,} states, {explorer.walker.steps:,} steps")
