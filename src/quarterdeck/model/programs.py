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


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a released program can be had by whoever needs it: at ``url``, whose content has the SHA-256 ``digest``
    (hex; "": it is not known). ``member``: the name of its file in the gzipped tar there; "": it is what is there.
    """

    url: str
    digest: str = ""
    member: str = ""
