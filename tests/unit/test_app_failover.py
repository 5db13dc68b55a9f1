"""What a command says of a lost site before anybody consents to the failover, and what the consent comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from model.worlds import beside, empty, settled
from pydantic import ValidationError
from support.printed_facts import LOST_SITE
from support.resources import with_spec

from quarterdeck.api.apply import applied_plane
from quarterdeck.api.controlplane import ControlPlane, ControlPlaneSpec, new_control_plane
from quarterdeck.api.plane.epochs import NewEpoch, StandbyPlacement
from quarterdeck.api.plane.memory import memory_from_status, memory_to_status
from quarterdeck.app import Quarterdeck, Requester
from quarterdeck.app.etcd.failover import require_standby_at, required
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.settings import consent_of, standby_slot
from quarterdeck.engine.workspace.site_use import sites_of
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed
from quarterdeck.model.epochs import Consent, MemberWord, Seed, StandbyOrigin
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
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
    report = MemberWord(
        replica=standby.name, term=2, committed=9, applied=9, revision=7, learner=True, follows=False, voters=()
    )
    return replace(there, membership=None, replicas=tuple(replicas), words=(replace(report, **word),))


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=ASKER) as made:
        await operations.create(made._home, planned(), ASKER)
        yield made


def test_the_standby_of_a_lost_site_is_taken_and_that_of_a_plane_with_a_quorum_is_not() -> None:
    lost = seen(MachineState.DOWN)
    assert required("alpha", "west", lost).replica == "west-4"
    whole = observe(settled(beside(settled(empty("east", 3)), "west")))
    with pytest.raises(PreconditionFailed, match="'quarterdeck migrate alpha --to west' moves it"):
        required("alpha", "west", whole)
    # A learner never campaigns, and goes on naming the leader that is gone.
    assert required("alpha", "west", seen(MachineState.DOWN, follows=True)).follows
    with pytest.raises(PreconditionFailed, match="3 of 3 voters are there"):
        required("alpha", "west", seen(MachineState.UP))
    with pytest.raises(PreconditionFailed, match="its standby does not answer"):
        required("alpha", "west", replace(lost, words=()))


def test_a_plane_fails_over_only_to_where_its_standby_is() -> None:
    require_standby_at(planned(), "west")
    with pytest.raises(PreconditionFailed, match="its standby is at site west"):
        require_standby_at(planned(), "north")
    with pytest.raises(PreconditionFailed, match="it has no standby"):
        require_standby_at(new_control_plane("alpha", site="east"), "west")


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
