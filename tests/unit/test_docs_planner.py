"""docs/planner.md is what the script makes of the rules and the steps, and so names each kind of step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quarterdeck.model.steps import all_kinds

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/planner.md"


def test_the_page_is_what_the_script_makes() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts/planner-tables"],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert made.stdout == PAGE.read_text(), "run: scripts/planner-tables > docs/planner.md"


def test_each_kind_of_step_is_in_the_page_once() -> None:
    page = PAGE.read_text()
    assert [each.kind for each in all_kinds() if page.count(f"| `{each.kind}` |") != 1] == []
