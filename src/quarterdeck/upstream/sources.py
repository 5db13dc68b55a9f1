"""The port through which programs come in, and what a source says when it has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from quarterdeck.progress import Progress
from quarterdeck.upstream.catalog import Program, Project, Version
from quarterdeck.upstream.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Programs of one release that are wanted. ``folder`` is empty, and takes all files that arise."""

    project: Project
    version: Version
    programs: tuple[Program, ...]
    target: Target
    folder: Path


class CannotGive(Exception):
    """This source does not have what was ordered.

    ``absent``: the source was reached and knows no such release; else it could not be reached or used.
    """

    def __init__(self, why: str, *, absent: bool) -> None:
        super().__init__(why)
        self.absent = absent


class Source(Protocol):
    """Where programs come from: a site with releases, or a compiler."""

    @property
    def name(self) -> str:
        """The source in one word, for people."""
        ...

    async def fetch(self, order: Order, progress: Progress) -> Mapping[Program, Path]:
        """All programs of ``order`` as files in its folder, checked against what their project published.

        Raises CannotGive when it has them not, Corrupt when it has them wrong (no other source is asked
        then), PreconditionFailed when there is no room for them.
        """
        ...
