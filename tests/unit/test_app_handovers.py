"""What handing a set over, and back, comes to before anything is changed."""

from __future__ import annotations

from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.store import MemoryStore
from support.golden import Golden
from support.resources import with_spec, with_status

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import Operation, OperationPhase, OperationType
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram, ControllerSetSpec
from quarterdeck.api.plane.memory import ReplicaStatus
from quarterdeck.engine.preflight import local_changes
from quarterdeck.engine.preflight.local_changes import examined_hand_back, examined_hand_over
from quarterdeck.engine.preflight.requests import Examined, HandBack, HandOver
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, revisions
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import Conflict, InvalidInput, NotFound
from quarterdeck.stores.port import amend

KUBE, CLOUD = ControllerProgram
ASKER = Requester(name="a test")
IPAM = ControllerSetSpec(name="ipam", lock="ipam-migration", controllers=("node-ipam-controller",), owner=KUBE)
LIFE = ControllerSetSpec(name="life", lock="life-migration", controllers=("node-lifecycle-controller",), owner=KUBE)


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore()
    plane = new_control_plane("alpha", site="east")
    cloud = CloudControllerManager(program=PurePosixPath("/opt/ccm"))
    await made.create(with_spec(plane, controller_sets=(IPAM, LIFE), cloud_controller_manager=cloud))
    return made


@pytest.fixture(autouse=True)
def _examined_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What every change in place is asked is asked elsewhere."""

    async def examined(_: Engine, kind: OperationType, current: ControlPlane, wanted: ControlPlane) -> Examined:
        return Examined(kind=kind, wanted=wanted, current=current)

    monkeypatch.setattr(local_changes, "examined_in_place", examined)


def engine(store: MemoryStore) -> Engine:
    return cast("Engine", SimpleNamespace(home=SimpleNamespace(store=store)))


def owners(plane: ControlPlane) -> dict[str, ControllerProgram]:
    return {each.name: each.owner for each in plane.spec.controller_sets}


async def hand_over(store: MemoryStore, target: ControllerProgram, *, downtime: bool = False) -> Operation:
    found = await examined_hand_over(engine(store), HandOver("alpha", "ipam", target.other, target, downtime))
    home = cast("Home", SimpleNamespace(store=store))
    return await operations.change(home, found.wanted, found.kind, ASKER)


async def test_a_set_gets_another_owner_and_all_else_stays(store: MemoryStore) -> None:
    found = await examined_hand_over(engine(store), HandOver("alpha", "ipam", KUBE, CLOUD))
    assert owners(found.wanted) == {"ipam": CLOUD, "life": KUBE}
    assert found.current is not None
    kept = found.wanted.spec.model_copy(update={"controller_sets": (IPAM, LIFE)})
    assert kept == found.current.spec
    assert (found.kind, found.needed) == (OperationType.APPLY, True)


async def test_whether_all_may_stop_at_once_is_said_again_with_each_hand_over(store: MemoryStore) -> None:
    await hand_over(store, CLOUD, downtime=True)
    assert (await store.get(ControlPlane, "alpha")).spec.rollout.downtime_allowed
    await hand_over(store, KUBE)
    assert not (await store.get(ControlPlane, "alpha")).spec.rollout.downtime_allowed


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (HandOver("alpha", "ipam", CLOUD, CLOUD), InvalidInput),
        (HandOver("alpha", "iapm", KUBE, CLOUD), NotFound),
    ],
)
async def test_what_makes_no_sense_is_refused(
    store: MemoryStore, asked: HandOver, error: type[Exception], golden: Golden
) -> None:
    with golden.raises(error):
        await examined_hand_over(engine(store), asked)


async def test_what_was_handed_over_goes_back(store: MemoryStore) -> None:
    operation = await hand_over(store, CLOUD)
    found = await examined_hand_back(lambda: engine(store), store, HandBack("alpha", "ipam"))
    assert (found.kind, owners(found.wanted)["ipam"]) == (OperationType.ABORT, KUBE), "it is under way: it is aborted"
    await operations.finish(store, operation, OperationPhase.SUCCEEDED, "", ASKER)
    found = await examined_hand_back(lambda: engine(store), store, HandBack("alpha", "ipam"))
    assert (found.kind, owners(found.wanted)["ipam"]) == (OperationType.APPLY, KUBE)


async def test_what_nobody_has_handed_over_goes_nowhere(store: MemoryStore, golden: Golden) -> None:
    with golden.raises(Conflict):
        await examined_hand_back(lambda: engine(store), store, HandBack("alpha", "life"))


async def test_what_lies_between_is_stored_and_named_with_what_is_wanted(store: MemoryStore) -> None:
    """Revisions on the way, and back; a plane that has arrived remembers nothing of it."""
    plane = await revisions.established(store, await store.get(ControlPlane, "alpha"))
    first = plane.status.revision
    assert plane.status.via == ()
    await _runs(store, first)
    await hand_over(store, CLOUD)
    plane = await store.get(ControlPlane, "alpha")
    (between,) = plane.status.via
    known = await revisions.known(store, plane, guess=False)
    assert set(known.templates) == {first, between, plane.status.revision}
    assert known.apart == {frozenset({first, plane.status.revision})}

    await _runs(store, between)
    second = plane.status.revision
    await hand_over(store, KUBE)
    plane = await store.get(ControlPlane, "alpha")
    assert (plane.status.revision, plane.status.via) == (first, (second, between)), "it may have gone further by now"

    await _runs(store, first)
    await hand_over(store, CLOUD)
    assert (await store.get(ControlPlane, "alpha")).status.via == (between,)


async def _runs(store: MemoryStore, revision: str) -> None:
    """The plane has one replica, of that revision."""

    def changed(seen: ControlPlane) -> ControlPlane:
        replica = ReplicaStatus.model_validate(
            {
                "name": "east-1",
                "slot": {"site": "east", "zone": "a"},
                "machine": "east-a1",
                "revision": revision,
                "storageClass": "standard",
            },
        )
        memory = seen.status.memory.model_copy(update={"replicas": (replica,)})
        return with_status(seen, memory=memory)

    await amend(store, ControlPlane, "alpha", changed)
