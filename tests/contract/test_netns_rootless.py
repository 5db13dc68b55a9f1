"""Labs are for everybody: the same suite, run by a user without any privilege."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from support.tiers import VARIABLE, Tier

SUITE = Path(__file__).with_name("test_netns_lab.py")
NOBODY = Path(__file__).with_name("netns_unprivileged.py")


#: Tests of which each needs another right, as pytest selects them.
SOME = "reach_each_other or driver or falls_silent or delay_may_differ"


@pytest.mark.netns
@pytest.mark.timeout(590)
@pytest.mark.skipif(os.geteuid() != 0, reason="the suite itself has just run without root")
@pytest.mark.parametrize(("which", "least"), [(SOME, 5), pytest.param("test", 20, marks=pytest.mark.soak)])
async def test_the_suite_of_labs_holds_without_root(which: str, least: int) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(NOBODY), "-m", "pytest", "-q", "-rs", str(SUITE), "-k", which),
        env={**os.environ, VARIABLE: Tier.FULL},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    if "does this host allow" in output:
        pytest.skip("this host forbids user namespaces to ordinary users")
    assert process.returncode == 0, output
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None, output
    assert int(passed[1]) >= least, output
