"""The source that always works where Go modules can be had: a build of the project's published modules."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.files import write_atomic
from quarterdeck.progress import Progress
from quarterdeck.runner import Ended, run, start
from quarterdeck.upstream.catalog import Program
from quarterdeck.upstream.gomod import build_module, executable, known_sums, linker_flags, module, package
from quarterdeck.upstream.gotool import OLDEST, GoTools, parse_go
from quarterdeck.upstream.pins import MODULES
from quarterdeck.upstream.sources import CannotGive, Order

MODULES_DEADLINE = 1800.0
"""Seconds to fetch modules: several hundred megabytes for Kubernetes."""
BUILD_DEADLINE = 3600.0
"""Seconds to compile: 200 on two fast cores for Kubernetes."""
_LAST_LINES = 12
_ABSENT = ("404 Not Found", "410 Gone", "unknown revision", "not available", "no matching versions")


@dataclass(frozen=True, slots=True)
class _Published:
    """What a module says of what it needs: its go.mod, and its go.sum ("" if it has none)."""

    go_mod: str
    go_sum: str


class GoBuild:
    """Builds with Go, whose caches live in the cache folder."""

    name = "build"

    def __init__(self, cache: Path, environment: Mapping[str, str], *, pins: str = MODULES) -> None:
        """``pins``: lines of a go.sum that every build begins with."""
        self._cache = cache
        self._pins = pins
        self._compiling = asyncio.Lock()  # it uses all cores; modules are fetched beside it
        self._tools = GoTools(cache, environment)
        go = cache / "go"
        self._environment = {
            **environment,
            "CGO_ENABLED": "0",
            "GO111MODULE": "on",
            "GOCACHE": str(go / "build"),
            "GOFLAGS": "-modcacherw",  # so that the cache folder can be deleted without ado
            "GOMODCACHE": str(go / "mod"),
            "GOPATH": str(go / "path"),
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }
        self._environment.pop("GOROOT", None)  # each go finds its own

    async def fetch(self, order: Order, progress: Progress) -> Mapping[Program, Path]:
        """See Source. All programs of the order are built by one ``go build``."""
        task = f"building {order.project} {order.version} ({', '.join(order.programs)})"
        progress.start(task, None)
        outcome = "failed"
        try:
            built = await self._build(order, progress)
            outcome = "done"
        finally:
            progress.finish(task, outcome)
        return built

    async def _build(self, order: Order, progress: Progress) -> Mapping[Program, Path]:
        folder = order.folder
        go = await self._tools.at_least(OLDEST, folder, progress)
        names = sorted({module(program) for program in order.programs})
        published = [await self._download(go, order, name) for name in names]
        go = await self._tools.at_least(max(_needed(each.go_mod) for each in published), folder, progress)
        text = build_module(order.project, order.version, order.programs, published[0].go_mod)
        write_atomic(folder / "go.mod", text.encode())
        # Go checks every module against these, and asks its checksum database only for those that are not there.
        sums = known_sums(self._pins, *(each.go_sum for each in published))
        write_atomic(folder / "go.sum", sums.encode())
        if not all(f"{name} {order.version.tag} h1:" in self._pins for name in names):
            progress.note(
                f"{order.project} {order.version}: no digest is pinned for it; Go's checksum database decides"
            )
        tidied = await self._go([go, "mod", "tidy"], order, MODULES_DEADLINE)
        self._demand(tidied, "resolving its modules", order, progress)
        out = folder / "out"
        # No debug information is kept, so none is made: a fifth less work.
        flags = [
            "-trimpath",
            "-gcflags=all=-dwarf=false",
            "-ldflags",
            linker_flags(order.project, order.version),
            "-o",
            f"{out}/",
        ]
        packages = [package(program) for program in order.programs]
        out.mkdir()
        async with self._compiling:
            compiled = await self._go([go, "build", *flags, *packages], order, BUILD_DEADLINE)
        self._demand(compiled, "compiling it", order, progress)
        return {program: out / executable(program) for program in order.programs}

    async def _download(self, go: Path, order: Order, name: str) -> _Published:
        """Fetch one of the project's main modules. Raises CannotGive."""
        wanted = f"{name}@{order.version.tag}"
        result = await self._go([go, "mod", "download", "-json", wanted], order, MODULES_DEADLINE)
        answer = json.loads(result.output or "{}")
        # A go that is too old for the module says so in Error, but has its go.mod.
        if isinstance(path := answer.get("GoMod"), str):
            return _Published(Path(path).read_text(encoding="utf-8"), _go_sum(answer.get("Dir")))
        why = str(answer.get("Error") or result.errors).strip().replace("\n\t", " ")
        _check_fatal(why, self._cache)
        raise CannotGive(f"Go module {why or wanted}", absent=any(word in why for word in _ABSENT))

    async def _go(self, argv: Sequence[Path | str], order: Order, deadline: float) -> Ended:
        environment = {**self._environment, "GOOS": order.target.goos, "GOARCH": order.target.goarch}
        words, by = [str(word) for word in argv], start(folder=order.folder, environment=environment)
        return await run(words, doing=f"running {' '.join(words[:3])}", deadline=deadline, by=by)

    def _demand(self, outcome: Ended, step: str, order: Order, progress: Progress) -> None:
        """Raise CannotGive, and show a person the last lines, unless ``outcome`` is good."""
        if outcome.code == 0:
            return
        _check_fatal(outcome.errors, self._cache)
        lines = [line for line in outcome.errors.splitlines() if not line.startswith("go: downloading ")]
        for line in lines[-_LAST_LINES:]:
            progress.note(f"  {line}")
        last = lines[-1].strip() if lines else f"exit code {outcome.code}"
        raise CannotGive(
            f"building {order.project} {order.version} from source: {step} failed ({last})",
            absent=any(word in outcome.errors for word in _ABSENT),
        )


def _go_sum(folder: object) -> str:
    path = Path(folder) / "go.sum" if isinstance(folder, str) and folder else None
    return path.read_text(encoding="utf-8") if path is not None and path.exists() else ""


def _needed(go_mod: str) -> tuple[int, int, int]:
    """The ``go`` line of a go.mod."""
    return next((parse_go(line) for line in go_mod.splitlines() if line.startswith("go ")), (0, 0, 0))


def _check_fatal(errors: str, cache: Path) -> None:
    """Raise for what no other try would change: changed modules (go checks them all), and a full disk."""
    if "checksum mismatch" in errors or "SECURITY ERROR" in errors:
        raise Corrupt(
            "building from source",
            "a Go module is not what its author published (checksum mismatch)",
            "do not trust this network or module proxy",
        )
    if "no space left on device" in errors or "disk quota exceeded" in errors:
        raise PreconditionFailed(
            "building from source",
            f"no room in {cache} or the folder for temporary files",
            "free some space, or set QUARTERDECK_CACHE to a folder on a larger disk",
        )
