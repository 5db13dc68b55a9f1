"""What the code does in one place alone, as its sources show."""

from __future__ import annotations

import re
from pathlib import Path

import quarterdeck

SOURCES = Path(quarterdeck.__file__).parent

#: Modules that copy a resource with another status: planes by ``ControlPlane.with_status``, and each other kind by what
#: keeps its books.
STATUSES = {"api/controlplane.py", "engine/workspace/operations.py", "app/drill/books.py", "app/reports.py"}


def modules_with(pattern: str) -> set[str]:
    found = (each for each in SOURCES.rglob("*.py") if re.search(pattern, each.read_text(), re.DOTALL))
    return {str(each.relative_to(SOURCES)) for each in found}


def test_a_status_is_written_in_one_place_for_each_kind() -> None:
    assert modules_with(r'model_copy\(\s*update=\{[^}]*"status":') == STATUSES
    assert modules_with(r"ControlPlaneStatus\(") == {"api/controlplane.py", "engine/workspace/operations.py"}
