"""The folder that keeps downloaded programs.

``<cache>/upstream/<program>/<version>/<goos>-<goarch>/`` holds the program and ``facts.json``, which records its
source. The folder appears complete, by one rename, or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from filelock import AsyncFileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from quarterdeck.errors import Corrupt, InvalidInput, PreconditionFailed, TimedOut
from quarterdeck.files import sync_folder, write_atomic
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.sources import Target, fault

LOCK_DEADLINE = 3600.0
"""Seconds to wait for another process that fetches the same programs; a build on a slow machine is long."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_WRITING = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENOENT}


class Facts(BaseModel):
    """The facts that are stored with a cached program."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    sha256: str
    size: int


class State(StrEnum):
    """The state of a program in the cache."""

    READY = "ready"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """One program in the cache. ``why``: the problem of a broken one; ``size`` is in bytes."""

    program: UpstreamProgram
    version: Version
    path: Path
    state: State
    why: str = ""
    source: str = ""
    size: int = 0


@contextmanager
def storing(doing: str, folder: Path) -> Iterator[None]:
    """Turn errors of the file system while ``folder`` is written into PreconditionFailed."""
    try:
        yield
    except OSError as error:
        where = "free some space, or set QUARTERDECK_CACHE to a folder on a larger disk"
        if error.errno in _NO_ROOM:
            raise PreconditionFailed(doing, f"no room in {folder} ({error.strerror})", where) from error
        if error.errno in _NO_WRITING:
            raise PreconditionFailed(
                doing,
                f"cannot write to {folder} ({error.strerror})",
                "set QUARTERDECK_CACHE to a folder of yours",
            ) from error
        raise


class Cache:
    """The cached programs of one cache folder, for one target."""

    def __init__(self, root: Path, target: Target) -> None:
        """``root`` is the cache folder as a whole; the programs are below ``upstream`` in it."""
        self.root = root
        self.target = target
        self._hashed: dict[Path, tuple[int, ...]] = {}  # the state of a program when its digest was verified

    def look(self, program: UpstreamProgram, version: Version) -> CacheEntry:
        """What the cache has of ``program``: its size and ELF headers are checked, its content is not."""
        path = self._folder(program, version) / program

        def entry(state: State, why: str = "", facts: Facts | None = None) -> CacheEntry:
            source, size = (facts.source, facts.size) if facts else ("", 0)
            return CacheEntry(
                program=program, version=version, path=path, state=state, why=why, source=source, size=size
            )

        try:
            facts = Facts.model_validate_json((path.parent / "facts.json").read_bytes())
            size = path.stat().st_size
            if size < facts.size:
                return entry(State.BROKEN, f"is cut short ({size} of {facts.size} bytes)", facts)
            if size > facts.size:
                return entry(State.BROKEN, f"has grown ({size} bytes, {facts.size} were stored)", facts)
            if why := fault(path, self.target):
                return entry(State.BROKEN, why, facts)
            if not os.access(path, os.X_OK):
                return entry(State.BROKEN, "may not be executed", facts)
        except (FileNotFoundError, NotADirectoryError):
            known = path.parent.is_dir()
            return entry(State.BROKEN, "is incomplete") if known else entry(State.MISSING)
        except ValidationError:
            return entry(State.BROKEN, "has no readable facts.json")
        return entry(State.READY, facts=facts)

    def checked(self, entry: CacheEntry, *, pinned: str | None = None) -> CacheEntry:
        """``entry``, broken if its content is not what was stored, or not what is ``pinned`` (SHA-256 in hex).

        Reads the whole program, once by this object unless it changes: 0.3 s for all of a control plane.
        """
        if entry.state is not State.READY:
            return entry
        seen = entry.path.stat()
        look = (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        if self._hashed.get(entry.path) == look:
            return entry
        facts = Facts.model_validate_json((entry.path.parent / "facts.json").read_bytes())
        expected = pinned or facts.sha256
        if (digest := _digest(entry.path)) != expected:
            source = "pinned" if pinned else "stored"
            why = f"has changed (its SHA-256 is {digest[:12]}..., {source} was {expected[:12]}...)"
            return replace(entry, state=State.BROKEN, why=why)
        self._hashed[entry.path] = look
        return entry

    def entries(self) -> tuple[CacheEntry, ...]:
        """All programs that the cache has for this target, also broken ones."""
        found: list[CacheEntry] = []
        for program in UpstreamProgram:
            for folder in sorted((self.root / "upstream" / program).glob(f"*/{self.target}")):
                with contextlib.suppress(InvalidInput):  # a folder of another program
                    found.append(self.look(program, Version.parse(folder.parent.name)))
        return tuple(found)

    def put(self, program: UpstreamProgram, version: Version, file: Path, source: str) -> CacheEntry:
        """Move ``file``, which must be in this cache's work folder, into its place.

        Raises Corrupt when it is not a program for this target, PreconditionFailed when it cannot be stored.
        """
        doing = f"storing {program} {version}"
        if why := fault(file, self.target):
            raise Corrupt(doing, f"the program from {source} {why}", "report this to the provider of that source")
        folder = self._folder(program, version)
        staging = file.parent / f"staging-{program}"
        with storing(doing, self.root):
            staging.mkdir()
            file.chmod(0o755)
            _sync(file)
            facts = _facts(file, source)
            file.rename(staging / program)
            write_atomic(staging / "facts.json", facts.model_dump_json(indent=2).encode() + b"\n")
            folder.parent.mkdir(parents=True, exist_ok=True)
            if folder.exists():  # a broken one: moved away, and deleted with the work folder
                folder.rename(file.parent / f"broken-{program}")
            staging.rename(folder)
            sync_folder(folder.parent)
        return self.look(program, version)

    @asynccontextmanager
    async def work_folder(self, project: Project, version: Version, waiting: Callable[[], None]) -> AsyncIterator[Path]:
        """An empty folder on the cache's file system, for the one process that fetches ``project`` now.

        ``waiting`` is called when another process has it and must be waited for. Files of a killed process in the
        folder are removed; so is everything that is still in it at the end. Raises TimedOut after LOCK_DEADLINE,
        PreconditionFailed when the cache cannot be written.
        """
        doing = f"fetching {project} {version}"
        folder = self.root / "upstream" / ".work" / f"{project}-{version}-{self.target}"
        with storing(doing, self.root):
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.parent.mkdir(parents=True, exist_ok=True)
            lock = AsyncFileLock(folder.with_name(f"{folder.name}.lock"))
            try:
                await lock.acquire(timeout=0)
            except Timeout:
                waiting()
                await _acquire(lock, doing)
        try:
            with storing(doing, self.root):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            await lock.release()

    def _folder(self, program: UpstreamProgram, version: Version) -> Path:
        return self.root / "upstream" / program / str(version) / str(self.target)


async def _acquire(lock: AsyncFileLock, doing: str) -> None:
    try:
        await lock.acquire(timeout=LOCK_DEADLINE)
    except Timeout as error:
        raise TimedOut(
            doing,
            f"another process has been doing so for {LOCK_DEADLINE:.0f} s",
            "end that process, then try again",
        ) from error


def _facts(file: Path, source: str) -> Facts:
    return Facts(source=source, sha256=_digest(file), size=file.stat().st_size)


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
