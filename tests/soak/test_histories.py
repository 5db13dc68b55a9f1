"""A real plane in network namespaces, of which anything fails at random: what its clients saw is judged."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from quarterdeck.sites.netns.lab import available
from soak.conftest import Soak

pytestmark = [pytest.mark.soak, pytest.mark.netns, pytest.mark.timeout(0)]

BENCH = Path(__file__).parents[2] / "bench" / "soak.py"


def test_no_promise_to_clients_is_broken_whatever_fails(soak: Soak) -> None:
    allowed, reason = asyncio.run(available())
    if not allowed:
        pytest.skip(f"this host does not allow network namespaces: {reason}")
    argv = [sys.executable, str(BENCH), "--seed", str(soak.first), "--for", f"{soak.seconds:.0f}s"]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout
