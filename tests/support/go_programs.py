"""Go programs that tests need besides quarterdeck's own: built once, and kept beside the upstream programs."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import AsyncFileLock

from quarterdeck.progress import SilentProgress
from quarterdeck.runner import run, start
from quarterdeck.upstream.build import GoTools

_FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s -w")
_DEADLINE = 1_200.0
_GO = (1, 25, 0)


def cache_folder() -> Path:
    """Where they are kept."""
    return Path(os.environ.get("QUARTERDECK_CACHE") or Path.home() / ".cache" / "quarterdeck")


async def built(
    name: str, module: Mapping[str, bytes], packages: Sequence[str], *flags: str, cgo: bool = False
) -> Path:
    """The folder of the programs of ``packages``, built in a module of those files, whoever comes first. ``name`` is
    another one for each version. ``cgo``: parts of them are in C.
    """
    cache = cache_folder()
    folder = cache / "tests" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with AsyncFileLock(f"{folder}.lock"):
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as work:
                await _build(cache, Path(work), module, (*_FLAGS, *flags), packages, cgo=cgo)
                (Path(work) / "out").rename(folder)
    return folder


async def _build(
    cache: Path, work: Path, module: Mapping[str, bytes], flags: Sequence[str], packages: Sequence[str], *, cgo: bool
) -> None:
    go = await GoTools(cache, os.environ).at_least(_GO, work, SilentProgress())
    for name, content in module.items():
        (work / name).write_bytes(content)
    (work / "out").mkdir()
    environment = {**go_environment(cache), "CGO_ENABLED": str(int(cgo))}
    argv = [str(go), "build", *flags, "-o", f"{work / 'out'}/", *packages]
    done = await run(argv, doing="building it", deadline=_DEADLINE, by=start(folder=work, environment=environment))
    assert done.code == 0, done.errors[-2_000:]


async def module_file(module: str, version: str, name: str) -> bytes:
    """A file of a published module: its go.mod, or its go.sum."""
    cache = cache_folder()
    with tempfile.TemporaryDirectory() as work:
        go = await GoTools(cache, os.environ).at_least(_GO, Path(work), SilentProgress())
        argv = [str(go), "mod", "download", "-json", f"{module}@{version}"]
        by = start(folder=Path(work), environment=go_environment(cache))
        done = await run(argv, doing="building it", deadline=_DEADLINE, by=by)
    assert done.code == 0, done.errors[-2_000:] or done.output[-2_000:]
    return Path(json.loads(done.output)["Dir"], name).read_bytes()


def go_environment(cache: Path) -> dict[str, str]:
    """What Go is run with: its caches are the project's."""
    return {
        **os.environ,
        "GOCACHE": str(cache / "go" / "build"),
        "GOFLAGS": "-modcacherw",
        "GOMODCACHE": str(cache / "go" / "mod"),
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
