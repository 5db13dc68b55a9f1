"""Lives of the whole loop in process, with several faults each, by the thousand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from soak.conftest import Soak

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


def test_every_life_ends_as_wanted(soak: Soak) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loop.soak", "--for", str(soak.seconds)], stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
