"""New epochs: for which of them a consent is, from when a quorum counts as lost, and where the founder goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import doing, planned, step_words, until, whats, with_fact, with_memory, with_unit
from model.worlds import empty, moving, settled, wanted
from support.golden import Golden
from support.new_epoch import member_word

from quarterdeck.model.components import Component
from quarterdeck.model.epochs import BackupOrigin, Consent, RestorePoint, Seed, SurvivorOrigin
from quarterdeck.model.membership import WrongData
from quarterdeck.model.memory import KeptData, Memory
from quarterdeck.model.steps.clusters import BeginEpoch, DeleteKept, NoteQuorum, RestoreMember, WithdrawConsent
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.survivors import VoterFate, survivors

OFF, SILENT = MachineState.DOWN, MachineState.UNREACHABLE
VOTERS = ("east-1", "east-2", "east-3")
POINT = RestorePoint(origin=BackupOrigin(store="file:///backups", folder="demo/1", epoch=0), revision=5)
RECOVER, RESTORE, AUTOMATIC = Consent(epoch=1), Consent(epoch=1, restore=POINT), Consent(automatic=True)


def without(world: World, *names: str, state: MachineState = OFF) -> World:
    """The machines of these replicas do not answer."""
    for name in names:
        world = with_fact(world, name, lambda fact: replace(fact, machine=state, units=(), has_data=None, ready=None))
    return world


def lost(*words: int, replicas: int = 3, state: MachineState = OFF, consent: Consent = RECOVER) -> World:
    """No quorum answers: as many replicas are left as there are words, which have applied so many entries."""
    world = with_memory(observe(settled(empty("east", replicas))), revision=9)
    voters = tuple(each.name for each in world.memory.replicas)
    world = without(world, *voters[len(words) :], state=state)
    said = tuple(member_word(name, each, voters=voters) for name, each in zip(voters, words, strict=False))
    return replace(world, membership=None, words=said, consent=consent, plane_name="demo")


def third(memory: Memory) -> Memory:
    """All of it is of the third epoch."""
    return replace(memory, epoch=2, replicas=tuple(replace(each, epoch=2) for each in memory.replicas))


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


def begins(world: World) -> BeginEpoch | None:
    return next((step for step in plan(world).now if isinstance(step, BeginEpoch)), None)


def noted(world: World) -> bool | None:
    """What is noted of the quorum: whether it is lost; None: nothing."""
    return next((step.lost for step in plan(world).now if isinstance(step, NoteQuorum)), None)


# --- consent --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("consent", [RECOVER, RESTORE])
def test_consent_is_for_the_epoch_after_the_present_one(consent: Consent) -> None:
    world = lost(7, consent=consent)
    world = replace(world, memory=third(world.memory))
    assert begins(world) is None
    began = begins(replace(world, consent=replace(consent, epoch=3)))
    assert began is not None
    assert began.epoch == 3


def test_consent_that_was_not_needed_is_withdrawn_in_any_epoch() -> None:
    world = replace(observe(settled(empty("east", 3))), consent=Consent(epoch=3))
    assert of(world) == []
    world = replace(world, memory=third(world.memory))
    (step,) = planned(world).steps
    assert isinstance(step, WithdrawConsent)
    assert step.epoch == 3


def test_consent_to_a_restore_is_not_withdrawn_while_it_cannot_begin() -> None:
    world = replace(observe(settled(empty("east", 3))), consent=RESTORE)
    (step,) = plan(world).now
    assert isinstance(step, BeginEpoch)
    assert of(replace(world, failing=(Failing(step=bare(step), error="the store does not answer"),))) == []


def test_consent_for_another_epoch_says_nothing_of_a_majority_that_may_live() -> None:
    world = lost(7, state=SILENT, consent=Consent(epoch=1, even_if_others_live=True))
    assert begins(world) is not None
    world = replace(world, consent=Consent(epoch=2, even_if_others_live=True))
    assert any("they may still serve others" in each for each in whats(plan(world)))


def test_time_alone_is_no_consent() -> None:
    world = with_memory(lost(7, consent=Consent()), quorum_lost=0.0)
    assert begins(replace(world, now=9_999.0)) is None


def test_patience_is_counted_from_the_loss() -> None:
    world = with_memory(lost(7, consent=AUTOMATIC), quorum_lost=100.0)
    assert begins(replace(world, now=399.0)) is None
    assert begins(replace(world, now=400.0)) is not None


def test_what_follows_without_consent_is_told_before_the_loss_is_noted(golden: Golden) -> None:
    golden(advice(lost(7, consent=AUTOMATIC)))
    golden(advice(lost(7, consent=Consent())))
    assert advice(lost(7, 7, consent=Consent())) == "", "two of three can be a quorum"


# --- from when it is lost -------------------------------------------------------------------------------------------


def test_the_loss_is_noted_once_where_a_decision_needs_the_time() -> None:
    world = lost(7, consent=AUTOMATIC)
    assert noted(world) is True
    assert noted(with_memory(world, quorum_lost=0.0)) is None
    assert noted(lost(7, consent=Consent())) is None
    assert noted(lost(7, 7, consent=AUTOMATIC)) is None, "a quorum may be formed"
    assert noted(lost(consent=AUTOMATIC)) is None, "nobody says anything"


def test_the_loss_is_forgotten_where_enough_are_there_and_not_where_nobody_answers() -> None:
    for world, forgotten in (
        (lost(7, 7, consent=AUTOMATIC), True),
        (lost(7, consent=AUTOMATIC), False),
        (lost(consent=AUTOMATIC), False),
        (observe(settled(empty("east", 3))), True),
    ):
        assert (noted(with_memory(world, quorum_lost=0.0)) is False) == forgotten
        assert noted(replace(world, consent=Consent())) is None


def test_the_loss_is_forgotten_when_the_epoch_has_begun() -> None:
    assert noted(with_memory(seeding(lost(7)), quorum_lost=0.0)) is False


# --- who survives ---------------------------------------------------------------------------------------------------


def test_a_plane_of_whose_members_one_follows_a_leader_has_lost_nothing() -> None:
    world = lost(7, 7, replicas=5, consent=RECOVER)
    assert begins(world) is not None
    one, other = world.words
    assert begins(replace(world, words=(one, replace(other, follows=True)))) is None


def test_half_of_an_even_number_of_voters_is_no_quorum_and_more_is() -> None:
    assert begins(lost(7, 7, replicas=4)) is not None
    assert begins(lost(7, 7, 7, replicas=4)) is None


def test_a_majority_of_voters_that_may_live_is_more_than_half_of_them() -> None:
    assert begins(lost(7, 7, replicas=4, state=SILENT)) is not None, "two of four are no quorum"
    assert begins(lost(7, replicas=3, state=SILENT)) is None
    assert begins(lost(7, replicas=4, state=SILENT)) is None


def test_a_plane_that_was_never_founded_has_no_survivor() -> None:
    assert begins(with_memory(lost(7), created=False)) is None


def _refused(world: World) -> World:
    return with_fact(world, "east-2", lambda fact: replace(fact, refused="the disk is read-only"))


def _failed(world: World) -> World:
    return with_unit(world, "east-2", Component.ETCD, UnitState.FAILED)


@pytest.mark.parametrize("change", [_refused, _failed])
def test_a_member_that_will_not_report_is_not_waited_for(change: Callable[[World], World]) -> None:
    world = lost(7, 7, replicas=5)
    silent = replace(world, words=world.words[:1])
    assert any("member east-2 to report" in each for each in whats(plan(silent)))
    assert begins(silent) is None
    assert begins(change(silent)) is not None


def test_who_is_waited_for_first_is_the_one_to_look_at() -> None:
    world = lost(7, 7, 7, replicas=6)
    (wait,) = (each for each in plan(replace(world, words=world.words[:1])).waiting if "to report" in each.what)
    assert "member east-2, east-3 to report" in wait.what
    assert "--replica east-2" in wait.then


def test_data_that_is_not_the_planes_is_chosen_only_where_there_is_no_other() -> None:
    world = lost(7, 9, replicas=5)
    wrong = replace(world, wrong=(WrongData(replica="east-2", seen="another cluster"),))
    for each, best in ((world, "east-2"), (wrong, "east-1")):
        left = survivors(each)
        assert left is not None
        assert left.best.replica == best
    alone = replace(wrong, words=wrong.words[1:])
    left = survivors(alone)
    assert left is not None
    assert left.best.replica == "east-2"


def test_where_only_learners_are_left_all_others_that_were_members_may_vote() -> None:
    world = lost(7, consent=Consent())
    learner = replace(world.words[0], learner=True, voters=())
    world = replace(world, words=(learner,))
    names = {"east-2": False, "east-3": True}
    records = tuple(replace(each, listed=names.get(each.name, True)) for each in world.memory.replicas)
    left = survivors(with_memory(world, replicas=records))
    assert left is not None
    assert left.fates == (("east-3", VoterFate.DEAD),)
    records = tuple(replace(each, epoch=names.get(each.name, True) - 1) for each in world.memory.replicas)
    left = survivors(with_memory(world, replicas=records))
    assert left is not None
    assert left.fates == (("east-3", VoterFate.DEAD),)


def test_of_two_that_have_as_much_the_one_that_knows_more_to_be_committed_is_the_best() -> None:
    world = lost(7, 7, replicas=5)
    one, other = world.words
    for words in ((replace(one, committed=9), other), (other, replace(one, committed=9))):
        left = survivors(replace(world, words=words))
        assert left is not None
        assert left.best.replica == "east-1"


# --- its data -------------------------------------------------------------------------------------------------------


def test_data_of_an_epoch_that_is_over_is_deleted_with_the_plane_where_its_machine_answers(golden: Golden) -> None:
    world = observe(empty("east", 3))
    kept = tuple(KeptData(site="east", machine=f"east-{each}1", replica=f"east-{each}") for each in "ab")
    world = replace(with_memory(world, kept=kept), deleting=True)
    machines = tuple(replace(each, state=SILENT) if each.name == "east-b1" else each for each in world.machines)
    found = plan(replace(world, machines=machines))
    assert [(type(each), each.machine) for each in found.now if isinstance(each, DeleteKept)] == [
        (DeleteKept, "east-a1")
    ]
    golden(*whats(found))
    assert len(found.waiting) == 1


# --- the founder ----------------------------------------------------------------------------------------------------


def seeding(world: World, *, founder: str = "") -> World:
    """The second epoch has begun from east-1; ``founder``: it is placed on the machine of east-1."""
    origin = SurvivorOrigin(replica="east-1", others=world.words[1:])
    seed = Seed(origin=origin, founder="east-9", revision=5, seen=9)
    memory = replace(world.memory, epoch=1, seed=seed, bootstrap=("east-9",), created=False, next_ordinal=10)
    if not founder:
        return replace(world, memory=memory, words=())
    new = replace(memory.replica("east-1"), name=founder, epoch=1, listed=False, started=False, member_id=0)
    facts = (*world.replicas, replace(world.replica("east-1"), name=founder, units=(), has_data=False, ready=False))
    return replace(world, memory=replace(memory, replicas=(*memory.replicas, new)), words=(), replicas=facts)


def test_the_data_is_waited_for_on_the_machine_of_the_survivor(golden: Golden) -> None:
    world = without(seeding(lost(7), founder="east-9"), "east-1")
    assert not planned(world, RestoreMember).steps
    golden(*(each for each in whats(plan(world)) if "data" in each))
    assert any("east-1" in each for each in whats(plan(world)))


def test_no_member_of_the_epoch_before_is_started_beside_the_founder() -> None:
    world = replace(seeding(lost(7), founder="east-9"), slots=wanted("east", 1))
    seed = world.memory.seed
    assert seed is not None
    world = with_memory(world, seed=replace(seed, restored=True))
    for component in world.programs.every:
        world = with_unit(world, "east-1", component, UnitState.STOPPED)
    world = with_fact(world, "east-9", lambda fact: replace(fact, has_data=True))
    assert of(world) == ["StartUnit etcd of east-9"]


def test_the_next_survivor_takes_the_place_of_one_that_died_before_it_was_copied() -> None:
    world = seeding(lost(9, 7, replicas=5))
    again = replace(world, consent=Consent(epoch=2))
    assert begins(again) is None, "the survivor is there"
    began = begins(without(again, "east-1"))
    assert began is not None
    assert began.origin == SurvivorOrigin(replica="east-2")
    assert begins(without(again, "east-1", "east-2")) is None, "nobody is left"
    assert begins(without(again, "east-1", state=SILENT)) is not None


def test_a_restored_plane_begins_where_it_is_heading() -> None:
    truth = until(moving(3, 3), lambda now, _: len(now.members) == 6)
    (place,) = planned(observe(until(replace(truth, consent=RESTORE), _places)), PlaceReplica).steps
    assert isinstance(place, PlaceReplica)
    assert place.slot.site == "west"


def _places(truth: FaultyTruth, now: object) -> bool:
    return any(each.startswith("PlaceReplica") for each in doing(truth))
