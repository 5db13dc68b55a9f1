"""An apiserver to ask: any that is ready will do."""

from __future__ import annotations

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.errors import Unavailable
from quarterdeck.kube.address import Address

#: Seconds: who asks once is better served late than not, on a busy host.
_PATIENCE = 5.0


async def ready_apiserver(plane: Plane, doing: str) -> Address:
    """One that is ready. Raises Unavailable, with what was being done."""
    for record in plane.memory.replicas:
        address = apiserver_address(record)
        if (await plane.kube.readyz(address, founded=True, within=_PATIENCE)).ok:
            return address
    raise Unavailable(doing, "no apiserver is ready", f"see 'status {plane.name}'")
