"""What a command says of a lost quorum before anybody consents, and what the consent comes to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from model.stories import serving
from model.worlds import empty
from support.cli_lab import Cli
from support.fake_plane import FakePlane
from support.golden import Golden
from support.new_epoch import member_word
from support.resources import with_spec

from quarterdeck.api.apply import applied_plane
from quarterdeck.api.controlplane import ControlPlane, RecoveryPolicy, new_control_plane
from quarterdeck.api.plane.epochs import NewEpoch
from quarterdeck.app import LostQuorum, Quarterdeck, Requester, Survivor
from quarterdeck.app.etcd.recovery import _differ, _hashes, _required
from quarterdeck.cli.commands.recovery import _lines
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.settings import consent_of
from quarterdeck.errors import Conflict, Gone, Paused, PreconditionFailed
from quarterdeck.etcd.facts import KeySpaceHash
from quarterdeck.model.epochs import Consent
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.survivors import Survivors

ASKER = Requester(name="a test")
LOST = LostQuorum(name="alpha", epoch=1, survivors=(), loss="", dead=("east-2",), cut_off=(), others_may_live=False)


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=ASKER) as made:
        await operations.create(made._home, new_control_plane("alpha", site="east"), ASKER)
        yield made


async def wanted(face: Quarterdeck) -> ControlPlane:
    return await face.plane("alpha")


def unread() -> World:
    """A plane of three of which only the first member speaks, and all machines answer."""
    return replace(serving(3), membership=None, words=(member_word("east-1", 9),))


@pytest.mark.parametrize(
    "world",
    [
        serving(3),
        observe(empty("east", 3)),
        replace(unread(), words=()),
        unread(),
    ],
)
def test_where_nothing_is_lost_for_good_recovery_is_refused_and_says_why(world: World, golden: Golden) -> None:
    with golden.raises(PreconditionFailed):
        _required("alpha", world)


async def test_the_word_names_one_epoch_and_is_not_given_twice(face: Quarterdeck, golden: Golden) -> None:
    await face.recover(LOST)
    plane = await wanted(face)
    assert plane.spec.new_epoch == NewEpoch(epoch=1)
    assert consent_of(plane) == Consent(epoch=1)
    with golden.raises(Conflict):
        await face.recover(replace(LOST, epoch=3))


async def test_beside_others_that_may_live_only_a_word_that_says_so_is_taken(face: Quarterdeck, golden: Golden) -> None:
    others = replace(LOST, cut_off=("east-2", "east-3"), others_may_live=True)
    with golden.raises(PreconditionFailed):
        await face.recover(others)
    assert (await wanted(face)).spec.new_epoch is None
    await face.recover(others, even_if_others_live=True)
    assert consent_of(await wanted(face)) == Consent(epoch=1, even_if_others_live=True)


async def test_a_word_is_no_part_of_an_operation_and_outlives_a_document_that_does_not_speak_of_it(
    face: Quarterdeck,
) -> None:
    before = operations.goal_of(await wanted(face))
    await face.recover(LOST)
    plane = await wanted(face)
    assert operations.reached(before, plane)
    assert operations.back(plane, before).spec.new_epoch == NewEpoch(epoch=1)
    assert applied_plane(plane, new_control_plane("alpha", site="east")).spec.new_epoch == NewEpoch(epoch=1)


def test_automatic_recovery_is_what_the_spec_says_and_not_the_default() -> None:
    plane = new_control_plane("alpha", site="east")
    assert consent_of(plane) == Consent()
    assert consent_of(with_spec(plane, recovery=RecoveryPolicy.AUTOMATIC)) == Consent(automatic=True)


async def test_of_a_plane_that_nobody_may_drive_no_word_is_taken(face: Quarterdeck, golden: Golden) -> None:
    await face.pause("alpha")
    for ask in (face.lost_quorum("alpha"), face.recover(LOST)):
        with golden.raises(Paused):
            await ask
    await face.resume("alpha")
    await operations.delete(face._home, "alpha", ASKER)
    for ask in (face.lost_quorum("alpha"), face.recover(LOST)):
        with golden.raises(PreconditionFailed):
            await ask
    assert (await wanted(face)).spec.new_epoch is None
    with pytest.raises(Gone, match="beta"):
        await face.lost_quorum("beta")


async def test_survivors_whose_data_differs_are_told_of_and_those_that_forgot_other_history_are_not() -> None:
    """Of three members two are left; who is behind is hashed up to where both are."""
    fake = FakePlane()
    plane = await fake.open()
    chosen, other = (
        replace(unread().words[0], replica=name, revision=revision) for name, revision in (("east-1", 7), ("east-2", 5))
    )
    left = Survivors(words=(chosen, other), fates=())
    asked = await _hashes(plane, left)
    assert {found.hash_revision for found in asked.values() if found is not None} == {5}
    hashes = {
        name: KeySpaceHash(hash=digest, hash_revision=5, compact_revision=1, revision=7)
        for name, digest in (("east-1", 0xA), ("east-2", 0xB))
    }
    assert _differ(left, hashes) == ("east-2",)
    assert _differ(left, hashes | {"east-2": replace(hashes["east-2"], hash=0xA)}) == ()
    assert _differ(left, hashes | {"east-2": replace(hashes["east-2"], compact_revision=2)}) == ()
    assert _differ(left, hashes | {"east-1": None}) == ()
    survivor = Survivor(
        replica="east-1", machine="east-a1", term=4, committed=9, applied=9, revision=7, hash=0xA, chosen=True
    )
    assert any(
        "other data than east-1" in each for each in _lines(replace(LOST, survivors=(survivor,), differ=("east-2",)))
    )
    assert not any("other data" in each for each in _lines(replace(LOST, survivors=(survivor,))))


def test_the_command_shows_what_is_left_and_what_may_be_lost_and_asks_before_anything_is_given_up(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    cli.plane("alpha")
    refused = cli("recover", "alpha", "--yes")
    assert (refused.code, "its etcd cluster was not created yet" in refused.err) == (5, True)
    left = Survivor(
        replica="east-1", machine="east-a1", term=4, committed=120, applied=119, revision=77, hash=0xBEEF, chosen=True
    )
    instead = "'quarterdeck failover alpha --to west' continues from the standby, and would lose nothing"
    lost = replace(LOST, survivors=(left,), loss="etcd revisions 78 to 90", may_return=("east-2",), instead=instead)

    async def lost_quorum(_: object, name: str) -> LostQuorum:
        assert name == "alpha"
        return lost

    monkeypatch.setattr("quarterdeck.app.looks.Looks.lost_quorum", lost_quorum)
    asked = cli("recover", "alpha")
    assert asked.code == 4, "there is nobody to ask"
    for words in ("east-a1", "120", "119", "77", "0000beef"):
        assert words in asked.out
    for words in ("off, or without their data: east-2", "east-1 is chosen", "lost: etcd revisions 78 to 90"):
        assert words in asked.err
    golden(asked.err)
