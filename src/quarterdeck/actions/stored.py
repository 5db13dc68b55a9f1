"""What etcd stores is checked before programs of an older minor version run: they must be able to read all of it."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.handlers import Detail, Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.census.census import census
from quarterdeck.census.result import Undecodable, lost
from quarterdeck.components.minors import Minor, dotted
from quarterdeck.components.upstream_versions import minor
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.steps.stored import CheckStored
from quarterdeck.model.world import World

#: How many types are named in an error.
_SHOWN = 5


async def check_stored(plane: Plane, step: CheckStored, _: World) -> Detail:
    """Read the type of every stored value, in all clusters. Raises PreconditionFailed where programs of the revision
    cannot read what the present ones can, or where that is unknown; Unavailable where etcd does not answer.
    """
    version = _minor(plane, step.revision)
    now = max(_minor(plane, record.revision) for record in plane.memory.replicas)
    counted = 0
    for cluster in plane.memory.clusters:
        found = await census(plane.etcd, client_urls(plane, cluster), plane.secrets.encryption_keys)
        if (left := lost(found, version, now)).number:
            raise PreconditionFailed(
                f"going back to Kubernetes {dotted(version)}",
                f"stored objects that it cannot read: {left.number:,}; {'; '.join(_named(left))}",
                f"delete them, or store them in a version that {dotted(version)} has, or stay at the newer version:"
                f" see 'abort {plane.name}'",
            )
        counted += sum(each.number for each in found.types)
    return {"storedObjects": counted}


def _minor(plane: Plane, revision: str) -> Minor:
    return minor(plane.revisions.template(revision).kubernetes_version)


def _named(left: Undecodable) -> Iterator[str]:
    """The types that cannot be read, each with one of its objects."""
    named = [f"{each.number:,} {each.resource} as {each.type}, such as {each.examples[0]}" for each in left.types]
    named += [f"{each.number:,} that are {each.why}, such as {each.examples[0]}" for each in left.unreadable]
    yield from named[:_SHOWN]
    if len(named) > _SHOWN:
        yield f"and {len(named) - _SHOWN} more types"


HANDLERS: Handlers = {CheckStored: check_stored}
