"""A lost quorum: when it is lost, who may say so, and how the cluster begins again without the one before ever coming
back.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.faulty_truth import FaultyTruth
from model.stories import doing, is_done, step_words, until, whats, with_fact, with_memory
from model.worlds import empty, settled
from support.components import having
from support.golden import Golden
from support.new_epoch import member_word

from quarterdeck.engine.notices.conditions import judged, unseen
from quarterdeck.engine.notices.events import happenings, warnings
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.epochs import BackupOrigin, Consent, RestorePoint, SurvivorOrigin
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.base import Note
from quarterdeck.model.steps.clusters import BeginEpoch, RestoreMember
from quarterdeck.model.steps.placement import PlaceReplica, ReleaseReplica
from quarterdeck.model.steps.units import StartUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.replica_programs import withhold
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.survivors import Survivors, VoterFate, loss, survivors
from quarterdeck.planner.view import view

NO, YES = Consent(), Consent(epoch=1)
DEAD, CUT_OFF = Power.OFF, Power.FROZEN


def with_power(truth: FaultyTruth, power: Power, *replicas: str) -> FaultyTruth:
    """The machines of these replicas in that state."""
    names = {truth.machine_of(name).name for name in replicas}
    machines = tuple(replace(each, power=power) if each.name in names else each for each in truth.machines)
    return tick(replace(truth, machines=machines))


def left_of_three(power: Power = DEAD, consent: Consent = NO) -> FaultyTruth:
    """East-1 is left of three; nothing else is."""
    truth = replace(settled(empty("east", 3)), consent=consent)
    truth = with_memory(truth, revision=1)
    return with_power(truth, power, "east-2", "east-3")


def speaking(world: World) -> Survivors:
    """What is left where some members speak for themselves."""
    found = survivors(world)
    assert found is not None
    return found


def of(world: World) -> list[str]:
    return [step_words(step) for step in plan(world).now]


# --- whether it is lost ---------------------------------------------------------------------------------------------


def test_a_voter_that_belongs_to_no_replica_is_named_as_such_where_the_quorum_is_lost(golden: Golden) -> None:
    world = replace(observe(settled(empty("east", 1))), membership=None)
    world = replace(world, words=(replace(member_word("east-1", 3), voters=("east-1", "90")),), plane_name="demo")
    found = plan(world).waiting[0]
    golden(found.what)
    golden(found.then)


def test_two_of_three_that_are_off_are_a_lost_quorum() -> None:
    found = speaking(observe(left_of_three()))
    assert found.lost
    assert found.best.replica == "east-1"
    assert (found.of(VoterFate.ALIVE), found.of(VoterFate.DEAD)) == (("east-1",), ("east-2", "east-3"))
    assert not found.others_may_live


def test_machines_that_do_not_answer_are_not_dead() -> None:
    found = speaking(observe(left_of_three(CUT_OFF)))
    assert found.of(VoterFate.CUT_OFF) == ("east-2", "east-3")
    assert found.others_may_live


def test_one_that_does_not_answer_is_no_quorum_by_itself() -> None:
    truth = with_power(with_power(settled(empty("east", 3)), DEAD, "east-2"), CUT_OFF, "east-3")
    found = speaking(observe(truth))
    assert found.lost
    assert not found.others_may_live


def test_a_quorum_that_only_has_to_be_started_is_not_lost() -> None:
    """All have come back after a loss of power, and two of them are just starting."""
    world = observe(left_of_three(consent=YES))
    for name in ("east-2", "east-3"):
        units = tuple((each, UnitState.STOPPED) for each in NAMED)
        world = with_fact(world, name, lambda fact: replace(fact, machine=MachineState.UP, units=units, has_data=True))  # noqa: B023
    found = speaking(world)
    assert not found.lost
    assert of(world) == ["StartUnit etcd of east-2", "StartUnit etcd of east-3"]


def test_data_that_is_gone_is_as_dead_as_a_machine_and_data_that_is_not_seen_is_not() -> None:
    world = observe(left_of_three())
    for name in ("east-2", "east-3"):
        world = with_fact(world, name, lambda fact: replace(fact, machine=MachineState.UP, has_data=False))
    found = speaking(world)
    assert found.lost
    for name in ("east-2", "east-3"):
        world = with_fact(world, name, lambda fact: replace(fact, has_data=None))
    found = speaking(world)
    assert not found.lost


def test_who_follows_a_leader_has_lost_nothing_though_we_hear_no_quorum() -> None:
    world = observe(left_of_three(consent=YES))
    world = replace(world, words=(member_word("east-1", 7, follows=True),))
    found = speaking(world)
    assert not found.lost
    assert not any(isinstance(step, BeginEpoch) for step in plan(world).now)


def test_a_voter_that_no_record_names_may_live_where_nobody_looks() -> None:
    world = observe(left_of_three())
    world = replace(world, words=(member_word("east-1", 7, voters=("east-1", "", "")),))
    found = speaking(world)
    assert found.others_may_live


def test_who_has_applied_most_survives_whatever_its_name_and_term() -> None:
    world = observe(with_power(settled(empty("east", 5)), DEAD, "east-3", "east-4", "east-5"))
    five = tuple(f"east-{each}" for each in range(1, 6))
    words = (member_word("east-1", 9, voters=five), member_word("east-2", 12, term=1, voters=five))
    found = speaking(replace(world, words=words))
    assert [each.replica for each in found.words] == ["east-2", "east-1"]


def test_a_learner_that_has_copied_all_survives_the_only_voter() -> None:
    """It does not say who votes: all that were members and are not known to be learners may."""
    world = replace(observe(left_of_three(consent=YES)), words=(member_word("east-1", 9, learner=True, voters=()),))
    found = speaking(world)
    assert found.fates == (("east-2", VoterFate.DEAD), ("east-3", VoterFate.DEAD))
    assert found.lost
    assert of(world)[0].startswith("BeginEpoch")
    both = replace(world, words=(*world.words, member_word("east-2", 9)))
    found = speaking(both)
    assert found.best.replica == "east-2", "of those that have as much, one that was asked to keep it"


def test_who_has_other_data_than_most_is_not_chosen_while_there_is_another() -> None:
    world = observe(with_power(settled(empty("east", 5)), DEAD, "east-3", "east-4", "east-5"))
    memory = world.memory.with_replica("east-2", lambda record: replace(record, differs=True))
    world = replace(world, memory=memory, words=(member_word("east-1", 9), member_word("east-2", 12)))
    found = speaking(world)
    assert found.best.replica == "east-1"


@pytest.mark.parametrize(
    ("seen", "revision"),
    [
        (5, 5),
        (0, 5),
        (2_000, 5),
    ],
)
def test_no_more_is_promised_than_what_is_known(seen: int, revision: int, golden: Golden) -> None:
    found = loss(Memory(revision=seen), member_word("east-1", 7, revision=revision))
    golden(found)
    assert "acknowledged later" in found


# --- who may say so -------------------------------------------------------------------------------------------------


def test_without_consent_nothing_is_done_and_a_person_is_told_what_to_do() -> None:
    noted = observe(left_of_three())
    assert of(noted) == []
    assert any("quarterdeck recover" in each.then for each in plan(noted).waiting)
    assert any("the quorum of etcd is lost: 1 of 3 voters" in each for each in warnings(noted))
    conditions = {each.type: each for each in judged(unseen(0.0), noted, plan(noted), asked=(), generation=1, now=1.0)}
    assert conditions["Stalled"].reason == "QuorumLost"


@pytest.mark.parametrize("consent", [Consent(epoch=2), Consent(epoch=0), Consent(automatic=True)])
def test_only_the_word_for_the_next_epoch_begins_it(consent: Consent) -> None:
    truth = left_of_three(consent=consent)
    truth = with_memory(truth, quorum_lost=truth.now)
    assert doing(truth) == []


def test_a_cut_off_majority_is_begun_beside_only_on_a_word_that_says_so() -> None:
    noted = left_of_three(CUT_OFF, YES)
    noted = with_memory(noted, quorum_lost=0.0)
    assert doing(noted) == []
    assert any("they may still serve others" in each for each in whats(plan(observe(noted))))
    consented = replace(noted, consent=Consent(epoch=1, even_if_others_live=True))
    assert doing(consented)[0].startswith("BeginEpoch")


def test_automatic_recovery_waits_for_the_others_and_never_goes_on_beside_a_majority_that_may_live() -> None:
    patience = left_of_three().settings.patience
    lost = left_of_three(consent=Consent(automatic=True))
    lost = with_memory(lost, quorum_lost=0.0)
    assert doing(replace(lost, now=patience - 1)) == []
    assert doing(replace(lost, now=patience))[0].startswith("BeginEpoch")
    cut_off = left_of_three(CUT_OFF, Consent(automatic=True))
    cut_off = replace(cut_off, now=9 * patience, memory=replace(cut_off.memory, quorum_lost=0.0))
    assert doing(cut_off) == []


def test_a_quorum_that_is_back_is_not_counted_as_lost_from_before() -> None:
    truth = left_of_three(consent=Consent(automatic=True))
    assert doing(truth) == ["NoteQuorum"]
    truth = with_power(with_memory(truth, quorum_lost=0.0), Power.ON, "east-2")
    truth = until(truth, lambda now, _: now.memory.quorum_lost is None)
    assert truth.elected is not None


def test_a_survivor_that_is_about_to_answer_is_waited_for() -> None:
    """Of five, two are left, and only one has said yet how far it is."""
    truth = with_power(replace(settled(empty("east", 5)), consent=YES), DEAD, "east-3", "east-4", "east-5")
    truth = with_memory(truth, quorum_lost=0.0)
    world = observe(truth)
    one = replace(world, words=tuple(each for each in world.words if each.replica == "east-1"))
    assert of(one) == []
    assert any("member east-2 to report its last entry" in each for each in whats(plan(one)))
    ends = with_fact(one, "east-2", lambda fact: replace(fact, crash_looping=frozenset({Component.ETCD})))
    assert of(ends)[0].startswith("BeginEpoch")


# --- how it begins --------------------------------------------------------------------------------------------------


def begun() -> FaultyTruth:
    return until(left_of_three(consent=YES), lambda truth, _: truth.memory.epoch == 1)


def test_the_founder_gets_the_survivors_data_after_all_of_before_has_ended_and_starts_only_then() -> None:
    truth, kinds = left_of_three(consent=YES), []
    for _ in range(60):
        now = plan(observe(truth)).now
        kinds += [step_words(step) for step in now]
        for step in now:
            truth = apply(truth, step)
        if "StartUnit kube-apiserver of east-4" in kinds:
            break
        truth = truth if now else tick(truth)
    first = kinds.index
    assert first("BeginEpoch") < first("StopUnit etcd of east-1") < first("RestoreMember east-4")
    assert first("RestoreMember east-4") < first("StartUnit etcd of east-4")
    assert first("StartUnit etcd of east-4") < first("StartUnit kube-apiserver of east-4")
    assert truth.memory.replica("east-4").machine == truth.memory.replica("east-1").machine
    assert truth.serving_the_past == frozenset()


def test_nothing_starts_before_the_data_is_there_and_a_restore_that_broke_off_is_made_again() -> None:
    truth = until(begun(), lambda _, now: any(isinstance(step, RestoreMember) for step in now.now))
    world = observe(truth)
    assert of(world) == ["RestoreMember east-4"]
    assert of(observe(tick(truth))) == ["RestoreMember east-4"]


def test_the_database_is_not_copied_while_the_survivor_writes_to_it() -> None:
    truth = until(begun(), lambda _, now: any(isinstance(step, RestoreMember) for step in now.now))
    units = tuple((each, UnitState.STOPPING if each == Component.ETCD else UnitState.STOPPED) for each in NAMED)
    ending = with_fact(observe(truth), "east-1", lambda fact: replace(fact, units=units))
    assert not any(isinstance(step, RestoreMember | StartUnit) for step in plan(ending).now)


def test_as_long_as_the_survivor_cannot_be_stopped_its_database_is_not_copied() -> None:
    truth = begun()
    stop = next(step for step in plan(observe(truth)).now if step_words(step) == "StopUnit etcd of east-1")
    for step in plan(observe(truth)).now:
        truth = apply(truth, step) if step != stop else truth
    failing = (Failing(step=bare(stop), error="it does not end"),)
    world = replace(observe(truth), failing=failing)
    assert "east-4" in truth.recorded
    assert "RestoreMember east-4" not in of(world)
    assert any("etcd of east-1 to stop" in each for each in whats(plan(world)))


def test_a_restore_that_fails_again_and_again_is_no_reason_to_start_without_data(golden: Golden) -> None:
    truth = until(begun(), lambda _, now: any(isinstance(step, RestoreMember) for step in now.now))
    (restore,) = plan(observe(truth)).now
    failing = (Failing(step=bare(restore), error="there is no room"),)
    others = plan(replace(observe(truth), failing=failing)).now
    assert all(isinstance(step, PlaceReplica) for step in others)
    for step in others:
        truth = apply(truth, step)
    world = replace(observe(truth), failing=failing)
    assert of(world) == []
    golden(whats(plan(world)))


def test_nobody_is_asked_to_put_back_data_of_an_epoch_that_is_over() -> None:
    truth = until(begun(), lambda _, now: any(isinstance(step, RestoreMember) for step in now.now))
    world = with_fact(observe(truth), "east-1", lambda fact: replace(fact, has_data=False))
    assert withhold(view(world)) == RuleOutcome()


def test_no_slot_is_taken_to_be_filled_by_what_is_of_an_epoch_that_is_over_while_the_new_one_is_not_read() -> None:
    seen = view(observe(begun()))
    assert seen.lost == {"east-1", "east-2", "east-3"}
    assert seen.wanted == ()


def test_no_replica_of_before_founds_the_new_cluster_for_events() -> None:
    truth = settled(replace(empty("east", 3), programs=having(events=("",))))
    truth = with_power(replace(truth, consent=YES), DEAD, "east-2", "east-3")
    truth = until(truth, lambda now, _: now.memory.epoch == 1)
    truth = until(truth, lambda now, _: now.memory.events.exists)
    assert {"east-1", "east-2", "east-3"}.isdisjoint(truth.memory.events.bootstrap)
    assert truth.memory.events.epoch == 2


def begun_with_two() -> FaultyTruth:
    """Of five, two are left, and the epoch begins from the first of them."""
    truth = with_power(replace(settled(empty("east", 5)), consent=YES), DEAD, "east-3", "east-4", "east-5")
    return until(truth, lambda now, _: now.memory.epoch == 1)


def test_a_survivor_that_dies_before_it_was_copied_is_followed_by_the_next_best_on_another_word() -> None:
    truth = begun_with_two()
    seed = truth.memory.seed
    assert seed is not None
    (other,) = seed.candidates[1:]
    dead = with_power(truth, DEAD, seed.candidates[0])
    dead = until(dead, lambda _, now: not now.now)
    waiting = [each.then for each in plan(observe(dead)).waiting]
    assert any("quarterdeck recover" in each for each in waiting)
    assert any(f"{seed.candidates[0]} was lost" in each for each in warnings(observe(dead)))
    assert not any(isinstance(step, RestoreMember) for step in plan(observe(dead)).now)
    again = until(replace(dead, consent=Consent(epoch=2)), lambda now, _: now.memory.epoch == 2)
    assert again.memory.seed is not None
    assert again.memory.seed.candidates[0] == other
    serves = until(again, lambda now, _: bool(now.serving))
    back = after_one_look(with_power(serves, Power.ON, seed.candidates[0]))
    assert back.serving_the_past == frozenset()


def test_a_survivor_that_is_back_before_anybody_said_anything_is_copied_as_it_was_to_be() -> None:
    truth = begun_with_two()
    seed = truth.memory.seed
    assert seed is not None
    dead = until(with_power(truth, DEAD, seed.candidates[0]), lambda _, now: not now.now)
    dead = replace(dead, consent=replace(dead.consent, automatic=True))
    noted = until(dead, lambda now, _: now.memory.quorum_lost is not None)
    back = until(with_power(noted, Power.ON, seed.candidates[0]), lambda now, _: bool(now.serving))
    assert (back.memory.epoch, back.memory.quorum_lost) == (1, None)


def test_a_crash_at_any_step_goes_on_with_the_same_epoch() -> None:
    """The consent is used up: none but the first epoch begins."""
    truth = until(begun(), lambda now, _: bool(now.serving))
    assert truth.memory.epoch == 1
    assert not any(isinstance(step, BeginEpoch) for step in plan(observe(truth)).now)


def after_one_look(truth: FaultyTruth) -> FaultyTruth:
    """What was only to be written down is written before anything is done."""
    now = plan(observe(truth)).now
    while now and all(isinstance(step, Note) for step in now):
        for step in now:
            truth = apply(truth, step)
        now = plan(observe(truth)).now
    for step in now:
        truth = apply(truth, step)
    return truth


@pytest.mark.parametrize("rounds", range(0, 40, 3))
def test_the_dead_may_come_back_at_any_moment_and_never_take_writes_beside_the_new_epoch(rounds: int) -> None:
    truth = begun()
    for _ in range(rounds):
        now = plan(observe(truth)).now
        for step in now:
            truth = apply(truth, step)
        truth = truth if now else tick(truth)
    there = [name for name in ("east-2", "east-3") if name in truth.recorded]
    truth = after_one_look(with_power(truth, Power.ON, *there))
    assert truth.serving_the_past == frozenset()
    truth = until(truth, is_done)
    assert truth.memory.epoch == 1
    assert len(truth.serving) == 3


def test_it_grows_back_to_as_many_as_before_and_keeps_all_data_of_before() -> None:
    truth = until(with_power(begun(), Power.ON, "east-2", "east-3"), is_done)
    assert len(truth.serving) == 3
    assert {each.name for each in truth.memory.replicas}.isdisjoint({"east-1", "east-2", "east-3"})
    assert {each.replica for each in truth.memory.kept} == {"east-1", "east-2", "east-3"}
    assert any("is kept on machine" in each.message for each in happenings(observe(truth)))


def test_what_is_let_go_of_a_former_epoch_keeps_its_data_and_nothing_else_does() -> None:
    truth = until(begun(), lambda _, now: any(isinstance(step, ReleaseReplica) for step in now.now))
    steps = [step for step in plan(observe(truth)).now if isinstance(step, ReleaseReplica)]
    assert {(step.replica, step.keep) for step in steps} == {("east-1", True)}


def test_data_that_was_kept_goes_with_its_plane_and_not_before_all_else() -> None:
    truth = until(with_power(begun(), Power.ON, "east-2", "east-3"), is_done)
    truth = replace(truth, deleting=True)
    last = until(truth, lambda now, _: not now.memory.replicas)
    assert doing(last) == ["DeleteKept east-1", "DeleteKept east-2", "DeleteKept east-3"]
    gone = until(last, is_done)
    assert gone.memory.kept == ()


def test_the_same_word_written_twice_begins_one_epoch() -> None:
    origin = SurvivorOrigin(replica="east-1")
    step = BeginEpoch(site="", why="", epoch=1, origin=origin, founder="east-4", revision=5, seen=5)
    once = step.remembered(left_of_three().memory, 1.0)
    assert step.remembered(once, 2.0) == once


def test_no_name_is_used_again_for_the_founder() -> None:
    truth = begun()
    assert truth.memory.next_ordinal == 5
    placed = [step for step in plan(observe(until(truth, is_placed))).now if isinstance(step, PlaceReplica)]
    assert [step.replica for step in placed] == ["east-4"]


def is_placed(_: FaultyTruth, now: object) -> bool:
    return any(isinstance(step, PlaceReplica) for step in getattr(now, "now", ()))


# --- from a backup --------------------------------------------------------------------------------------------------


#: A person restores revision 5 of a backup.
BACKUP = BackupOrigin(store="file:///backups", folder="demo/1", epoch=0)
RESTORE = Consent(epoch=1, restore=RestorePoint(origin=BACKUP, revision=5))


def with_cordon(truth: FaultyTruth, *replicas: str) -> FaultyTruth:
    names = {truth.machine_of(name).name for name in replicas}
    machines = tuple(replace(each, cordoned=each.cordoned or each.name in names) for each in truth.machines)
    return replace(truth, machines=machines)


def serving_restored() -> FaultyTruth:
    """A plane of three that serves, and is restored."""
    return replace(settled(empty("east", 3)), consent=RESTORE)


def placed(truth: FaultyTruth) -> PlaceReplica:
    """Where the founder is placed."""
    truth = until(truth, is_placed)
    (found,) = (step for step in plan(observe(truth)).now if isinstance(step, PlaceReplica))
    return found


def test_a_plane_that_serves_stops_before_its_founder_gets_the_data_of_the_backup(golden: Golden) -> None:
    truth, kinds = serving_restored(), []
    for _ in range(60):
        now = plan(observe(truth)).now
        for step in now:
            if isinstance(step, BeginEpoch | RestoreMember | PlaceReplica):
                golden(f"{step_words(step)}: {step.why}")
        kinds += [step_words(step) for step in now]
        for step in now:
            truth = apply(truth, step)
        if "StartUnit kube-apiserver of east-4" in kinds:
            break
        truth = truth if now else tick(truth)
    first = kinds.index
    for name in ("east-1", "east-2", "east-3"):
        assert first("BeginEpoch") < first(f"StopUnit etcd of {name}") < first("RestoreMember east-4")
        assert first(f"StopUnit kube-apiserver of {name}") < first("RestoreMember east-4")
    assert first("RestoreMember east-4") < first("StartUnit etcd of east-4")
    assert truth.serving_the_past == frozenset()


def test_a_backup_waits_for_the_data_and_for_what_still_runs(golden: Golden) -> None:
    truth = until(serving_restored(), lambda _, now: any(isinstance(step, RestoreMember) for step in now.now))
    golden(whats(plan(observe(truth))))
    units = tuple((each, UnitState.STOPPING if each == Component.ETCD else UnitState.STOPPED) for each in NAMED)
    ending = with_fact(observe(truth), "east-2", lambda fact: replace(fact, units=units))
    assert not any(isinstance(step, RestoreMember | StartUnit) for step in plan(ending).now)
    golden(whats(plan(ending)))


def test_a_backup_waits_for_a_majority_that_does_not_answer_or_a_word_that_says_so(golden: Golden) -> None:
    truth = left_of_three(CUT_OFF, RESTORE)
    assert not any(isinstance(step, BeginEpoch) for step in plan(observe(truth)).now)
    (wait,) = (each for each in plan(observe(truth)).waiting if "two epochs" in each.what)
    golden(wait.what)
    golden(wait.then)
    assert doing(replace(truth, consent=replace(RESTORE, even_if_others_live=True)))[0].startswith("BeginEpoch")


@pytest.mark.parametrize("epoch", [0, 2])
def test_only_the_word_for_the_next_epoch_restores_a_backup(epoch: int) -> None:
    assert doing(replace(serving_restored(), consent=replace(RESTORE, epoch=epoch))) == []


def test_the_founder_is_placed_on_a_machine_that_answers() -> None:
    truth = with_power(serving_restored(), DEAD, "east-1")
    assert placed(truth).machine in {truth.machine_of(name).name for name in ("east-2", "east-3")}


def test_the_founder_is_not_placed_on_a_cordoned_machine() -> None:
    truth = with_cordon(serving_restored(), "east-1", "east-2")
    assert placed(truth).machine == truth.machine_of("east-3").name


def test_where_all_former_machines_are_gone_the_founder_gets_a_free_one() -> None:
    truth = with_power(serving_restored(), DEAD, "east-1", "east-2", "east-3")
    former = {truth.machine_of(name).name for name in ("east-1", "east-2", "east-3")}
    found = placed(truth)
    assert found.machine not in former
    assert found.slot.site == "east"


def test_a_plane_with_no_replicas_is_restored_on_free_machines() -> None:
    truth = replace(empty("east", 3), consent=RESTORE)
    truth = until(truth, lambda now, _: bool(now.serving))
    assert truth.memory.epoch == 1
    assert truth.memory.seed is not None
    assert truth.memory.seed.origin == BACKUP
    assert len(until(truth, is_done).serving) == 3


def test_with_no_machine_for_the_founder_the_plane_says_what_it_waits_for(golden: Golden) -> None:
    truth = replace(empty("east", 1), consent=RESTORE)
    truth = replace(truth, machines=tuple(replace(each, cordoned=True) for each in truth.machines))
    truth = until(truth, lambda now, _: now.memory.epoch == 1)
    assert not any(isinstance(step, PlaceReplica) for step in plan(observe(truth)).now)
    golden(whats(plan(observe(truth))))
