"""The locks of sets of controllers: who may hold them."""

from __future__ import annotations

from quarterdeck.actions.addons import Addons
from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.addons.content import Content
from quarterdeck.addons.locks import for_locks
from quarterdeck.components.controller.sets import locks
from quarterdeck.kube.address import Address
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica


def kept_for_locks(plane: Plane) -> Content | None:
    """What kube-controller-managers of any revision that replicas have, or are to have, may do for the sake of sets,
    which is an add-on of quarterdeck's own; None where they have no locks of sets.
    """
    every = plane.revisions.templates.values()
    wanted = sorted({lock for each in every for lock in locks(each, Component.CONTROLLER_MANAGER)})
    return for_locks(tuple(wanted)) if wanted else None


async def allow_locks(plane: Plane, record: Replica, component: Component) -> None:
    """Have a kube-controller-manager be let hold its sets' locks before it starts: what it may not do it tries again
    and again, and nobody runs the set meanwhile. Raises Unavailable, and what applying an add-on does.
    """
    kept = kept_for_locks(plane)
    if component != Component.CONTROLLER_MANAGER or kept is None or not locks(plane.template_of(record), component):
        return
    apiserver = apiserver_address(record)
    if not await _are_there(plane, apiserver, kept):
        await (await Addons.seen(plane, apiserver, kept.objects)).apply(kept, kept)


async def _are_there(plane: Plane, apiserver: Address, kept: Content) -> bool:
    """Whether a role and its binding say what is wanted: nobody waits to see it written once more."""
    for each in kept.objects:
        where = f"namespaces/{each.ref.namespace}/{each.ref.kind.kind.lower()}s/{each.ref.name}"
        there = await plane.kube.read(apiserver, f"/apis/{each.api_version}/{where}")
        parts = there if isinstance(there, dict) else {}
        if any(parts.get(part) != each.manifest.get(part) for part in ("rules", "subjects")):
            return False
    return True
