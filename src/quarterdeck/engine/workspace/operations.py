"""Operations of users: each changes a plane's spec, and records the change; the loop does the rest."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.addons.content import Content
from quarterdeck.api.base import Metadata, unknown_fields
from quarterdeck.api.controlplane import (
    PLANE_FINALIZER,
    ControlPlane,
    ControlPlaneStatus,
    Placement,
)
from quarterdeck.api.operation import (
    MOVING,
    Goal,
    Operation,
    OperationPhase,
    OperationSpec,
    OperationStatus,
    OperationType,
    operation_reason,
)
from quarterdeck.api.plane.epochs import MOST_WITH_STANDBY
from quarterdeck.api.plane.memory import MemoryStatus
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.ports import LAST_PLANE
from quarterdeck.components.transitions.upgrade_parts import stopped
from quarterdeck.engine.notices.conditions import unseen
from quarterdeck.engine.workspace import addons, belongings, recorded, revisions
from quarterdeck.engine.workspace.belongings import make_room
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict, Corrupt, InvalidInput, NotFound, PreconditionFailed
from quarterdeck.stores.lease import hold_lease
from quarterdeck.stores.port import Event, EventType, Store, amend


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """The requester of an operation, and its clock: ``now`` returns an aware datetime."""

    name: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


#: Fields about the present plane, which an abort does not restore.
_OF_NOW = ("paused", "paused_until", "cordoned_replicas", "new_epoch")
#: A fingerprint of the wanted state of a plane: equal as long as it does not change.
Wants = tuple[str | None, int, str, str]


def why_paused(plane: ControlPlane, now: datetime) -> str:
    """That the plane is paused, and until when; "" otherwise. A deletion is not paused."""
    spec = plane.spec
    if plane.metadata.deletion_timestamp is not None or not spec.paused_at(now):
        return ""
    if plane.status.awaits_data:
        return f"it was brought back from a backup, and 'restore {plane.name}' has not restored its data yet"
    return "it is paused" if spec.paused_until is None else f"it is paused until {spec.paused_until:%F %T %Z}"


def wants(plane: ControlPlane) -> Wants:
    """The fingerprint of a plane's wanted state: it changes with each change of that, and for each plane of its name;
    the content of files that the spec names is in the revision, or in the manifests.
    """
    status = plane.status
    return plane.metadata.uid, plane.metadata.generation, status.revision, status.addon_manifests


def require_replica(plane: ControlPlane, doing: str, replica: str) -> None:
    """Raise NotFound, which names the existing replicas, for a replica that a plane does not have."""
    there = [each.name for each in plane.status.memory.replicas]
    if replica not in there:
        what = f"{doing} replica {replica!r} of plane {plane.name}"
        raise NotFound(what, f"replicas: {', '.join(there) or 'none'}", f"see 'replica list {plane.name}'")


def goal_of(plane: ControlPlane) -> Goal:
    """The present goal of a plane, to which an abort goes back."""
    fields = type(plane.spec).model_fields
    spec = plane.spec.model_copy(update={name: fields[name].get_default() for name in _OF_NOW})
    return Goal(
        placement=spec.placement,
        replicas=spec.replicas,
        spec=spec,
        revision=plane.status.revision,
        addon_manifests=plane.status.addon_manifests,
    )


def reached(goal: Goal, plane: ControlPlane) -> bool:
    """Whether the plane's spec, revision and add-ons are those of a goal."""
    return goal == goal_of(plane)


def asks_for_addons(operation: Operation | None) -> bool:
    """Whether an operation changes the objects that a plane is to have: its add-ons, including quarterdeck's own. Each
    new plane has the binding of its administrators at least.
    """
    if operation is None or operation.spec.to is None:
        return False
    before, after = operation.spec.from_, operation.spec.to
    if before is None:
        return True
    return _own(before) != _own(after) or after.addon_manifests != before.addon_manifests


def _own(goal: Goal) -> tuple[object, ...]:
    """The inputs of quarterdeck's own add-ons."""
    return goal.spec.nodes, _in_a_cloud(goal), goal.spec.controller_sets


def _in_a_cloud(goal: Goal) -> bool:
    return goal.spec.cloud_controller_manager is not None


def back(plane: ControlPlane, goal: Goal) -> ControlPlane:
    """The plane with a goal, but with its present pause, cordoned replicas, and consent to a new epoch. No part of an
    upgrade follows by itself any more.
    """
    now = plane.spec
    spec = stopped(goal.spec.model_copy(update={name: getattr(now, name) for name in _OF_NOW}))
    wanted = plane.with_status(revision=goal.revision, addon_manifests=goal.addon_manifests)
    return wanted.model_copy(update={"spec": spec})


async def require_new(store: Store, name: str) -> None:
    """Raise Conflict if a plane has that name, also one that is being deleted."""
    if name in {each.metadata.name for each in await store.list(ControlPlane)}:
        doing, todo = f"creating plane {name}", f"use 'apply' to change it, or 'status {name}'"
        raise Conflict(doing, "a plane with that name exists", todo)


async def create(
    home: Home,
    plane: ControlPlane,
    requester: Requester,
    contents: tuple[Content, ...] | None = None,
    *,
    secrets: SharedSecrets | None = None,
) -> Operation:
    """Store a new plane, with its own ports; ``contents``: its add-ons, if they were read already; ``secrets``: its
    keys, if it does not get new ones. Raises Conflict if a plane has that name, and errors of reading the add-ons.
    """
    name = plane.metadata.name
    contents = await addons.read(plane) if contents is None else contents
    # Two that are created at once must not get the same ports.
    async with hold_lease(home.store, "port-numbers", requester.name, wait=30.0):
        await require_new(home.store, name)
        number = await free_number(home.store, name)
        await make_room(home.store, name)
        uid = str(uuid.uuid4()) if secrets is not None else ""
        if secrets is not None:
            await belongings.bring(home.store, name, uid, secrets)
        given = plane.metadata
        metadata = Metadata(
            name=name, labels=given.labels, annotations=given.annotations, finalizers=(PLANE_FINALIZER,)
        )
        conditions = unseen(requester.now().timestamp())
        status = ControlPlaneStatus(port_offset=number, conditions=conditions, memory=MemoryStatus(proven=False))
        stored = await home.store.create(plane.model_copy(update={"metadata": metadata, "status": status}), uid=uid)
    stored = await revisions.established(home.store, stored)
    stored = await addons.established(home.store, stored, contents)
    return await _record(home.store, stored, OperationType.CREATE, requester, to=goal_of(stored))


async def free_number(store: Store, name: str) -> int:
    """The number that the next plane gets. Raises PreconditionFailed when there is none."""
    taken = {each.status.port_offset for each in await store.list(ControlPlane)}
    number = next((each for each in range(LAST_PLANE + 1) if each not in taken), None)
    if number is None:
        raise PreconditionFailed(f"creating plane {name}", f"{LAST_PLANE + 1} planes exist already", "delete one")
    return number


async def change(
    home: Home,
    plane: ControlPlane,
    kind: OperationType,
    requester: Requester,
    contents: tuple[Content, ...] | None = None,
) -> Operation:
    """Store a changed spec, and end the operation in progress: the new one continues from there. The new revision keeps
    the file contents of the revision that ``plane`` names (see ``revisions.wanted``), and so do its add-ons, unless
    ``contents`` has them.

    Raises Conflict if the plane was changed since it was read, InvalidInput for unreadable files, and what
    ``require_changeable`` does.
    """
    before, doing = await recorded.existing(home.store, plane.metadata.name), f"changing plane {plane.metadata.name}"
    require_known(before)
    if before.metadata.deletion_timestamp is not None:
        raise Conflict(doing, "it is being deleted", "wait until it is deleted")
    if kind not in {*MOVING, OperationType.ABORT}:
        await require_changeable(home.store, before)
    before = await revisions.established(home.store, before)
    revision = await revisions.wanted(home.store, plane)
    via = await revisions.between(home.store, before, revision)
    manifests = await addons.wanted(home.store, plane, contents)
    addons.require_possible(plane, await addons.before(home.store, before), addons.contents_of(manifests))
    for each in (*via, revision, *((manifests,) if manifests is not None else ())):
        await belongings.keep(home.store, each)

    def respecified(seen: ControlPlane) -> ControlPlane:
        # The status may have moved on, the spec must not have.
        if seen.metadata.generation != plane.metadata.generation:
            raise Conflict(doing, "it was changed concurrently", "check it, and try again")
        leads = tuple(each.name for each in via)
        named = seen.with_status(revision=revision.name, via=leads, addon_manifests=addons.named(manifests))
        return named.model_copy(update={"spec": plane.spec})

    stored = await amend(home.store, ControlPlane, plane.metadata.name, respecified)
    await supersede(home.store, plane.metadata.name, requester)
    return await _record(home.store, stored, kind, requester, came_from=goal_of(before), to=goal_of(stored))


def moved(plane: ControlPlane, placement: Placement, replicas: int | None) -> ControlPlane:
    """The plane with another placement or number of replicas. A standby at its new site moves to the former one. Raises
    InvalidInput for more replicas than a plane with a standby can have.
    """
    standby, count = plane.spec.standby, plane.spec.replicas if replicas is None else replicas
    if standby is not None and count > MOST_WITH_STANDBY:
        seen = f"a plane with a standby has at most {MOST_WITH_STANDBY}: etcd takes no more learners at once"
        raise InvalidInput(f"changing plane {plane.name} to {count} replicas", seen, "remove spec.standby first")
    if standby is not None and standby.site == placement.site:
        standby = standby.model_copy(update={"site": plane.spec.placement.site})
    return plane.with_spec(placement=placement, replicas=count, standby=standby)


async def delete(home: Home, name: str, requester: Requester) -> Operation:
    """Mark a plane for deletion; the loop deletes it. Raises Conflict while it moves."""
    await require_deletable(home.store, name)
    await home.store.delete(ControlPlane, name)
    plane = await recorded.existing(home.store, name)
    await supersede(home.store, name, requester)
    return await _record(home.store, plane, OperationType.DELETE, requester)


async def require_deletable(store: Store, name: str) -> ControlPlane:
    """The plane; raises Gone, and Conflict while it moves."""
    plane = await recorded.existing(store, name)
    running = await recorded.current(store, name)
    if running is not None and moves(running):
        raise busy(f"deleting plane {name}", running, "then delete")
    return plane


def require_known(plane: ControlPlane) -> None:
    """Raise Corrupt for a plane with fields of a newer version that this one cannot handle. It can be observed."""
    unknown = [each for each in unknown_fields(plane) if each.startswith(("spec.", "status.memory."))]
    if unknown:
        raise Corrupt(
            f"acting on plane {plane.name}",
            f"a newer version wrote fields that this one does not know: {', '.join(unknown)}",
            "use the quarterdeck version that wrote it",
        )


def require_next_epoch(plane: ControlPlane, epoch: int, doing: str) -> None:
    """Raise Conflict where another epoch of its etcd has begun than the one before the one that was planned."""
    begun = plane.status.memory.epoch
    if begun + 1 != epoch:
        raise Conflict(doing, f"epoch {begun} of its etcd has begun since", "see 'status'")


async def require_changeable(store: Store, plane: ControlPlane) -> None:
    """Raise Conflict while the plane moves: source and target of a move must not change."""
    running = await recorded.current(store, plane.name)
    if running is not None and moves(running):
        raise busy(f"changing plane {plane.name}", running, "then try again")


def moves(running: Operation) -> bool:
    """Whether an unfinished operation moves its plane between sites, or brings it back. A failed one does not count: a
    person may have to change the spec to fix it.
    """
    if running.status.phase is OperationPhase.FAILED:
        return False
    before, after = running.spec.from_, running.spec.to
    elsewhere = before is not None and after is not None and before.placement.site != after.placement.site
    return elsewhere or running.spec.type in {*MOVING, OperationType.ABORT}


def busy(doing: str, running: Operation, then: str) -> Conflict:
    """The error of a request while an operation is in progress."""
    plane, kind = running.spec.plane, running.spec.type
    final = kind in (OperationType.ABORT, OperationType.FAILOVER)
    undo = "" if final else f", or undo it with 'abort {plane}'"
    return Conflict(
        doing,
        f"operation {running.metadata.name} ({kind.value}) is in progress",
        f"finish it with 'wait {plane}'{undo}, {then}",
    )


async def supersede(store: Store, plane: str, requester: Requester) -> None:
    """End the operations in progress: they are superseded."""
    for operation in await recorded.operations_of(store, plane):
        if not operation.status.phase.over:
            await finish(store, operation, OperationPhase.ABORTED, "superseded by another operation", requester)


async def begin(store: Store, operation: Operation, requester: Requester) -> Operation:
    """Mark it as running, also after a failure, unless it is over already."""
    changes = {"phase": OperationPhase.RUNNING, "message": "", "finished_at": None, "error": ""}
    begun = await _advance(store, operation, changes, requester)
    if not begun.status.phase.over:
        await _tell(store, begun, requester, f"driven by {requester.name}")
    return begun


async def finish(
    store: Store, operation: Operation, phase: OperationPhase, message: str, requester: Requester, *, error: str = ""
) -> Operation:
    """Mark it as over, unless it is already: another process may have superseded it."""
    changes = {"phase": phase, "message": message, "finished_at": requester.now(), "error": error}
    finished = await _advance(store, operation, changes, requester)
    await _tell(store, finished, requester, finished.status.message)
    return finished


async def succeed(
    store: Store, operation: Operation, plane: ControlPlane, leftovers: tuple[str, ...], requester: Requester
) -> Operation:
    """Mark it as over, now that ``plane`` is up to date. An operation with another goal than the plane was superseded
    by a process that died before it could record that.
    """
    if operation.spec.to is not None and not reached(operation.spec.to, plane):
        return await finish(store, operation, OperationPhase.ABORTED, "superseded by another operation", requester)
    return await finish(store, operation, OperationPhase.SUCCEEDED, "; ".join(("up to date", *leftovers)), requester)


async def deleted(store: Store, name: str, requester: Requester) -> bool:
    """Whether a plane that does not exist was being deleted; its operation is marked as over."""
    operation = await recorded.current(store, name)
    if operation is None or operation.spec.type is not OperationType.DELETE:
        return False
    await finish(store, operation, OperationPhase.SUCCEEDED, "deleted", requester)
    return True


async def _tell(store: Store, operation: Operation, requester: Requester, message: str) -> None:
    """An event of the operation's phase, such as MigrateSucceeded."""
    spec, phase = operation.spec, operation.status.phase
    kind = EventType.WARNING if phase is OperationPhase.FAILED else EventType.NORMAL
    now = requester.now().timestamp()
    event = Event(
        plane=spec.plane,
        type=kind,
        reason=operation_reason(spec.type, phase),
        message=f"{operation.metadata.name}: {message}",
        first=now,
        last=now,
    )
    await store.record(event)


async def _advance(
    store: Store, operation: Operation, changes: Mapping[str, object], requester: Requester
) -> Operation:
    def advanced(seen: Operation) -> Operation:
        if seen.status.phase.over:
            return seen
        started = seen.status.started_at or requester.now()
        return seen.model_copy(update={"status": seen.status.model_copy(update={"started_at": started, **changes})})

    return await amend(store, Operation, operation.metadata.name, advanced)


async def _record(
    store: Store,
    plane: ControlPlane,
    kind: OperationType,
    requester: Requester,
    *,
    came_from: Goal | None = None,
    to: Goal | None = None,
) -> Operation:
    name = f"{plane.metadata.name}-{kind.value.lower()}-{uuid.uuid4().hex[:6]}"
    last = (await recorded.operations_of(store, plane.metadata.name))[-1:]
    spec = OperationSpec(
        plane=plane.metadata.name,
        number=1 + max((each.spec.number for each in last), default=0),
        type=kind,
        from_=came_from,
        to=to,
        requested_by=requester.name,
    )
    return await store.create(
        Operation(metadata=Metadata(name=name), spec=spec, status=OperationStatus(phase=OperationPhase.PENDING))
    )
