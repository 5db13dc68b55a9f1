"""The three tiers of tests: ``smoke`` is part of ``full``, and ``soak`` has what takes too long for both.

Markers say which tiers have a test: ``smoke`` (and full), none (full), ``soak`` (only soak), or both markers (all
three, with as much work as ``sized`` says). Unit tests need no marker: each of them is in smoke and in full.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from typing import TypeVar

import pytest

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., object])

#: The environment variable that names the tier of a run.
VARIABLE = "QUARTERDECK_TEST_TIER"


class Tier(StrEnum):
    """A size of test run, smallest first."""

    SMOKE = "smoke"
    FULL = "full"
    SOAK = "soak"


def tier_of_run(environment: Mapping[str, str] = os.environ) -> Tier:
    """The tier that the environment names; full without it. Raises ValueError for any other name."""
    return Tier(environment.get(VARIABLE, Tier.FULL))


def tiers_of(markers: Collection[str], *, unit: bool) -> frozenset[Tier]:
    """The tiers that have a test with these markers. ``unit``: whether it is a unit test."""
    in_soak = frozenset({Tier.SOAK}) if Tier.SOAK in markers else frozenset()
    if unit or Tier.SMOKE in markers:
        return frozenset({Tier.SMOKE, Tier.FULL}) | in_soak
    return in_soak or frozenset({Tier.FULL})


def sized(*, smoke: T, full: T, soak: T) -> T:
    """The one of these values that the tier of this run has."""
    return {Tier.SMOKE: smoke, Tier.FULL: full, Tier.SOAK: soak}[tier_of_run()]


def in_each_tier(test: Test) -> Test:
    """A test that does as much as its tier has time for (``sized``)."""
    return pytest.mark.smoke(pytest.mark.soak(test))


def smoke(*values: object) -> tuple[object, ...]:
    """Parameters with which a test is in the smoke tier."""
    return tuple(pytest.param(each, marks=pytest.mark.smoke) for each in values)


def first_of_each(values: Iterable[T], family: Callable[[T], object]) -> tuple[object, ...]:
    """Parameters of which the full tier has the first of each family, and a soak all others."""
    known: set[object] = set()
    found: list[object] = []
    for value in values:
        found.append(pytest.param(value, marks=pytest.mark.soak) if family(value) in known else value)
        known.add(family(value))
    return tuple(found)
