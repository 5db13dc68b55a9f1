"""Programs that machines run, as they can be had."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Program:
    """A program by its ``name``: a file at ``path`` on the caller's host (``Capability.PATHS``), or an ``image`` of a
    registry (``Capability.IMAGES``).
    """

    name: str
    path: PurePosixPath | None = None
    image: str = ""
