"""The stored belongings of a plane besides its resource: its keys, revisions, manifests and drills."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from datetime import UTC, datetime

from pydantic import SecretStr

from quarterdeck.api.base import Metadata, R, Resource
from quarterdeck.api.belongings import AddonManifests, Drill
from quarterdeck.api.belongings import PlaneSecrets as SecretsResource
from quarterdeck.api.controlplane import PLANE_FINALIZER, ControlPlane
from quarterdeck.api.revision import ReplicaRevision
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.errors import Conflict, Corrupt, NotFound
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.stores.port import Lease, Store


async def secrets_of(store: Store, plane: ControlPlane) -> SharedSecrets:
    """The plane's secrets, created the first time; never those of a previous plane with its name.

    Raises NotFound when the plane was deleted, Conflict when another one has its name now, Corrupt when they are gone
    although the plane has replicas: running programs would not trust new ones.
    """
    name, uid = plane.metadata.name, plane.metadata.uid
    while True:
        stored = await _stored(store, name)
        if stored is not None and stored.plane_uid == uid:
            return decode(stored.data.get_secret_value())
        _require_new(await _require_current(store, plane))
        try:
            if stored is None:
                await store.create(
                    SecretsResource(metadata=Metadata(name=name), plane_uid=uid, data=_new_secrets(plane))
                )
            else:
                await store.update(stored.model_copy(update={"plane_uid": uid, "data": _new_secrets(plane)}))
        except (Conflict, NotFound):
            continue  # another process was faster: its secrets count


async def bring(store: Store, name: str, uid: str, secrets: SharedSecrets) -> None:
    """Store the secrets of a plane that is about to be created with that uid: its first driver finds them. Raises
    Conflict where ``make_room`` was not called before.
    """
    data = SecretStr(encode(secrets))
    await store.create(SecretsResource(metadata=Metadata(name=name), plane_uid=uid, data=data))


async def _stored(store: Store, name: str) -> SecretsResource | None:
    try:
        return await store.get(SecretsResource, name)
    except NotFound:
        return None


async def _require_current(store: Store, plane: ControlPlane) -> ControlPlane:
    name = plane.metadata.name
    current = await store.get(ControlPlane, name)
    if current.metadata.uid != plane.metadata.uid:
        seen = "it was deleted, and another one with its name was created since"
        raise Conflict(f"reading the secrets of plane {name}", seen, "run the command again")
    return current


async def make_room(store: Store, name: str) -> None:
    """Delete leftovers of a former plane of that name. No such plane may exist or be created concurrently."""
    await store.delete_together((SecretsResource, name), *await _made_for(store, name))


async def drop(store: Store, plane: ControlPlane, *, lease: Lease | None = None) -> None:
    """Delete a plane and all its belongings, when its driver is done."""
    name = plane.metadata.name
    await store.delete_together(
        (ControlPlane, name),
        (SecretsResource, name),
        *await _made_for(store, name),
        finalizer=PLANE_FINALIZER,
        lease=lease,
    )


async def _made_for(store: Store, name: str) -> list[tuple[type[Resource], str]]:
    """The resources made from the spec of the plane of that name, and its drills."""
    kinds: tuple[type[Resource], ...] = (ReplicaRevision, AddonManifests)
    made = [(kind, each.name) for kind in kinds for each in await of_plane(store, kind, name)]
    return [*made, *((Drill, each.name) for each in await drills_of(store, name))]


async def drills_of(store: Store, name: str) -> tuple[Drill, ...]:
    """The stored drills of a plane, the oldest first."""
    found = (each for each in await store.list(Drill) if each.spec.plane == name)
    return tuple(sorted(found, key=lambda each: each.spec.number))


def _require_new(plane: ControlPlane) -> None:
    """Raises Corrupt for a plane that has replicas, unless it is being deleted: then new secrets do no harm."""
    memory = plane.status.memory
    if (memory.replicas or memory.created) and plane.metadata.deletion_timestamp is None:
        raise Corrupt(
            f"reading the secrets of plane {plane.metadata.name}",
            "they are not in the store, and running programs of the plane trust no others",
            "restore a backup of the store that has them",
        )


def _new_secrets(plane: ControlPlane) -> SecretStr:
    spec, now = plane.spec, datetime.now(UTC)
    return SecretStr(encode(create_plane_secrets(plane.name, now, certificates=spec.certificates, keys=spec.keys)))


# Resources named by their content: revisions, and the manifests of add-ons.

#: So many unused ones of a kind are kept, for going back.
_FORMER = 3


async def keep(store: Store, made: Resource, *, lease: Lease | None = None) -> None:
    """Store it, if it does not exist yet: the same name means the same content."""
    with contextlib.suppress(Conflict):
        await store.create(made, lease=lease)


async def of_plane(store: Store, kind: type[R], name: str) -> tuple[R, ...]:
    """All stored resources of a kind of the plane of that name, the newest first."""
    found = [
        each
        for each in await store.list(kind)
        if any((owner.kind, owner.name) == ("ControlPlane", name) for owner in each.metadata.owner_references)
    ]
    return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.name), reverse=True))


async def forget_unused(
    store: Store, kind: type[Resource], plane: str, used: Collection[str], *, lease: Lease | None = None
) -> None:
    """Delete unused resources of a kind, except the last few."""
    unused = [each for each in await of_plane(store, kind, plane) if each.name not in used]
    gone = tuple((kind, each.name) for each in unused[_FORMER:])
    if gone:
        await store.delete_together(*gone, lease=lease)
