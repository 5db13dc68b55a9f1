"""What the labs of the end-to-end tests pass on, and what a skip is in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.plane_lab import PlaneLab
from support.tiers import VARIABLE, Tier

ROOT = Path(__file__).parents[2]


def test_commands_of_a_lab_find_programs_where_the_tests_do_and_nothing_else_of_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = {
        "QUARTERDECK_CACHE": "cache",
        "QUARTERDECK_MIRROR": "https://mirror.example",
        "QUARTERDECK_TEST_TIER": "soak",
    }
    for name, value in (given | {"QUARTERDECK_HOME": "/mine", "QUARTERDECK_KEY_FILE": "/mine/key"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    env = PlaneLab(root=tmp_path / "lab").environment
    assert {name: value for name, value in env.items() if name.startswith("QUARTERDECK_")} == {
        "QUARTERDECK_CACHE": str(tmp_path / "cache"),  # commands work in another folder
        "QUARTERDECK_MIRROR": "https://mirror.example",
        "QUARTERDECK_HOME": str(tmp_path / "lab" / "h"),
    }


SKIPS = """
import pytest

def test_on_the_list(): pytest.skip("no such server")
def test_not_on_the_list(): pytest.skip("no such kernel")
@pytest.mark.skipif(True, reason="never")
def test_marked(): pass
@pytest.mark.xfail
def test_expected(): assert False
"""


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", "1 failed, 1 skipped, 1 xfailed, 1 error"), ("", "3 skipped, 1 xfailed")]
)
def test_a_skip_that_is_not_on_the_list_fails_in_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    conftest = (ROOT / "tests" / "conftest.py").read_text()
    (tmp_path / "conftest.py").write_text(f'{conftest}\nMAY_BE_SKIPPED = {{"test_it.py::test_on_*": "known"}}\n')
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (tmp_path / "test_it.py").write_text(SKIPS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "CI": ci, VARIABLE: Tier.FULL, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout + done.stderr
    assert done.returncode == (1 if ci else 0)
    if ci:
        assert "test_it.py::test_not_on_the_list: skipped in CI, and not on the list" in done.stdout
        assert "no such kernel" in done.stdout
