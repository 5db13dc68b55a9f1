"""The binding of a plane's administrators: made once, so that a person can take it away."""

from __future__ import annotations

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import write_status
from quarterdeck.addons.applyset import MANAGER, NAMESPACE
from quarterdeck.addons.objects import Manifest
from quarterdeck.addons.rbac import ADMINISTRATORS, RBAC, for_administrators
from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address, ApiResource, Refused

_BINDINGS = ApiResource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
_CONFIG_MAPS = ApiResource("", "v1", "ConfigMap", "configmaps", namespaced=True)
#: The record that the binding was made. It is in the plane, so that each backup has both or neither.
_RECORD = "quarterdeck-administrators"


async def bind_administrators(plane: Plane, apiserver: Address) -> None:
    """Make the binding of administrators, unless the plane's data says that it was made before: a binding that was
    deleted or changed since stays so. Written down for the present epoch, whose data this was read from.

    A plane that an earlier version made gets the binding like a new one. Raises Unavailable, also for a refusal.
    """
    epoch, record = plane.memory.epoch, _CONFIG_MAPS.path(NAMESPACE, _RECORD)
    binding = _BINDINGS.path("", ADMINISTRATORS)
    if await plane.kube.read(apiserver, record) is None:
        if await plane.kube.read(apiserver, binding) is None:
            await _make(plane, apiserver, binding, for_administrators())
        await _make(plane, apiserver, record, _record())
    async with plane.writing:
        await write_status(plane, administrators_epoch=epoch)


async def _make(plane: Plane, apiserver: Address, path: str, manifest: Manifest) -> None:
    await plane.check()
    try:
        await plane.kube.apply(apiserver, path, manifest, manager=MANAGER)
    except Refused as error:
        raise Unavailable(f"binding the group {ADMINISTRATORS} of plane {plane.name}", error.seen) from error


def _record() -> Manifest:
    words = f"quarterdeck made the ClusterRoleBinding {ADMINISTRATORS} once, and does not make it again"
    metadata: JsonValue = {"name": _RECORD, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"binding": words}}
