"""What etcd stores is checked before programs of an older minor version, or without a former key, run: they must be
able to read all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.handlers import Detail, Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.rewriting import write_again
from quarterdeck.api.names import few
from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.census.census import census
from quarterdeck.census.result import Undecodable, lost
from quarterdeck.components.credentials import EncryptionKey, in_use
from quarterdeck.components.minors import Minor, dotted
from quarterdeck.components.transitions.keys import drops
from quarterdeck.components.upstream_versions import minor
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.steps.stored import CheckStored
from quarterdeck.model.world import World

#: How many types are named in an error.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class StoredObjects:
    """How many objects etcd stores, and how many of them a minor version cannot read, or may not be able to; ``named``:
    some of these, in words.
    """

    number: int
    lost: int
    named: str


async def stored_objects(plane: Plane, version: Minor, keys: Sequence[EncryptionKey]) -> StoredObjects:
    """What a minor version with these keys could read of all that etcd stores now, in all clusters. What the present
    programs cannot read either does not count. Raises Unavailable where etcd does not answer.
    """
    now = max(_minor(plane, record.revision) for record in plane.memory.replicas)
    number, unreadable, named = 0, 0, list[str]()
    for cluster in plane.memory.clusters:
        found = await census(plane.etcd, client_urls(plane, cluster), keys)
        left = lost(found, version, now)
        number, unreadable = number + found.number, unreadable + left.number
        named += _named(left)
    return StoredObjects(number, unreadable, few(named, _SHOWN, "; "))


async def check_stored(plane: Plane, step: CheckStored, world: World) -> Detail:
    """Before it is checked, what a key encrypted that the revision lacks is written again.

    Raises PreconditionFailed where programs of the revision cannot read what the present ones can, or where that is
    unknown; and what ``write_again`` and ``stored_objects`` do.
    """
    template, version = plane.revisions.template(step.revision), _minor(plane, step.revision)
    keys = in_use(plane.secrets.encryption_keys, template.key_use(KeyPurpose.ENCRYPTION))
    former = {each.name for each in plane.secrets.encryption_keys if each not in keys}
    dropping = any(drops(plane.template_of(record), template) for record in plane.memory.replicas)
    if dropping:
        await write_again(plane, world, former, f"giving up a key of plane {plane.name}")
    found = await stored_objects(plane, version, keys)
    if found.lost and dropping:
        raise PreconditionFailed(
            f"giving up a key of plane {plane.name}",
            f"stored objects that only this key may read: {found.lost:,}; {found.named}",
            f"see why they cannot be written again, or keep the key: 'abort {plane.name}'",
        )
    if found.lost:
        raise PreconditionFailed(
            f"going back to Kubernetes {dotted(version)}",
            f"stored objects that it cannot read: {found.lost:,}; {found.named}",
            f"delete them, or store them in a version that {dotted(version)} has, or stay at the newer version:"
            f" see 'abort {plane.name}'",
        )
    return {"storedObjects": found.number}


def _minor(plane: Plane, revision: str) -> Minor:
    return minor(plane.revisions.template(revision).kubernetes_version)


def _named(left: Undecodable) -> Iterator[str]:
    """The types that cannot be read, each with one of its objects."""
    for each in left.types:
        yield f"{each.number:,} {each.resource} as {each.type}, such as {each.examples[0]}"
    for value in left.unreadable:
        yield f"{value.number:,} that are {value.why}, such as {value.examples[0]}"


HANDLERS: Handlers = {CheckStored: check_stored}
