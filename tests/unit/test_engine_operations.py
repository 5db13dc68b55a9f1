"""Operations: which one is under way, and what becomes of one that failed or whose driver died."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.store import MemoryStore
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import (
    PLANE_FINALIZER,
    Audit,
    ControlPlane,
    Encryption,
    Placement,
    new_control_plane,
)
from quarterdeck.api.operation import Operation, OperationPhase, OperationType
from quarterdeck.engine.background.tasks import LongTasks
from quarterdeck.engine.notices.troubles import Troubles
from quarterdeck.engine.reconcile.drive import Engine, _Hold, _require_accepted
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import Conflict, Corrupt, InvalidInput
from quarterdeck.model.memory import Memory, Rejection
from quarterdeck.stores.lease import LeaseGuard
from quarterdeck.upstream.upstream import Upstream

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ASKER = Requester(name="a test")


class Clock:
    """A second passes with each look."""

    def __init__(self) -> None:
        self.now = BEGAN

    def __call__(self) -> float:
        self.now += timedelta(seconds=1)
        return self.now.timestamp()


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore(clock=Clock())
    plane = new_control_plane("alpha", site="east")
    metadata = plane.metadata.model_copy(update={"finalizers": (PLANE_FINALIZER,)})
    await made.create(plane.model_copy(update={"metadata": metadata}))
    return made


async def move(store: MemoryStore, site: str, kind: OperationType = OperationType.MIGRATE) -> Operation:
    plane = await store.get(ControlPlane, "alpha")
    wanted = operations.moved(plane, Placement(site=site), None)
    return await operations.change(home(store), wanted, kind, ASKER)


def home(store: MemoryStore) -> Home:
    return cast("Home", SimpleNamespace(store=store))


async def failed(store: MemoryStore, operation: Operation) -> Operation:
    begun = await operations.begin(store, operation, ASKER)
    return await operations.finish(store, begun, OperationPhase.FAILED, "the TSIG secret is not there", ASKER)


async def test_a_failed_operation_is_under_way_until_its_goal_is_reached_or_given_up(store: MemoryStore) -> None:
    moving = await failed(store, await move(store, "west"))
    under_way = await recorded.current(store, "alpha")
    assert under_way is not None
    assert (under_way.metadata.name, under_way.status.phase) == (moving.metadata.name, OperationPhase.FAILED)
    goal = under_way.spec.from_
    assert goal is not None
    assert goal.placement.site == "east", "what abort goes back to"


async def test_who_drives_next_goes_on_with_a_failed_operation(store: MemoryStore) -> None:
    begun = await operations.begin(store, await failed(store, await move(store, "west")), ASKER)
    assert (begun.status.phase, begun.status.finished_at, begun.status.message) == (OperationPhase.RUNNING, None, "")
    plane = await store.get(ControlPlane, "alpha")
    done = await operations.succeed(store, begun, plane, (), ASKER)
    assert (done.status.phase, done.status.message) == (OperationPhase.SUCCEEDED, "up to date")
    assert await recorded.current(store, "alpha") is None


async def test_an_abort_of_a_failed_operation_ends_it(store: MemoryStore) -> None:
    moving = await failed(store, await move(store, "west"))
    back = await move(store, "east", OperationType.ABORT)
    assert (await store.get(Operation, moving.metadata.name)).status.phase is OperationPhase.ABORTED
    under_way = await recorded.current(store, "alpha")
    assert under_way is not None
    assert under_way.metadata.name == back.metadata.name


async def test_only_the_last_operation_can_be_under_way(store: MemoryStore) -> None:
    """One that failed long before the last, as former versions left them, is history."""
    await failed(store, await move(store, "west"))
    first = (await recorded.operations_of(store, "alpha"))[0]
    last = await move(store, "east")
    await store.update(first.model_copy(update={"metadata": (await store.get(Operation, first.name)).metadata}))
    await operations.finish(store, last, OperationPhase.SUCCEEDED, "as wanted", ASKER)
    assert {each.status.phase for each in await recorded.operations_of(store, "alpha")} == {
        OperationPhase.FAILED,
        OperationPhase.SUCCEEDED,
    }
    assert await recorded.current(store, "alpha") is None


async def test_what_was_asked_for_last_is_under_way_whatever_the_clock_says() -> None:
    times = iter([BEGAN + timedelta(days=1)] * 4 + [BEGAN] * 100)
    store = MemoryStore(clock=lambda: next(times).timestamp())
    await store.create(new_control_plane("alpha", site="east"))
    await move(store, "west")
    back = await move(store, "east", OperationType.ABORT)
    under_way = await recorded.current(store, "alpha")
    assert under_way is not None
    assert under_way.metadata.name == back.metadata.name


async def test_a_plane_whose_move_failed_can_be_deleted_but_not_one_that_moves(
    store: MemoryStore, golden: Golden
) -> None:
    moving = await move(store, "west")
    with golden.raises(Conflict):
        await operations.delete(home(store), "alpha", ASKER)
    await failed(store, moving)
    await operations.delete(home(store), "alpha", ASKER)
    assert (await store.get(ControlPlane, "alpha")).metadata.deletion_timestamp is not None


async def test_an_operation_whose_goal_was_left_has_not_succeeded(store: MemoryStore) -> None:
    """Whoever asked for something else died between changing the spec and writing down that they asked."""
    moving = await move(store, "west")
    plane = await store.get(ControlPlane, "alpha")
    back = await store.update(operations.moved(plane, Placement(site="east"), None))
    ended = await operations.succeed(store, moving, back, (), ASKER)
    assert ended.status.phase is OperationPhase.ABORTED


async def test_a_deletion_whose_end_was_not_recorded_ends_with_the_next_look(store: MemoryStore) -> None:
    assert not await operations.deleted(store, "alpha", ASKER)
    asked = await operations.delete(home(store), "alpha", ASKER)
    await store.delete_together((ControlPlane, "alpha"), finalizer=PLANE_FINALIZER)
    assert await operations.deleted(store, "alpha", ASKER)
    assert (await store.get(Operation, asked.metadata.name)).status.phase is OperationPhase.SUCCEEDED


async def changed(store: MemoryStore, kind: OperationType = OperationType.APPLY, **spec: object) -> Operation:
    plane = await store.get(ControlPlane, "alpha")
    wanted = with_spec(plane, **spec)
    return await operations.change(home(store), wanted, kind, ASKER)


async def test_any_change_can_be_taken_back_whatever_it_is(store: MemoryStore, tmp_path: Path) -> None:
    before = (await store.get(ControlPlane, "alpha")).spec
    (tmp_path / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]")
    audit = Audit(policy_file=PurePosixPath(tmp_path / "policy.yaml"))
    asked = await changed(store, audit=audit, encryption=Encryption(secrets=False), replicas=5)
    now = await store.get(ControlPlane, "alpha")
    now = with_spec(now, paused=True)
    assert asked.spec.from_ is not None
    back = operations.back(now, asked.spec.from_)
    assert back.spec == before.model_copy(update={"paused": True}), "whether it is paused is the user's word of now"


async def test_a_change_whose_spec_was_changed_back_has_not_succeeded_but_a_pause_is_no_change(
    store: MemoryStore,
) -> None:
    asked = await changed(store, encryption=Encryption(secrets=False))
    plane = await store.get(ControlPlane, "alpha")
    other = with_spec(plane, encryption=Encryption())
    assert asked.spec.to is not None
    assert not operations.reached(asked.spec.to, other)
    assert operations.reached(asked.spec.to, plane)
    paused = with_spec(plane, paused=True)
    assert operations.reached(asked.spec.to, paused)


@pytest.mark.parametrize("kind", [OperationType.APPLY, OperationType.SCALE, OperationType.REPLACE])
async def test_the_spec_of_a_plane_that_moves_is_not_changed_until_its_move_has_failed(
    store: MemoryStore, kind: OperationType, golden: Golden
) -> None:
    moving = await move(store, "west")
    before = await store.get(ControlPlane, "alpha")
    with golden.raises(Conflict):
        await changed(store, kind, encryption=Encryption(secrets=False))
    assert await store.get(ControlPlane, "alpha") == before
    await failed(store, moving)
    await changed(store, kind, encryption=Encryption(secrets=False))


async def test_a_move_that_was_applied_is_a_move_and_an_abort_is_only_waited_for(
    store: MemoryStore, golden: Golden
) -> None:
    await changed(store, placement=Placement(site="west"))
    with golden.raises(Conflict):
        await changed(store, encryption=Encryption(secrets=False))
    await move(store, "east", OperationType.ABORT)
    with golden.raises(Conflict):
        await changed(store, encryption=Encryption(secrets=False))


async def test_a_change_takes_the_place_of_one_that_stays_at_its_site(store: MemoryStore) -> None:
    first = await changed(store, OperationType.SCALE, replicas=5)
    second = await changed(store, encryption=Encryption(secrets=False))
    assert (await store.get(Operation, first.name)).status.phase is OperationPhase.ABORTED
    under_way = await recorded.current(store, "alpha")
    assert under_way is not None
    assert under_way.name == second.name
    plane = await store.get(ControlPlane, "alpha")
    assert (plane.spec.replicas, plane.spec.encryption.secrets) == (5, False)


async def test_a_deletion_marks_a_plane_and_leaves_it_to_who_takes_it_down(store: MemoryStore) -> None:
    await operations.delete(home(store), "alpha", ASKER)
    marked = await store.get(ControlPlane, "alpha")
    assert marked.metadata.finalizers == (PLANE_FINALIZER,)
    assert (marked.metadata.deletion_timestamp is not None, marked.metadata.generation) == (True, 2)


async def test_what_the_user_wants_has_failed_when_it_was_given_up_however_well_the_plane_is(
    store: MemoryStore,
    golden: Golden,
) -> None:
    plane = await store.get(ControlPlane, "alpha")
    status = plane.status.model_copy(update={"revision": "alpha-new"})

    def after(revision: str) -> Plane:
        memory = Memory(rejected=Rejection(revision=revision, why="unknown flag: --nonsense"))
        resource = plane.model_copy(update={"status": status})
        return cast("Plane", SimpleNamespace(name="alpha", resource=resource, memory=memory))

    with golden.raises(InvalidInput):
        _require_accepted(after("alpha-new"))
    _require_accepted(after("alpha-old"))


@pytest.mark.parametrize(("part", "acts"), [("spec", False), ("status.memory", False), ("metadata", True)])
async def test_nobody_acts_by_what_a_newer_version_wrote_and_this_one_does_not_know(
    store: MemoryStore, part: str, acts: bool, golden: Golden
) -> None:
    document = json.loads(store._bodies["ControlPlane", "alpha"])
    inner = document
    for name in part.split("."):
        inner = inner.setdefault(name, {})
    inner["tier"] = "gold"
    store._bodies["ControlPlane", "alpha"] = json.dumps(document)
    if acts:
        await changed(store, replicas=5)
        assert json.loads(store._bodies["ControlPlane", "alpha"])["metadata"]["tier"] == "gold"
        return
    with golden.raises(Corrupt):
        await changed(store, replicas=5)
    engine = Engine(home=home(store), upstream=cast("Upstream", None), requester=ASKER)
    guard = cast("LeaseGuard", SimpleNamespace(check=held, lease=None))
    tasks, troubles = cast("LongTasks", None), cast("Troubles", None)
    with pytest.raises(Corrupt, match=f"{part}.tier"):
        await engine._drive(_Hold(name="alpha", guard=guard, tasks=tasks, troubles=troubles, rest=None))


async def held() -> None:
    """The lease is this driver's."""
