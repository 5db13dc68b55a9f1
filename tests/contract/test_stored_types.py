"""The table of the types that each minor decodes is what upstream's own code says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.census import stored_types

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_table_is_what_the_schemes_of_each_minor_have() -> None:
    made = subprocess.run(
        [sys.executable, ROOT / "scripts/stored-types"],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert made.stdout == Path(stored_types.__file__).read_text(), "run: scripts/stored-types"
