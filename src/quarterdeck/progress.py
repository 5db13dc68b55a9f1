"""Who is told what goes on while something takes long: programs that are fetched, or sent to hosts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol


class Progress(Protocol):
    """Is told what goes on. ``task`` names one download, build or host; several may be under way at once."""

    def start(self, task: str, total: int | None) -> None:
        """``task`` begins; ``total`` is its size in bytes, None where only the elapsed time can be shown."""

    def resize(self, task: str, total: int) -> None:
        """More has come to ``task``: it is so many bytes in all."""

    def advance(self, task: str, done: int) -> None:
        """``task`` has come to ``done`` bytes (in all, not since the last call)."""

    def finish(self, task: str, outcome: str) -> None:
        """``task`` has ended, well or not; ``outcome`` says which in a few words."""

    def note(self, line: str) -> None:
        """One line that a person should know of."""


class SilentProgress:
    """The Progress that shows nothing."""

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


async def nobody(plane: str, words: str) -> None:
    """Keep it to oneself."""
    del plane, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """``progress`` is told of every byte. ``event`` is told once that something begins, and for which plane: who
    looks on from another process has nothing else to go by.
    """

    progress: Progress = field(default_factory=SilentProgress)
    event: Callable[[str, str], Awaitable[None]] = nobody
