"""Labs are for everybody: the same suite, run by a user without any privilege."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("test_netns_lab.py")
NOBODY = Path(__file__).with_name("netns_nobody.py")


@pytest.mark.netns
@pytest.mark.timeout(590)
@pytest.mark.skipif(os.geteuid() != 0, reason="the suite itself has just run without root")
async def test_the_suite_of_labs_holds_without_root() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(NOBODY), "-m", "pytest", "-q", "-rs", str(SUITE)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output = (await process.communicate())[0].decode()
    if "does this host allow" in output:
        pytest.skip("this host forbids user namespaces to ordinary users")
    assert process.returncode == 0, output
    passed = re.search(r"(\d+) passed", output)
    assert passed is not None, output
    assert int(passed[1]) >= 20, output
