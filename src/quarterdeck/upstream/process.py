"""Running a short-lived program, with a deadline, so that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.errors import TimedOut


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended: its exit code, and what it printed."""

    code: int
    output: str
    errors: str


async def run(argv: Sequence[str], *, folder: Path, environment: Mapping[str, str], deadline: float) -> Outcome:
    """Run ``argv`` in ``folder`` for at most ``deadline`` seconds.

    It and all its children are killed when the time is up (TimedOut) or the caller is cancelled.
    Raises OSError when the program cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # so that the whole group can be killed
    )
    try:
        async with asyncio.timeout(deadline):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise TimedOut(f"running {' '.join(argv[:3])}", f"it did not end in {deadline:.0f} s") from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Outcome(process.returncode or 0, output.decode(errors="replace"), errors.decode(errors="replace"))
