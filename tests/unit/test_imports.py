"""No modules import each other, not even for types or within functions: each can be read, and moved, by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.imports import circle

import quarterdeck

PACKAGE = Path(quarterdeck.__file__).parent


def test_no_modules_import_each_other() -> None:
    assert circle(PACKAGE) == []


@pytest.mark.parametrize(
    "back",
    [
        "from made.one import ONE",
        "import made.one",
        "from made import one",
        "def later():\n    from made.one import ONE",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made.one import ONE",
    ],
)
def test_a_circle_is_found_however_it_is_closed(tmp_path: Path, back: str) -> None:
    package = tmp_path / "made"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "one.py").write_text("from made.two import TWO\nONE = TWO\n")
    (package / "two.py").write_text("TWO = 2\n")
    assert circle(package) == []
    (package / "two.py").write_text(f"{back}\nTWO = 2\n")
    assert {*circle(package)} == {"made.one", "made.two"}
