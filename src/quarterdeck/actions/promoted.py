"""What may have a plane's address on a machine, where that goes from machine to machine."""

from __future__ import annotations

from quarterdeck.actions.plane import Plane
from quarterdeck.components.traffic.keepalived import promoted_unit_name


async def forget_address(plane: Plane, site: str, machine: str, gone: str) -> None:
    """Nothing of it is left on a machine on which no replica is any more but the one that is ``gone``."""
    promoted = plane.resource.spec.endpoint.promoted
    others = (each for each in plane.memory.replicas if each.name != gone)
    if promoted and all((each.site, each.machine) != (site, machine) for each in others):
        await plane.check()
        await plane.site(site).remove_unit(machine, promoted_unit_name(plane.name))
