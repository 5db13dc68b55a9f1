"""The belongings of a plane, collected from the store for a backup."""

from __future__ import annotations

import contextlib

from quarterdeck.api.belongings import AddonManifests, PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.api.site import Site
from quarterdeck.backup.belongings import PlaneArchive
from quarterdeck.engine.workspace.belongings import of_plane
from quarterdeck.engine.workspace.site_use import sites_of
from quarterdeck.errors import Conflict, NotFound
from quarterdeck.stores.port import Store


async def archive_of(store: Store, plane: ControlPlane) -> bytes:
    """The belongings of a plane as they are stored now (see ``PlaneArchive``). They hold its secrets.

    Raises NotFound when the plane was deleted or has no keys yet, Conflict when another one has its name now, Corrupt
    when a part of it is missing: also while a process without the plane's lease changes it.
    """
    current = await store.get(ControlPlane, plane.name)
    if current.metadata.uid != plane.metadata.uid:
        seen = "it was deleted, and another one with its name was created since"
        raise Conflict(f"archiving the belongings of plane {plane.name}", seen, "run the command again")
    sites = []
    for name in sorted(sites_of(current)):
        with contextlib.suppress(NotFound):  # a site that was removed, of which something was left behind
            sites.append(await store.get(Site, name))
    archive = PlaneArchive(
        plane=current,
        secrets=await store.get(PlaneSecrets, plane.name),
        revisions=await of_plane(store, ReplicaRevision, plane.name),
        manifests=await of_plane(store, AddonManifests, plane.name),
        sites=tuple(sites),
    )
    return archive.to_bytes()
