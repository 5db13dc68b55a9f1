"""Programs that run for a block leave nothing behind, whenever the block is given up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from support.leftovers import working_in

from quarterdeck.runner import held


async def test_nothing_is_left_of_a_program_that_is_given_up_at_any_moment_of_its_start(tmp_path: Path) -> None:
    for milliseconds in (0, 1, 2, 3, 5, 8, 13, 20, 40, 80):
        with (tmp_path / "output").open("wb") as output, suppress(TimeoutError):
            async with asyncio.timeout(milliseconds / 1000):
                async with held(("/bin/sleep", "60"), output=output.fileno(), folder=tmp_path):
                    await asyncio.Event().wait()
        assert working_in(tmp_path) == [], f"after {milliseconds} ms"
