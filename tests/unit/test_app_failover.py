"""What a command says of a lost site before anybody consents to the failover, and what the consent comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from model.worlds import beside, empty, settled
from pydantic import ValidationError
from support.golden import Golden
from support.new_epoch import member_word
from support.printed_facts import LOST_SITE
from support.resources import with_spec

from quarterdeck.api.apply import applied_plane
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec, new_control_plane
from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.epochs import NewEpoch, StandbyPlacement
from quarterdeck.api.plane.memory import memory_from_status, memory_to_status
from quarterdeck.app import Abort, Migrate, Quarterdeck, Requester
from quarterdeck.app.etcd.failover import require_standby_at, required
from quarterdeck.app.etcd.recovery import _required as survivors_of
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.settings import consent_of, standby_slot
from quarterdeck.engine.workspace.site_use import sites_of
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed
from quarterdeck.model.epochs import Consent, Seed, StandbyOrigin
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.simulated import observe

ASKER = Requester(name="a test")
WEST = StandbyPlacement(site="west")
LOST = replace(LOST_SITE, name="alpha")


def planned(**spec: object) -> ControlPlane:
    return with_spec(new_control_plane("alpha", site="east"), standby=WEST, **spec)


def seen(state: MachineState, **word: object) -> World:
    """A plane with a standby at west whose machines at east are all in that state, and no quorum answers."""
    there = observe(settled(beside(settled(empty("east", 3)), "west")))
    (standby,) = there.memory.standbys
    replicas = (each if each.name == standby.name else replace(each, machine=state) for each in there.replicas)
    report = {"revision": 7, "learner": True, "voters": (), **word}
    return replace(there, membership=None, replicas=tuple(replicas), words=(member_word(standby.name, 9, **report),))


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=ASKER) as made:
        await operations.create(made._home, planned(), ASKER)
        yield made


def test_the_standby_of_a_lost_site_is_taken_and_that_of_a_plane_with_a_quorum_is_not(golden: Golden) -> None:
    lost = seen(MachineState.DOWN)
    assert required("alpha", "west", lost).replica == "west-4"
    whole = observe(settled(beside(settled(empty("east", 3)), "west")))
    with pytest.raises(PreconditionFailed, match="'quarterdeck migrate alpha --to west' moves it"):
        required("alpha", "west", whole)
    # A learner never campaigns, and goes on naming the leader that is gone.
    assert required("alpha", "west", seen(MachineState.DOWN, follows=True)).follows
    with pytest.raises(PreconditionFailed, match="the voters east-1, east-2, east-3 are there"):
        required("alpha", "west", seen(MachineState.UP))
    with golden.raises(PreconditionFailed):
        required("alpha", "west", replace(lost, words=()))


def test_a_plane_fails_over_only_to_where_its_standby_is(golden: Golden) -> None:
    require_standby_at(planned(), "west")
    with pytest.raises(PreconditionFailed, match="its standby is at site west"):
        require_standby_at(planned(), "north")
    with golden.raises(PreconditionFailed):
        require_standby_at(new_control_plane("alpha", site="east"), "west")


def some_dead(state: MachineState, *replicas: str) -> World:
    """The same, with only these replicas on machines in that state, and a report of the first voter."""
    whole = seen(MachineState.UP)
    facts = (replace(each, machine=state) if each.name in replicas else each for each in whole.replicas)
    return replace(
        whole, replicas=tuple(facts), words=(*whole.words, member_word("east-1", 9, revision=7)), plane_name="alpha"
    )


@pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.UNREACHABLE])
def test_where_the_standby_answers_a_lost_quorum_is_explained_with_the_failover(
    state: MachineState, golden: Golden
) -> None:
    golden(advice(replace(seen(state), plane_name="alpha")))
    golden(advice(some_dead(state, "east-2", "east-3")))
    for whole in (observe(settled(beside(settled(empty("east", 3)), "west"))), some_dead(state, "east-2")):
        assert advice(whole) == ""


def test_where_only_the_standby_answers_recovery_is_refused_and_names_the_failover(golden: Golden) -> None:
    """The standby is no survivor: a driver would begin no epoch from it without the consent to a failover."""
    with golden.raises(PreconditionFailed):
        survivors_of("alpha", replace(seen(MachineState.DOWN), plane_name="alpha"))
    left = survivors_of("alpha", some_dead(MachineState.DOWN, "east-2", "east-3"))
    assert [each.replica for each in left.words] == ["east-1"]


@pytest.mark.parametrize(("back", "standby"), [(False, None), (True, StandbyPlacement(site="east"))])
async def test_the_plane_is_wanted_where_the_standby_is_from_one_epoch_on(
    face: Quarterdeck, back: bool, standby: StandbyPlacement | None
) -> None:
    await face.etcd.fail_over(LOST, standby_back=back)
    plane = await face.plane("alpha")
    assert plane.spec.placement.site == "west"
    assert plane.spec.standby == standby
    assert consent_of(plane) == Consent(epoch=1, standby=True)
    assert applied_plane(plane, planned()).spec.new_epoch == NewEpoch(epoch=1, standby=True)


async def test_a_failover_is_not_undone_unless_it_turned_out_not_to_be_needed(
    face: Quarterdeck, golden: Golden
) -> None:
    await face.etcd.fail_over(LOST)
    (_, operation) = await recorded.operations_of(face._home.store, "alpha")
    assert operation.spec.type is OperationType.FAILOVER
    with golden.raises(Conflict):
        await face.plan(Abort("alpha"))
    with pytest.raises(Conflict, match=r"finish it with 'wait alpha', then migrate$"):
        await face.plan(Migrate("alpha", "north"))
    with pytest.raises(Conflict, match=r"finish it with 'wait alpha', then try again$"):
        await operations.require_changeable(face._home.store, await face.plane("alpha"))
    # A quorum came back before the epoch began: the driver withdraws the consent, and the plane moves as any other.
    await face._home.store.update((await face.plane("alpha")).with_spec(new_epoch=None))
    assert (await face.plan(Abort("alpha"))).wanted.spec == planned().spec


async def test_beside_others_that_may_live_the_user_must_say_that_they_are_gone(face: Quarterdeck) -> None:
    others = replace(LOST, cut_off=("east-2", "east-3"), others_may_live=True)
    with pytest.raises(PreconditionFailed, match="--even-if-others-live"):
        await face.etcd.fail_over(others)
    with pytest.raises(Conflict, match="has begun since"):
        await face.etcd.fail_over(replace(LOST, epoch=3))
    assert (await face.plane("alpha")).spec.placement.site == "east"
    await face.etcd.fail_over(others, even_if_others_live=True)
    assert consent_of(await face.plane("alpha")) == Consent(epoch=1, standby=True, even_if_others_live=True)


def test_a_move_to_the_site_of_the_standby_sends_that_to_the_former_site() -> None:
    plane = planned()
    west = plane.spec.placement.model_copy(update={"site": "west"})
    assert operations.moved(plane, west, None).spec.standby == StandbyPlacement(site="east")
    north = plane.spec.placement.model_copy(update={"site": "north"})
    assert operations.moved(plane, north, None).spec.standby == WEST
    with pytest.raises(InvalidInput, match="at most 5"):
        operations.moved(plane, plane.spec.placement, 7)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"standby": {"site": "east"}}, "is the site of the replicas"),
        ({"standby": {"site": "west"}, "replicas": 7}, "needs replicas of 5 or fewer"),
    ],
)
def test_a_standby_is_elsewhere_and_leaves_room_for_the_learners_of_a_move(spec: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        ControlPlaneSpec.model_validate({"placement": {"site": "east"}, **spec})


def test_the_spec_makes_the_place_of_the_standby_and_its_site_is_in_use() -> None:
    assert standby_slot(planned()) == Slot(site="west", zone="")
    assert standby_slot(new_control_plane("alpha", site="east")) is None
    assert sites_of(planned()) == {"east", "west"}


def test_a_standby_and_an_epoch_that_began_from_it_are_stored() -> None:
    memory = observe(settled(beside(settled(empty("east", 3)), "west"))).memory
    seed = Seed(origin=StandbyOrigin(standby="west-4"), founder="west-5", revision=7, seen=9)
    memory = replace(memory, seed=seed)
    assert memory_from_status(memory_to_status(memory)) == memory
    assert seed.source == "west-4"
