"""A reason to wait, as people read it."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override


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
