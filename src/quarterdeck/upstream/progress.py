"""Who is told what goes on while programs are fetched."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Is told what goes on. ``task`` names one download or build; several may be under way at once."""

    def start(self, task: str, total: int | None) -> None:
        """``task`` begins; ``total`` is its size in bytes, None where only the elapsed time can be shown."""

    def advance(self, task: str, done: int) -> None:
        """``task`` has come to ``done`` bytes (in all, not since the last call)."""

    def finish(self, task: str, outcome: str) -> None:
        """``task`` has ended, well or not; ``outcome`` says which in a few words."""

    def note(self, line: str) -> None:
        """One line that a person should know of."""


class Silent:
    """The Progress that shows nothing."""

    def start(self, task: str, total: int | None) -> None:
        """Show nothing."""

    def advance(self, task: str, done: int) -> None:
        """Show nothing."""

    def finish(self, task: str, outcome: str) -> None:
        """Show nothing."""

    def note(self, line: str) -> None:
        """Show nothing."""
