"""All that a plane needs to come back besides etcd's data, as bytes and back.

An archive is JSON: a version, and resources as the store keeps them, with their secrets. So it is always encrypted
before it is stored (``sealing``). The same content gives the same bytes: a hash tells whether a new archive is due.
What changes by itself is left out for that: versions of resources, and conditions, which the next observation tells
again. Files of the user's that resources name by path (private keys of ssh, keys of DNS updates) are not part of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from quarterdeck.api.base import R, Resource
from quarterdeck.api.belongings import AddonManifests, PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.api.site import Site
from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.pki.codec import decode
from quarterdeck.stores.rules import decoded, encoded

_VERSION: Final = 1
_KINDS: Final[Mapping[str, type[Resource]]] = {
    each.__name__: each for each in (ControlPlane, PlaneSecrets, ReplicaRevision, AddonManifests, Site)
}
_READING: Final = "reading the belongings of a plane from a backup"
_ARCHIVING: Final = "archiving the belongings of a plane"
_NEXT: Final = {
    _READING: "restore an earlier moment, or from another backup",
    _ARCHIVING: "try again; if it stays so, restore quarterdeck's store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneArchive:
    """The resources of a plane. ``sites``: those that it uses, with the cordons of their machines. Controller sets and
    cordons of replicas are in the plane itself, and what users gave as files is in the revisions and manifests.
    """

    plane: ControlPlane
    secrets: PlaneSecrets
    revisions: tuple[ReplicaRevision, ...]
    manifests: tuple[AddonManifests, ...]
    sites: tuple[Site, ...]

    def to_bytes(self) -> bytes:
        """The archive as ``read_archive`` reads it. Raises Corrupt for one from which the plane would not come back."""
        _require_whole(self, _ARCHIVING)
        several: tuple[Sequence[Resource], ...] = (self.revisions, self.manifests, self.sites)
        ordered = (each for kind in several for each in sorted(kind, key=lambda each: each.name))
        resources = ",\n".join(encoded(_steady(each)) for each in (self.plane, self.secrets, *ordered))
        return f'{{"version":{_VERSION},"resources":[\n{resources}\n]}}\n'.encode()


def read_archive(content: bytes) -> PlaneArchive:
    """The archive in ``content``. Raises PreconditionFailed for one of a newer version, and Corrupt for one that is
    damaged or incomplete; neither shows any of it.
    """
    resources = [_resource(each) for each in _documents(content)]
    archive = PlaneArchive(
        plane=_only(ControlPlane, resources),
        secrets=_only(PlaneSecrets, resources),
        revisions=_all(ReplicaRevision, resources),
        manifests=_all(AddonManifests, resources),
        sites=_all(Site, resources),
    )
    _require_whole(archive, _READING)
    return archive


def _require_whole(archive: PlaneArchive, doing: str) -> None:
    """Raise Corrupt where something is missing that the plane needs, or that is another plane's."""
    name, uid, status = archive.plane.name, archive.plane.metadata.uid, archive.plane.status
    if uid is None or (archive.secrets.name, archive.secrets.plane_uid) != (name, uid):
        _refuse(doing, f"the keys in it are not those of plane {name}")
    try:
        decode(archive.secrets.data.get_secret_value())
    except Corrupt as error:
        _refuse(doing, f"the keys in it cannot be read: {error.seen}")
    needed = {status.revision, *status.via, *(each.revision for each in status.memory.replicas)} - {""}
    for what, names, found in (
        ("revision", needed, archive.revisions),
        ("add-on manifests", {status.addon_manifests} - {""}, archive.manifests),
        ("site", {archive.plane.spec.placement.site}, archive.sites),
    ):
        missing = names - {each.name for each in found}
        if missing:
            _refuse(doing, f"{what} {min(missing)} of plane {name} is missing")


def _steady(resource: Resource) -> Resource:
    """The resource without what changes by itself."""
    changes: dict[str, object] = {"metadata": resource.metadata.model_copy(update={"resource_version": None})}
    if isinstance(resource, ControlPlane):
        changes["status"] = resource.status.model_copy(update={"conditions": (), "backup": None})
    elif isinstance(resource, Site):
        changes["status"] = resource.status.model_copy(update={"conditions": ()})
    return resource.model_copy(update=changes)


def _documents(content: bytes) -> list[Any]:
    try:
        archive = json.loads(content)
    except (ValueError, RecursionError):  # the error itself would show some of it
        _refuse(_READING, "it is cut off or damaged")
    version, resources = (archive.get(key) if isinstance(archive, dict) else None for key in ("version", "resources"))
    if isinstance(version, int) and version > _VERSION:
        seen = f"it is of version {version}, and this quarterdeck reads version {_VERSION}"
        raise PreconditionFailed(_READING, seen, "use the quarterdeck version that wrote it")
    if version != _VERSION or not isinstance(resources, list):
        _refuse(_READING, "it is no archive of a plane")
    return resources


def _resource(document: Any) -> Resource:
    name = document.get("kind") if isinstance(document, dict) else None
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        _refuse(_READING, "it has a resource of a kind that is not a plane's")
    try:
        return decoded(kind, _name_of(document), json.dumps(document))
    except (Corrupt, RecursionError) as error:
        # What is wrong with a field may show its value.
        why = error.seen if isinstance(error, Corrupt) and kind not in (PlaneSecrets, AddonManifests) else "damaged"
        _refuse(_READING, f"{kind.__name__} {_name_of(document)!r} in it cannot be read ({why})")


def _name_of(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name"))[:_SHOWN] if isinstance(metadata, dict) else ""


def _all(kind: type[R], resources: Sequence[Resource]) -> tuple[R, ...]:
    return tuple(each for each in resources if isinstance(each, kind))


def _only(kind: type[R], resources: Sequence[Resource]) -> R:
    found = _all(kind, resources)
    if len(found) != 1:
        _refuse(_READING, f"it has {len(found)} resources of kind {kind.__name__} instead of one")
    return found[0]


#: Characters of a name that are shown.
_SHOWN: Final = 100


def _refuse(doing: str, seen: str) -> NoReturn:
    raise Corrupt(doing, seen, _NEXT[doing]) from None
