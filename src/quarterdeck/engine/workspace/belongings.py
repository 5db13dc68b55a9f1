"""What the store has of a plane besides its resource: its keys, its revisions and manifests, its drills."""

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
from quarterdeck.pki.issuance import create_plane_secrets, with_manager
from quarterdeck.stores.port import Lease, Store, amend


async def secrets_of(store: Store, plane: ControlPlane) -> SharedSecrets:
    """The plane's secrets, made the first time; never those of another plane that had its name before.

    Raises NotFound when the plane was deleted meanwhile, Conflict when there is another one of its name by now,
    Corrupt when they are gone although the plane has replicas: nothing that runs would trust new ones.
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
                    SecretsResource(metadata=Metadata(name=name), plane_uid=uid, data=_new_secrets(name))
                )
            else:
                await store.update(stored.model_copy(update={"plane_uid": uid, "data": _new_secrets(name)}))
        except (Conflict, NotFound):
            continue  # somebody else was faster: what they wrote counts


async def renew_manager(store: Store, plane: ControlPlane, *, lease: Lease | None = None) -> None:
    """Have quarterdeck's own certificates issued anew, if all of the plane's are wanted anew since they were."""
    generation = plane.spec.certificates.generation
    if generation <= (await secrets_of(store, plane)).generation():
        return

    def renewed(stored: SecretsResource) -> SecretsResource:
        secrets = with_manager(decode(stored.data.get_secret_value()), generation, datetime.now(UTC))
        return stored.model_copy(update={"data": SecretStr(encode(secrets))})

    await amend(store, SecretsResource, plane.name, renewed, lease=lease)


async def _stored(store: Store, name: str) -> SecretsResource | None:
    try:
        return await store.get(SecretsResource, name)
    except NotFound:
        return None


async def _require_current(store: Store, plane: ControlPlane) -> ControlPlane:
    name = plane.metadata.name
    current = await store.get(ControlPlane, name)
    if current.metadata.uid != plane.metadata.uid:
        seen = "it was deleted, and another one of that name was created since"
        raise Conflict(f"reading the secrets of plane {name}", seen, "run the command again")
    return current


async def make_room(store: Store, name: str) -> None:
    """Drop what a plane of that name left, for a new one. There must be none, and nobody else creating one."""
    await store.delete_together((SecretsResource, name), *await _made_for(store, name))


async def drop(store: Store, plane: ControlPlane, *, lease: Lease | None = None) -> None:
    """Delete all that is stored of a plane, whose driver's work is done."""
    name = plane.metadata.name
    await store.delete_together(
        (ControlPlane, name),
        (SecretsResource, name),
        *await _made_for(store, name),
        finalizer=PLANE_FINALIZER,
        lease=lease,
    )


async def _made_for(store: Store, name: str) -> list[tuple[type[Resource], str]]:
    """What was made from the spec of the plane of that name, and what it was put to."""
    kinds: tuple[type[Resource], ...] = (ReplicaRevision, AddonManifests)
    made = [(kind, each.name) for kind in kinds for each in await of_plane(store, kind, name)]
    return [*made, *((Drill, each.name) for each in await drills_of(store, name))]


async def drills_of(store: Store, name: str) -> tuple[Drill, ...]:
    """The drills of a plane that are kept, the oldest first."""
    found = (each for each in await store.list(Drill) if each.spec.plane == name)
    return tuple(sorted(found, key=lambda each: each.spec.number))


def _require_new(plane: ControlPlane) -> None:
    """Raises Corrupt for a plane that has replicas, unless it is being deleted: then nothing is made by new secrets."""
    memory = plane.status.memory
    if (memory.replicas or memory.created) and plane.metadata.deletion_timestamp is None:
        raise Corrupt(
            f"reading the secrets of plane {plane.metadata.name}",
            "they are not in the store, and what runs of the plane trusts no others",
            "put back a copy of the store that has them",
        )


def _new_secrets(name: str) -> SecretStr:
    return SecretStr(encode(create_plane_secrets(name, datetime.now(UTC))))


# What was made from a plane's spec and is named by its content: its revisions, the manifests of its add-ons.

#: So many of a kind are kept that nobody names any more: who goes back finds them.
_FORMER = 3


async def keep(store: Store, made: Resource, *, lease: Lease | None = None) -> None:
    """Store it, if it is not there yet: those of one name have one content."""
    with contextlib.suppress(Conflict):
        await store.create(made, lease=lease)


async def of_plane(store: Store, kind: type[R], name: str) -> tuple[R, ...]:
    """All of a kind that are stored of the plane of that name, the newest first."""
    found = [
        each
        for each in await store.list(kind)
        if any((owner.kind, owner.name) == ("ControlPlane", name) for owner in each.metadata.owner_references)
    ]
    return tuple(sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.name), reverse=True))


async def forget_unused(
    store: Store, kind: type[Resource], plane: str, used: Collection[str], *, lease: Lease | None = None
) -> None:
    """Delete those of a kind that nobody names (``used``: that somebody does), but for the last few."""
    unused = [each for each in await of_plane(store, kind, plane) if each.name not in used]
    gone = tuple((kind, each.name) for each in unused[_FORMER:])
    if gone:
        await store.delete_together(*gone, lease=lease)
