"""Drivers that die, and users who change their minds, at any moment of a migration."""

from __future__ import annotations

import pytest
from support.moves import aborted, migrated, moments
from support.plane_lab import PlaneLab

pytestmark = pytest.mark.timeout(1200)

SEED = 20_260_101


def test_a_migration_survives_ten_kills_of_its_driver(demo: PlaneLab) -> None:
    migrated(demo, "killed", moments(10, seed=SEED))


@pytest.mark.parametrize("count", moments(5, seed=SEED + 1))
def test_a_migration_is_aborted_at_any_moment(demo: PlaneLab, count: int) -> None:
    aborted(demo, f"aborted-{count}", count)
