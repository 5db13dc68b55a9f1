"""Who is told of what a site does that takes long. Given to a driver when it is opened; nobody unless said."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quarterdeck.progress import Progress, Silent


async def nobody(plane: str, words: str) -> None:
    """Keep it to oneself."""
    del plane, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """``progress`` is told of every byte. ``event`` is told once that something begins, and for which plane: who
    looks on from another process has nothing else to go by.
    """

    progress: Progress = field(default_factory=Silent)
    event: Callable[[str, str], Awaitable[None]] = nobody
