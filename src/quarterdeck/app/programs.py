"""The upstream programs that planes run: the list, and their download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.progress import Progress
from quarterdeck.upstream.cache import CacheEntry
from quarterdeck.upstream.catalog import CONTROL_PLANE, UpstreamProgram, Version, Versions
from quarterdeck.upstream.upstream import Upstream, version_of


class Programs:
    """The programs of one cache. Versions are as upstream writes them (``1.36.3``); without one, the default.

    Every call raises InvalidInput for a program or a version that is not known.
    """

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, progress: Progress | None = None) -> Programs:
        """As the environment says: QUARTERDECK_BIN_DIR, QUARTERDECK_CACHE, QUARTERDECK_MIRROR."""
        return cls(Upstream.from_environment(environment, progress=progress))

    def list(self, *, kubernetes: str | None = None, etcd: str | None = None) -> Sequence[CacheEntry]:
        """The programs that a plane of these versions needs, present or not; then all other programs in the cache."""
        return self._upstream.list(Versions.parse(kubernetes=kubernetes, etcd=etcd))

    async def fetch(
        self, programs: Sequence[str] = (), *, kubernetes: str | None = None, etcd: str | None = None
    ) -> Mapping[UpstreamProgram, Path]:
        """Download programs, or all that a plane needs, unless they are present. Raises what
        ``Upstream.ensure`` does.
        """
        wanted = [_program(each) for each in programs] or list(CONTROL_PLANE)
        return await self._upstream.ensure(wanted, Versions.parse(kubernetes=kubernetes, etcd=etcd))

    def path(self, program: str, version: str | None = None) -> Path:
        """The path of a program. Raises NotFound when it is missing, PreconditionFailed when a given one is wrong."""
        which = _program(program)
        wanted = Version.parse(version) if version else version_of(which, Versions())
        found = self._upstream.path(which, wanted)
        if found is None:
            raise NotFound(
                f"looking for {program} {wanted}", "it is not there", f"'quarterdeck upstream fetch {program}' gets it"
            )
        return found


def _program(name: str) -> UpstreamProgram:
    try:
        return UpstreamProgram(name)
    except ValueError:
        known = ", ".join(str(each) for each in UpstreamProgram)
        raise InvalidInput(f"looking for program {name!r}", "no such program", f"programs: {known}") from None
