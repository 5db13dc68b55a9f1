"""What nodes run, built once of published Go modules and kept beside the upstream programs; their DNS server is one of
those.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.upstream.build import linker_flags, tools_module
from quarterdeck.upstream.catalog import Project, UpstreamProgram, Versions
from quarterdeck.upstream.upstream import Upstream
from support.go_programs import built, module_file

_KUBERNETES = "k8s.io/kubernetes"
_CONTAINERD, _CONTAINERD_VERSION = "github.com/containerd/containerd/v2", "v2.4.2"
_RUNC, _RUNC_VERSION = "github.com/opencontainers/runc", "v1.5.2"
_CNI, _CNI_VERSION = "github.com/containernetworking/plugins", "v1.9.1"
#: Without what stores layers on file systems that nobody here has: some of it is in C.
_TAGS = "-tags=no_btrfs,no_devmapper,no_zfs,no_aufs"
_MOD = "-mod=mod"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Programs:
    """Folders of programs: ``kubernetes`` has kubelet and kubeadm, ``plain`` what runs runc, ``dns`` coredns."""

    kubernetes: Path
    containerd: Path
    runc: Path
    plain: Path
    cni: Path
    work: Path
    dns: Path

    @property
    def folders(self) -> Mapping[str, Path]:
        """All of them, by what they are called on a node."""
        return {name: getattr(self, name) for name in self.__slots__}


async def programs() -> Programs:
    """All of them; built the first time, whoever comes first."""
    return Programs(
        kubernetes=await _kubernetes(),
        containerd=await _published(
            _CONTAINERD, _CONTAINERD_VERSION, "1.25.0", ("containerd", "containerd-shim-runc-v2", "ctr"), "cmd", _TAGS
        ),
        runc=await _published(_RUNC, _RUNC_VERSION, "1.25.0", ("",), "", cgo=True),
        plain=await _own("runtime"),
        cni=await _published(_CNI, _CNI_VERSION, "1.24.2", ("main/ptp", "main/loopback", "ipam/host-local"), "plugins"),
        work=await _own("work"),
        dns=await _dns(),
    )


async def _dns() -> Path:
    found = await Upstream.from_environment(os.environ).ensure((UpstreamProgram.COREDNS,), Versions())
    return found[UpstreamProgram.COREDNS].parent


async def _kubernetes() -> Path:
    version = Versions().kubernetes
    packages = [f"{_KUBERNETES}/cmd/{name}" for name in ("kubelet", "kubeadm")]
    go_mod, go_sum = [await module_file(_KUBERNETES, version.tag, name) for name in ("go.mod", "go.sum")]
    module = tools_module(Project.KUBERNETES, version, packages, [_KUBERNETES], go_mod.decode())
    files = {"go.mod": module.encode(), "go.sum": go_sum}
    flags = (_MOD, "-ldflags", linker_flags(Project.KUBERNETES, version))
    return await built(f"kubelet-{version}", files, packages, *flags)


async def _published(
    module: str, version: str, go: str, names: tuple[str, ...], folder: str, *flags: str, cgo: bool = False
) -> Path:
    """The folder of a module's programs."""
    text = f"module quarterdeck.dev/tests\n\ngo {go}\n\nrequire {module} {version}\n"
    packages = ["/".join(each for each in (module, folder, name) if each) for name in names]
    short = module.removesuffix("/v2").rpartition("/")[2]
    return await built(f"{short}-{version}", {"go.mod": text.encode()}, packages, _MOD, *flags, cgo=cgo)


async def _own(name: str) -> Path:
    """One of the test's own, in the folder of that name."""
    source = (_HERE / name / "main.go").read_bytes()
    module = f"module quarterdeck.dev/tests/{name}\n\ngo 1.25.0\n".encode()
    digest = hashlib.sha256(module + source).hexdigest()[:12]
    return await built(f"{name}-{digest}", {"go.mod": module, "main.go": source}, ["."])
