"""Progress of slow work: downloads, and files that are sent to hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol


class Progress(Protocol):
    """Receives progress. ``task`` names one download, build or host; several may run at once."""

    def start(self, task: str, total: int | None) -> None:
        """``task`` begins; ``total`` is its size in bytes, None where only the elapsed time can be shown."""

    def resize(self, task: str, total: int) -> None:
        """The size of ``task`` grew: it is ``total`` bytes in all."""

    def advance(self, task: str, done: int) -> None:
        """``task`` has completed ``done`` bytes (in all, not since the last call)."""

    def finish(self, task: str, outcome: str) -> None:
        """``task`` has ended, successfully or not; ``outcome`` is a short description."""

    def note(self, line: str) -> None:
        """One line for the user."""


class SilentProgress:
    """Shows nothing."""

    def start(self, task: str, total: int | None) -> None:
        """Show nothing."""

    def resize(self, task: str, total: int) -> None:
        """Show nothing."""

    def advance(self, task: str, done: int) -> None:
        """Show nothing."""

    def finish(self, task: str, outcome: str) -> None:
        """Show nothing."""

    def note(self, line: str) -> None:
        """Show nothing."""


async def ignore_event(plane: str, words: str) -> None:
    """Ignore an event."""
    del plane, words


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferListener:
    """``progress`` receives every byte. ``event`` is called once per start, with the plane that needs it: it is all
    that an onlooker in another process can see.
    """

    progress: Progress = field(default_factory=SilentProgress)
    event: Callable[[str, str], Awaitable[None]] = ignore_event
