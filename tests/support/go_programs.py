"""Go programs that tests need besides quarterdeck's own: built once, and kept beside the upstream programs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import AsyncFileLock

from quarterdeck.upstream.gotool import GoTools
from quarterdeck.upstream.process import run
from quarterdeck.upstream.progress import Silent

_FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w")
_DEADLINE = 1_200.0
_GO = (1, 25, 0)


async def built(name: str, module: Mapping[str, bytes], packages: Sequence[str], *flags: str) -> Path:
    """The folder of the programs of ``packages``, built in a module of those files, whoever comes first. ``name`` is
    another one for each version.
    """
    cache = Path(os.environ.get("QUARTERDECK_CACHE") or Path.home() / ".cache" / "quarterdeck")
    folder = cache / "tests" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with AsyncFileLock(f"{folder}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as work:
                await _build(cache, Path(work), module, (*_FLAGS, *flags), packages)
                (Path(work) / "out").rename(folder)
    return folder


async def _build(
    cache: Path, work: Path, module: Mapping[str, bytes], flags: Sequence[str], packages: Sequence[str]
) -> None:
    go = await GoTools(cache, os.environ).at_least(_GO, work, Silent())
    for name, content in module.items():
        (work / name).write_bytes(content)
    (work / "out").mkdir()
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOCACHE": str(cache / "go" / "build"),
        "GOFLAGS": "-modcacherw",
        "GOMODCACHE": str(cache / "go" / "mod"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    argv = [str(go), "build", *flags, "-o", f"{work / 'out'}/", *packages]
    done = await run(argv, folder=work, environment=environment, deadline=_DEADLINE)
    assert done.code == 0, done.errors[-2_000:]
