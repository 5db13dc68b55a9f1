"""The README's first command, as it is written there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.leftovers import processes_of
from support.plane_lab import PlaneLab

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(900)]

SCRIPT = Path(__file__).parents[2] / "quarterdeck"


def test_the_demo_moves_a_plane_under_load_and_leaves_nothing(lab: PlaneLab) -> None:
    done = lab.start_program(str(SCRIPT), "demo", "--baseline", "2").end(600.0)
    assert done.code == 0, str(done)
    for words in ("demo moved east → west in", " 0 failed, 0 lost writes", "plane demo is deleted again"):
        assert words in done.out, str(done)
    assert lab.planes() == ()
    assert processes_of(lab.root) == []
