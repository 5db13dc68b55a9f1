"""How long supervisord waits before it starts a crashing unit again."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from supervisor.states import ProcessStates

from quarterdeck.sites.local.supervisor.unit import BEGINS_WITHIN, FIRST_PAUSE, LONGEST_PAUSE, UnitProcess


def pauses(failures: int) -> list[float]:
    """The pause in seconds after each of so many failures in a row."""
    process = UnitProcess(config=None)
    found = []
    for _ in range(failures):
        process.state = ProcessStates.STARTING
        before = time.time()
        process.change_state(ProcessStates.BACKOFF)
        found.append(process.delay - before)
    return found


def test_pauses_double_up_to_a_bound_and_never_end() -> None:
    found = pauses(1000)
    doubling = [min(FIRST_PAUSE * 2**each, LONGEST_PAUSE) for each in range(6)]
    assert found[:6] == pytest.approx(doubling, abs=0.2)
    assert max(found) < LONGEST_PAUSE + 0.5


def test_a_clock_set_back_does_not_stretch_the_pause_of_a_unit_that_failed_often() -> None:
    process = UnitProcess(config=None)
    for _ in range(1000):
        process.state = ProcessStates.STARTING
        process.change_state(ProcessStates.BACKOFF)
    an_hour_ago = time.time() - 3600
    process._check_and_adjust_for_system_clock_rollback(an_hour_ago)
    assert process.delay - an_hour_ago <= LONGEST_PAUSE + 1


@pytest.mark.parametrize(
    ("marked", "lasted", "left"),
    [(False, 0.1, True), (False, BEGINS_WITHIN - 0.1, True), (False, BEGINS_WITHIN, False), (True, 0.1, False)],
)
def test_a_start_uses_up_the_permission_to_begin_without_data_once_it_has_data_or_has_lasted(
    marked: bool, lasted: float, left: bool
) -> None:
    process = UnitProcess(config=SimpleNamespace(marked=marked))
    process.fresh, process._began = True, 100.0
    process.use_up_fresh(100.0 + lasted)
    assert process.fresh is left
