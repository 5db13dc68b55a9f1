"""Revisions of planes: made from what the user declares, once, when it is asked for; looked up ever after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.revision import ReplicaRevision, ReplicaTemplate, revision_of
from quarterdeck.components.controller.sets import apart, way
from quarterdeck.components.template import Revisions
from quarterdeck.engine.workspace import made
from quarterdeck.engine.workspace.places import site_as_known
from quarterdeck.engine.workspace.templates import audit_wanted, declared, template_of
from quarterdeck.errors import Conflict, NotFound
from quarterdeck.stores.amend import amend
from quarterdeck.stores.port import Lease, Store


async def wanted(store: Store, plane: ControlPlane) -> ReplicaRevision:
    """The revision that a stored plane asks for with its spec of now, or with a changed one; not stored yet. Raises
    InvalidInput as ``wanted_template`` does.
    """
    return revision_of(plane, await wanted_template(store, plane))


async def wanted_template(store: Store, plane: ControlPlane) -> ReplicaTemplate:
    """What replicas of a plane, which need not be stored yet, are to be.

    What the files that the spec names said when the plane's revision was made counts, so that a move takes up nothing
    that nobody asked for. A plane that names no revision has them read. Raises InvalidInput for files that are none.
    """
    before = await _stored(store, plane.status.revision)
    audit = audit_wanted(plane) if before is None else before.spec.audit
    return template_of(plane, await site_as_known(store, plane), audit)


async def between(store: Store, plane: ControlPlane, goal: ReplicaRevision) -> tuple[ReplicaRevision, ...]:
    """What replicas have to be before they may be what a ``goal`` says, the nearest to it last: nothing, where that may
    run beside all that they may be by now. ``plane`` is as it is stored; nothing else is stored yet.

    A plane that is on its way may have gone further since it was read: then it goes back the way that it came.
    """
    status = plane.status
    led = (*status.via, status.revision)
    used = {each.revision for each in status.memory.replicas}
    came = (*sorted(used.difference(led)), *led) if used - {status.revision} else (status.revision,)
    line = [found for each in reversed(came) if (found := await _stored(store, each)) is not None]
    if not any(apart(each.spec, goal.spec) for each in line):
        return ()
    further = [revision_of(plane, each) for each in way(line[-1].spec, goal.spec)]
    back: Sequence[ReplicaRevision] = line if len(line) > 1 else ()
    through = {each.name: each for each in (*back, *further) if each.name != goal.name}
    return tuple(through.values())


async def established(store: Store, plane: ControlPlane, *, lease: Lease | None = None) -> ControlPlane:
    """The plane, with its revision stored and named: a process that created a plane may have died before it did so.

    Raises InvalidInput when a file is to be read that is none, Conflict when the plane was changed meanwhile.
    """
    if await _stored(store, plane.status.revision) is not None:
        return plane
    revision = await wanted(store, plane)
    await made.keep(store, revision, lease=lease)

    def named(seen: ControlPlane) -> ControlPlane:
        if seen.spec == plane.spec and seen.status.revision and not plane.status.revision:
            return seen  # another process has done the same meanwhile
        if (seen.spec, seen.status.revision) != (plane.spec, plane.status.revision):
            raise Conflict(f"making a revision of plane {plane.name}", "it was changed meanwhile", "look again")
        return seen.with_status(revision=revision.name)

    return await amend(store, ControlPlane, plane.name, named, lease=lease)


async def known(store: Store, plane: ControlPlane, *, guess: bool) -> Revisions:
    """The revision that a plane wants, and those that its replicas run. ``guess``, for those who only look: what is not
    stored is as the plane's spec says now.
    """
    names = {plane.status.revision, *plane.status.via, *(each.revision for each in plane.status.memory.replicas)}
    found = {name: await _stored(store, name) for name in names}
    templates = {name: each.spec for name, each in found.items() if each is not None}
    if guess:
        site = await site_as_known(store, plane)
        templates |= {name: declared(plane, site) for name in names - templates.keys()}
    via = tuple(each for each in plane.status.via if each in templates)
    return Revisions(goal=plane.status.revision, via=via, templates=templates)


async def forget_unused(store: Store, plane: ControlPlane, named: Iterable[str], *, lease: Lease | None = None) -> None:
    """Delete the revisions of a plane that nobody names, but for the last few. ``named``: what others than the plane
    and its replicas name.
    """
    status = plane.status
    used = {status.revision, *status.via, *(each.revision for each in status.memory.replicas), *named}
    await made.forget_unused(store, ReplicaRevision, plane.name, used, lease=lease)


async def _stored(store: Store, name: str) -> ReplicaRevision | None:
    if not name:
        return None
    try:
        return await store.get(ReplicaRevision, name)
    except NotFound:
        return None
