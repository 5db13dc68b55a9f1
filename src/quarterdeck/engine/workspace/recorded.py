"""Planes and operations as the store has them. Nothing here loads a driver, so that commands which only read start
quickly.
"""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Isolation, Site
from quarterdeck.engine.workspace import leases
from quarterdeck.errors import Gone, NotFound
from quarterdeck.stores.port import Store


async def existing(store: Store, name: str) -> ControlPlane:
    """A plane; raises Gone that names the existing planes."""
    try:
        return await store.get(ControlPlane, name)
    except NotFound:
        known = ", ".join(each.metadata.name for each in await store.list(ControlPlane))
        there = f"planes: {known}" if known else "there are no planes"
        raise Gone("", f'plane "{name}" not found ({there})') from None


async def operations_of(store: Store, plane: str) -> tuple[Operation, ...]:
    """All operations of a plane, the oldest first."""
    found = [each for each in await store.list(Operation) if each.spec.plane == plane]
    return tuple(
        sorted(found, key=lambda each: (each.spec.number, str(each.metadata.creation_timestamp), each.metadata.name))
    )


async def current(store: Store, plane: str) -> Operation | None:
    """The operation in progress, if there is one: the last one, whose goal is that of the spec, unless it was reached.

    A failed one, or one whose driver died, is in progress as well: the next driver continues it.
    """
    last = (await operations_of(store, plane))[-1:]
    return next((each for each in last if not each.status.phase.over), None)


async def network_of(store: Store, plane: ControlPlane) -> Isolation:
    """The kind of network of a plane. A plane whose site is gone is managed from the host's own."""
    try:
        return (await store.get(Site, plane.spec.placement.site)).spec.network
    except NotFound:
        return Isolation.LOOPBACK


async def manager_of(store: Store, name: str) -> str:
    """The manager of the planes on a plane's network, in words; "" if there is none."""
    try:
        network = await network_of(store, await existing(store, name))
    except NotFound:
        return ""
    held = await store.lease(leases.manager_lease(network))
    return held.holder if held is not None else ""
