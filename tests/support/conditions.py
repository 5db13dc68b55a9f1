"""Waiting for what is to come true."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from quarterdeck.sites.local.fault.faults import all_stopped

T = TypeVar("T")

#: Seconds. Generous: a condition that comes true is not waited for any longer, and machines are busy at times.
CALL = 120.0
CHANGE = 300.0


def until(good: Callable[[], T], what: str, *, seconds: float = CALL, pause: float = 0.05) -> T:
    """What ``good`` returns once it is true; fails after ``seconds``."""
    end = time.monotonic() + seconds
    while not (seen := good()):
        assert time.monotonic() < end, f"{what}: not within {seconds:.0f} s"
        time.sleep(pause)
    return seen


def freeze(pid: int) -> None:
    """Have a process stand still, and return once all of its threads do: a signal takes its time to reach each."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: all_stopped(pid), f"{pid} stands still")


async def eventually(look: Callable[[], Awaitable[T]], good: Callable[[T], bool], deadline: float = 60.0) -> T:
    """What ``look`` sees once it is ``good``; fails with the last sight after ``deadline`` seconds: starting a process
    takes many of them where ten others want the same processor.
    """
    end = asyncio.get_running_loop().time() + deadline
    while not good(seen := await look()):
        assert asyncio.get_running_loop().time() < end, f"still {seen!r} after {deadline} s"
        await asyncio.sleep(0.01)
    return seen
