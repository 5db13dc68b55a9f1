"""Turns on the processor: short ones are taken, and handed on to what is started."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quarterdeck.linux.turns import SHORT, turn

pytestmark = pytest.mark.skipif(turn() is None, reason="this kernel has no turns of one's own")

CHILD = "import sys; from quarterdeck.linux.turns import turn; print(turn())"


def printed(program: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return [float(line) for line in done.stdout.split()]


def test_turns_are_short_once_they_are_asked_for_and_so_are_those_of_threads_and_children() -> None:
    program = f"""
import subprocess, sys, threading
from quarterdeck.linux.turns import use_short_time_slices, turn
print(turn())
assert use_short_time_slices()
print(turn(), flush=True)
thread = threading.Thread(target=lambda: print(turn(), flush=True))
thread.start()
thread.join()
subprocess.run([sys.executable, "-c", {CHILD!r}], check=True)
"""
    before, *after = printed(program)
    assert before > SHORT
    assert after == [SHORT] * 3


def test_what_is_not_told_keeps_its_turns() -> None:
    assert printed(CHILD) == [turn()]
