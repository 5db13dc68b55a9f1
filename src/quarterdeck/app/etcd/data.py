"""Whether the members of a plane's etcd have the same data."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.engine.observation.data_comparison import Compared, compare_all
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.model.clusters import CALLED


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHash:
    """A voter of ``cluster`` (as people call it), and the hash of all its keys at an etcd ``revision`` (None: not
    reported). ``same``: whether it has the data of the majority of all voters (None: not known, or there is no
    majority).
    """

    cluster: str
    replica: str
    revision: int
    hash: int | None
    same: bool | None


async def compared(home: Home, name: str) -> tuple[MemberHash, ...]:
    """See ``Looks.compare``."""
    async with open_plane(home, name) as plane:
        found = await compare_all(plane)
    return tuple(row for each in found for row in _rows(each))


def _rows(found: Compared) -> list[MemberHash]:
    right = found.right
    return [
        MemberHash(
            cluster=CALLED[found.cluster],
            replica=name,
            revision=found.revision,
            hash=has,
            same=None if has is None or right is None else has == right,
        )
        for name, has in found.hashes.items()
    ]
