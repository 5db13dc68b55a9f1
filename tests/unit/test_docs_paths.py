"""The pages name no file of this repository that is not there: modules move."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md")))
#: A module or a script, by its whole path or by the end of it.
_FILE = re.compile(r"(?<![\w/.])(?:\.\./)?((?:[a-z0-9_.-]+/)*[a-z0-9_.-]+\.(?:py|sh))\b")


def is_there(path: str) -> bool:
    """Whether a file of the repository has this path, or ends with it."""
    below = (ROOT / each for each in ("src", "tests", "scripts", "bench"))
    return (ROOT / path).is_file() or any(next(folder.rglob(path), None) is not None for folder in below)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    assert [path for path in dict.fromkeys(_FILE.findall(page.read_text())) if not is_there(path)] == []
