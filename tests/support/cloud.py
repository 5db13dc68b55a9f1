"""A cloud controller manager whose cloud is upstream's fake one: built once of published Go modules, and kept beside
the upstream programs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from quarterdeck.upstream.build import linker_flags, tools_module
from quarterdeck.upstream.catalog import Project, Versions
from support.go_programs import built, module_file

_KUBERNETES = "k8s.io/kubernetes"
_SOURCE = Path(__file__).parent / "fake_ccm" / "main.go"

#: What it gives to each Service of type LoadBalancer, and to each node.
BALANCER, NODE = "192.0.2.10", "192.0.2.20"


async def fake_ccm() -> Path:
    """The program, of the version of Kubernetes that planes have by default."""
    version = Versions().kubernetes
    go_mod, go_sum = [await module_file(_KUBERNETES, version.tag, name) for name in ("go.mod", "go.sum")]
    module = tools_module(Project.KUBERNETES, version, [], [_KUBERNETES], go_mod.decode())
    files = {"go.mod": module.encode(), "go.sum": go_sum, "main.go": _SOURCE.read_bytes()}
    digest = hashlib.sha256(b"".join(files.values())).hexdigest()[:12]
    flags = ("-mod=mod", "-ldflags", linker_flags(Project.KUBERNETES, version))
    folder = await built(f"fake-ccm-{version}-{digest}", files, ["."], *flags)
    (program,) = folder.iterdir()
    return program
