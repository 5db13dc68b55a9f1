"""The newest release of the minor version before the default one, of Kubernetes and of etcd: what planes are upgraded
from. ``python -m support.former_versions`` fetches or builds it, so that no test waits for that.
"""

from __future__ import annotations

import asyncio
import os

from quarterdeck.components.minors import minors_of
from quarterdeck.model.components import Component
from quarterdeck.upstream import Upstream, UpstreamProgram, Version, Versions


def former(component: Component) -> Version:
    """Of a program."""
    minors = minors_of(component)
    minor = sorted(minors)[-2]
    return Version(*minor, minors[minor].newest)


async def programs() -> None:
    """Have them in the cache."""
    versions = Versions(kubernetes=former(Component.APISERVER), etcd=former(Component.ETCD))
    wanted = (
        UpstreamProgram.KUBE_APISERVER,
        UpstreamProgram.KUBE_CONTROLLER_MANAGER,
        UpstreamProgram.KUBE_SCHEDULER,
        UpstreamProgram.ETCD,
        UpstreamProgram.ETCDUTL,
    )
    await Upstream.from_environment(os.environ).ensure(wanted, versions)


if __name__ == "__main__":
    asyncio.run(programs())
