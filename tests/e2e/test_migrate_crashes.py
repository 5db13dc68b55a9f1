"""Drivers that die, and users who change their minds, at any moment of a migration. That it may be any is shown at each
call by tests/loop; here it is real programs, a few times, and more often in a soak.
"""

from __future__ import annotations

import pytest
from support.moves import aborted, migrated, moments
from support.plane_lab import PlaneLab
from support.tiers import smoke

pytestmark = pytest.mark.timeout(1200)

SEED = 20_260_101
MOMENTS = moments(5, seed=SEED + 1)


@pytest.mark.parametrize("kills", [*smoke(4), pytest.param(10, marks=pytest.mark.soak)])
def test_a_migration_survives_kills_of_its_driver(demo: PlaneLab, kills: int) -> None:
    migrated(demo, f"killed-{kills}", moments(kills, seed=SEED))


@pytest.mark.soak  # tests/loop has it at any call; test_faults_machines.py has one under worse conditions
@pytest.mark.parametrize("count", MOMENTS)
def test_a_migration_is_aborted_at_any_moment(demo: PlaneLab, count: int) -> None:
    aborted(demo, f"aborted-{count}", count)
