"""What a Go build of each project needs: modules, packages, and the version stamps of the linker. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from quarterdeck.upstream.catalog import Program, Project, Version

_KUBERNETES = "k8s.io/kubernetes"
_COREDNS = "github.com/coredns/coredns"
_KWOK = "sigs.k8s.io/kwok"

_PACKAGES: Mapping[Program, tuple[str, str]] = {
    Program.KUBE_APISERVER: (_KUBERNETES, "/cmd/kube-apiserver"),
    Program.KUBE_CONTROLLER_MANAGER: (_KUBERNETES, "/cmd/kube-controller-manager"),
    Program.KUBE_SCHEDULER: (_KUBERNETES, "/cmd/kube-scheduler"),
    Program.KUBECTL: (_KUBERNETES, "/cmd/kubectl"),
    Program.ETCD: ("go.etcd.io/etcd/server/v3", ""),
    Program.ETCDCTL: ("go.etcd.io/etcd/etcdctl/v3", ""),
    Program.ETCDUTL: ("go.etcd.io/etcd/etcdutl/v3", ""),
    Program.COREDNS: (_COREDNS, ""),
    Program.KWOK: (_KWOK, "/cmd/kwok"),
    Program.KWOKCTL: (_KWOK, "/cmd/kwokctl"),
}


def module(program: Program) -> str:
    """The Go module that holds ``program``; not for Envoy (KeyError)."""
    return _PACKAGES[program][0]


def package(program: Program) -> str:
    """The import path of the main package of ``program``."""
    return "".join(_PACKAGES[program])


def executable(program: Program) -> str:
    """The name that ``go build`` gives to ``program``: the last part of its path that is no major version."""
    parts = [part for part in package(program).split("/") if not re.fullmatch(r"v\d+", part)]
    return parts[-1]


def build_module(project: Project, version: Version, programs: Sequence[Program], go_mod: str) -> str:
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
    """A go.sum of all lines of ``texts``; where two speak of one module, the first counts."""
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
    """``-ldflags``: no symbol tables, and the version stamped wherever Kubernetes' programs look for it.

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
