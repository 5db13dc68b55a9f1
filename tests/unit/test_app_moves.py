"""What a migration and an abort come to, and when they are put down."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.store import MemoryStore
from support.golden import Golden
from support.resources import with_spec

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.operation import Operation, OperationPhase, OperationType
from quarterdeck.api.plane.service_accounts import OWN_ISSUER, ServiceAccounts
from quarterdeck.app import Abort, Examined, Finding, Migrate, Requester, Verdict
from quarterdeck.app.changes import store_request
from quarterdeck.engine.preflight.moves import at_site, destination, examined_abort, require_done
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict, Gone, InvalidInput, PreconditionFailed
from quarterdeck.model.steps.clusters import NoteCreated
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.planner.simulated.dry_run import DryRun

ASKER = Requester(name="a test")
ALPHA = new_control_plane("alpha", site="east")


@pytest.fixture
async def store() -> MemoryStore:
    made = MemoryStore()
    await made.create(ALPHA)
    return made


def home(store: MemoryStore) -> Home:
    return cast("Home", SimpleNamespace(store=store))


async def move_of(store: MemoryStore, to: str = "west", *findings: Finding) -> Examined:
    wanted = destination(await recorded.existing(store, "alpha"), Migrate("alpha", to))
    return Examined(kind=OperationType.MIGRATE, wanted=wanted, findings=findings, forecast=DryRun(steps=()))


def test_zones_and_storage_class_are_the_other_sites_own() -> None:
    placement = ALPHA.spec.placement.model_copy(update={"zones": ("a",), "storage_class": "fast"})
    plane = with_spec(ALPHA, replicas=1, placement=placement)
    moved = at_site(plane, "west", 3).spec
    assert (moved.placement.site, moved.placement.zones, moved.placement.storage_class) == ("west", None, None)
    assert moved.replicas == 3


@pytest.mark.parametrize("request_", [Migrate("alpha", "east"), Migrate("alpha", "east", 3)])
def test_a_plane_that_is_there_is_wanted_as_it_is(request_: Migrate) -> None:
    assert destination(ALPHA, request_) == ALPHA


@pytest.mark.parametrize(
    "request_",
    [Migrate("alpha", "west", 2), Migrate("alpha", "east", 1)],
)
def test_a_move_that_makes_no_sense_is_no_plane(request_: Migrate, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        destination(ALPHA, request_)


def test_a_plane_that_is_wanted_there_and_not_yet_so_is_named_with_what_is_left(golden: Golden) -> None:
    asked = ("migrating", "alpha", "it is wanted at east already")
    require_done(*asked, Plan())
    with golden.raises(Conflict):
        require_done(*asked, Plan(now=(NoteCreated(site="east", why=""),), waiting=(Wait("west-1", "see to it"),)))


def test_a_move_that_a_check_refuses_or_that_would_not_end_must_not_be(golden: Golden) -> None:
    well = Examined(kind=OperationType.MIGRATE, wanted=at_site(ALPHA, "west"), forecast=DryRun(steps=()))
    well.require()
    warned = replace(well, findings=(Finding("distance", Verdict.WARN, "90 ms"),))
    assert not warned.refused
    warned.require()
    bad = Finding("alarms", Verdict.REFUSE, "etcd has raised NOSPACE", "disarm it")
    refused = replace(warned, findings=(*warned.findings, bad), forecast=None)
    assert refused.refused
    with golden.raises(PreconditionFailed):
        refused.require()
    with golden.raises(PreconditionFailed):
        replace(well, forecast=DryRun(steps=(), stuck_on=(Wait("a person", "see to it"),))).require()


async def test_nothing_is_put_down_of_a_move_that_is_refused(store: MemoryStore) -> None:
    with pytest.raises(PreconditionFailed, match="alarms"):
        await store_request(home(store), await move_of(store, "west", Finding("alarms", Verdict.REFUSE, "on")), ASKER)
    assert (await store.get(ControlPlane, "alpha")).spec == ALPHA.spec
    assert not await store.list(Operation)


async def test_what_was_examined_is_not_put_down_on_a_plane_that_was_changed_since(
    store: MemoryStore, golden: Golden
) -> None:
    first, second = await move_of(store), await move_of(store, "north")
    operation = await store_request(home(store), first, ASKER)
    assert operation is not None
    assert (operation.spec.type, operation.spec.requested_by) == (OperationType.MIGRATE, "a test")
    with golden.raises(Conflict):
        await store_request(home(store), second, ASKER)
    assert (await store.get(ControlPlane, "alpha")).spec.placement.site == "west"


async def test_a_change_that_is_already_reached_stores_no_operation(store: MemoryStore) -> None:
    there = replace(await move_of(store, "east"), needed=False)
    assert await store_request(home(store), there, ASKER) is None
    assert not await store.list(Operation)


async def test_an_abort_goes_back_to_where_the_plane_came_from_and_only_once(store: MemoryStore) -> None:
    moving = await store_request(home(store), await move_of(store), ASKER)
    assert moving is not None
    found = await examined_abort(store, Abort("alpha"))
    assert found.needed
    assert found.under_way is not None
    assert (found.under_way.metadata.name, found.wanted.spec) == (moving.metadata.name, ALPHA.spec)
    back = await store_request(home(store), found, ASKER)
    assert back is not None
    assert back.spec.type is OperationType.ABORT
    again = await examined_abort(store, Abort("alpha"))
    assert not again.needed
    assert await store_request(home(store), again, ASKER) == back, "it is going back already"
    assert len(await store.list(Operation)) == 2


async def test_an_abort_warns_of_tokens_that_it_makes_invalid(store: MemoryStore) -> None:
    issuers = ("https://tokens.example", OWN_ISSUER)
    wanted = (await store.get(ControlPlane, "alpha")).with_spec(service_accounts=ServiceAccounts(issuers=issuers))
    await store_request(home(store), Examined(kind=OperationType.APPLY, wanted=wanted), ASKER)
    (found,) = (await examined_abort(store, Abort("alpha"))).findings
    assert (found.verdict, issuers[0] in found.seen) == (Verdict.WARN, True)


async def test_an_abort_needs_something_to_undo(store: MemoryStore, golden: Golden) -> None:
    with golden.raises(Conflict):
        await examined_abort(store, Abort("alpha"))
    moving = await store_request(home(store), await move_of(store), ASKER)
    assert moving is not None
    await operations.finish(store, moving, OperationPhase.SUCCEEDED, "as wanted", ASKER)
    with golden.raises(Conflict):
        await examined_abort(store, Abort("alpha"))
    with pytest.raises(Gone, match='"beta"'):
        await examined_abort(store, Abort("beta"))
