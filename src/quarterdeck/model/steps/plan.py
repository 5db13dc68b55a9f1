"""What a planner answers: steps to take now, and reasons to wait."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from quarterdeck.model.steps.base import Step


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that is waited for. ``what`` names it ("machine east-a1 of east-1 to answer"). ``then`` says what a
    person does about it (a command, or what is to be mended), or that quarterdeck goes on by itself, and when.
    """

    what: str
    then: str

    @override
    def __str__(self) -> str:
        return f"{self.what} ({self.then})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now (all at once), what is waited for, and what will be cleaned up when its machine is back."""

    now: tuple[Step, ...] = ()
    waiting: tuple[Wait, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Nothing to do and nothing to wait for. ``leftovers`` may remain on machines that do not answer."""
        return not self.now and not self.waiting
