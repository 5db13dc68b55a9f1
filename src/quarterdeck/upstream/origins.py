"""Where hosts can have programs from that are in the cache: the same address from which they came here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quarterdeck.errors import InvalidInput
from quarterdeck.model.programs import Origin
from quarterdeck.upstream.cache import Cache, State
from quarterdeck.upstream.catalog import Program, Version
from quarterdeck.upstream.download import Releases
from quarterdeck.upstream.pins import RELEASES
from quarterdeck.upstream.releases import mirrored, release_files
from quarterdeck.upstream.target import Target
from quarterdeck.upstream.upstream import cache_root


class Origins:
    """Says where a file of the cache is released; None for what was built here, or given by a person."""

    def __init__(self, cache: Cache, *, mirror: str | None = None, pins: Mapping[str, str] = RELEASES) -> None:
        self._cache = cache
        self._mirror = mirror
        self._pins = pins

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Origins:
        """As users set it up: QUARTERDECK_CACHE, QUARTERDECK_MIRROR."""
        return cls(Cache(cache_root(environment), Target.here()), mirror=environment.get("QUARTERDECK_MIRROR"))

    def __call__(self, file: Path) -> Origin | None:
        """Where that file can be had. Reads what the cache has noted of it."""
        try:
            program, version, target, name = file.relative_to(self._cache.root / "upstream").parts
            found = self._cache.look(Program(program), Version.parse(version))
        except (ValueError, InvalidInput):  # it is no file of the cache
            return None
        if found.path != file or name != program or target != str(self._cache.target):
            return None
        if found.state is not State.READY or found.source != Releases.name:
            return None
        wanted = (found.program,)
        for each in release_files(found.program.project, found.version, wanted, self._cache.target, self._pins):
            member = each.members[found.program] if each.members is not None else ""
            return Origin(mirrored(each.url, self._mirror), each.pinned or "", member)
        return None
