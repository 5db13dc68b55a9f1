"""Calls that may block on a disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from quarterdeck.files import file_errors

P = ParamSpec("P")
T = TypeVar("T")


async def on_disk(owner: str, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """``call`` in a thread, since it may block on the disk of that machine or site. Raises Unavailable for OSError."""
    with file_errors(f"using the disk of {owner}"):
        return await asyncio.to_thread(call, *given, **named)
