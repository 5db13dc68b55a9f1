"""Encrypted objects are stored again with the key that encrypts now, before a former key is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from quarterdeck.actions.addresses import apiserver_address, client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.census.census import encrypted_by
from quarterdeck.components.stored_keys import PREFIX, ResourcePath
from quarterdeck.errors import Unavailable
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.world import World

#: Where kube-apiserver stores what it encrypts.
_ENCRYPTED = f"{PREFIX}/secrets/"
#: Requests that are under way at a time, and seconds after which the driver looks at the plane again.
_AT_ONCE = 16
_PATIENCE = 20.0


async def write_again(plane: Plane, world: World, former: Collection[str], doing: str) -> None:
    """Return once no object is stored with one of these keys, by name. All apiservers encrypt with another one.

    What was written again stays so. Raises Unavailable where an apiserver or etcd does not answer, and where it takes
    long: then it goes on the next time.
    """
    urls = client_urls(plane, Cluster.MAIN)
    objects = await encrypted_by(plane.etcd, urls, _ENCRYPTED, former)
    until = asyncio.get_running_loop().time() + _PATIENCE
    for begin in range(0, len(objects), _AT_ONCE):
        if asyncio.get_running_loop().time() > until:
            seen = f"{begin:,} of {len(objects):,} objects are written with the present key"
            raise Unavailable(doing, seen, "it goes on")
        await plane.check()
        await _written(plane, world, objects[begin : begin + _AT_ONCE], doing)


async def _written(plane: Plane, world: World, objects: Sequence[ResourcePath], doing: str) -> None:
    ready = next((fact.name for fact in world.replicas if fact.ready), None)
    if ready is None:
        raise Unavailable(doing, "no apiserver is ready", f"see 'status {plane.name}'")
    apiserver = apiserver_address(plane.memory.replica(ready))
    paths = (f"/api/v1/namespaces/{each.namespace}/{each.resource}/{each.name}" for each in objects)
    await asyncio.gather(*(plane.kube.rewrite(apiserver, each) for each in paths))
