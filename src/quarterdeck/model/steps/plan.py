"""The result of the planner: steps to take now, and waits."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from quarterdeck.model.steps.base import Step


@dataclass(frozen=True, slots=True)
class Wait:
    """One wait. ``what`` continues "waiting for" ("machine east-a1 of east-1 to answer"). ``then`` says what a person
    does about it (a command, or what to fix), or when quarterdeck continues by itself.
    """

    what: str
    then: str

    @override
    def __str__(self) -> str:
        return f"{self.what} ({self.then})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps to take now (all at once), waits, and leftovers to clean up when their machine is back."""

    now: tuple[Step, ...] = ()
    waiting: tuple[Wait, ...] = ()
    leftovers: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether there are no steps and no waits. ``leftovers`` may remain on machines that do not answer."""
        return not self.now and not self.waiting
