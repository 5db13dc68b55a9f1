"""Members of dead machines come back elsewhere with their data, where the storage class can; where not, others come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.stories import is_done, steps_until, until, with_memory
from model.worlds import empty, settled
from support.golden import Golden

from quarterdeck.engine.notices.events import happenings
from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.epochs import Consent
from quarterdeck.model.memory import LeftBehind
from quarterdeck.model.steps.clusters import BeginEpoch, WithdrawConsent
from quarterdeck.model.steps.healing import Condemn
from quarterdeck.model.steps.members import ReaddressMember
from quarterdeck.model.steps.placement import AttachVolumes, LeaveMachine
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.recovery import advice
from quarterdeck.planner.simulated import observe, tick
from quarterdeck.planner.simulated.parts import Power, SimMachine
from quarterdeck.planner.simulated.truth import Truth

HEALING = HealingBounds(budget=3, window=60.0, after=2.0, later=10.0)
YES = Consent(epoch=1)


def plane(*machines: str, replicas: int = 3, reattachable: bool = True, healing: HealingBounds = HEALING) -> Truth:
    """A plane at east as wanted, whose site has these machines (none named: two in each zone)."""
    truth = empty("east", replicas, sites=("east",))
    if machines:
        there = tuple(SimMachine(name=f"east-{each}", site="east", zone=each[0]) for each in machines)
        truth = replace(truth, machines=there)
    settings = replace(truth.settings, healing=healing)
    return settled(replace(truth, reattachable=reattachable, settings=settings))


def powered(truth: Truth, power: Power, *machines: str) -> Truth:
    return replace(
        truth, machines=tuple(replace(each, power=power) if each.name in machines else each for each in truth.machines)
    )


def dead(truth: Truth, *replicas: str, power: Power = Power.OFF) -> Truth:
    return powered(truth, power, *(truth.memory.replica(each).machine for each in replicas))


def kinds(steps: list[str], *of: type) -> list[str]:
    names = [each.__name__ for each in of]
    return [each.split()[0] for each in steps if each.split()[0] in names]


def planned(world: World, kind: type) -> list[object]:
    return [step for step in plan(world).now if isinstance(step, kind)]


@pytest.mark.parametrize("power", [Power.OFF, Power.FROZEN], ids=str)
def test_a_member_of_a_dead_machine_returns_on_another_one_with_its_identity(power: Power, golden: Golden) -> None:
    truth = plane()
    healed = until(dead(truth, "east-2", power=power), is_done)
    steps = steps_until(dead(truth, "east-2", power=power), is_done)
    assert kinds(steps, AttachVolumes, ReaddressMember, Condemn) == ["AttachVolumes", "ReaddressMember"]
    assert {name: each.id for name, each in healed.members.items()} == {n: e.id for n, e in truth.members.items()}
    assert not any(each.misplaced for each in healed.members.values())
    was, now = truth.memory.replica("east-2"), healed.memory.replica("east-2")
    assert (was.machine, now.machine, now.slot) == ("east-b1", "east-b2", was.slot)
    assert "east-2" in healed.serving
    messages = {each.reason: each.message for each in happenings(observe(healed))}
    golden(messages["ReplicaReattached"])
    assert any("leftovers of east-2 on machine east-b1" in each for each in plan(observe(healed)).leftovers)


def test_what_it_left_goes_once_that_machine_is_back() -> None:
    healed = until(dead(plane(), "east-2"), is_done)
    assert healed.memory.left == (LeftBehind(site="east", machine="east-b1", replica="east-2"),)
    steps = steps_until(powered(healed, Power.ON, "east-b1"), is_done)
    assert kinds(steps, LeaveMachine) == ["LeaveMachine"]
    assert until(powered(healed, Power.ON, "east-b1"), is_done).memory.left == ()


def test_where_volumes_are_local_another_member_comes_and_the_reason_is_told(golden: Golden) -> None:
    steps = steps_until(dead(plane(reattachable=False), "east-2"), is_done)
    assert kinds(steps, AttachVolumes, Condemn) == ["Condemn"]
    noted = until(dead(plane(reattachable=False), "east-2"), lambda _, now: any(map(_condemns, now.now)))
    (step,) = planned(observe(noted), Condemn)
    assert isinstance(step, Condemn)
    golden(step.why)


def _condemns(step: object) -> bool:
    return isinstance(step, Condemn)


def _attaches(step: object) -> bool:
    return isinstance(step, AttachVolumes)


def about_to_attach(truth: Truth) -> World:
    return observe(until(truth, lambda _, now: any(map(_attaches, now.now))))


def test_what_cannot_be_made_sure_of_is_not_waited_for() -> None:
    world = about_to_attach(dead(plane(), "east-2"))
    (step,) = planned(world, AttachVolumes)
    assert isinstance(step, AttachVolumes)
    failing = replace(world, failing=(Failing(step=bare(step), error="it is not sure"),))
    assert len(planned(failing, Condemn)) == 1
    assert planned(failing, AttachVolumes) == []


def test_a_volume_stays_in_its_zone() -> None:
    steps = steps_until(dead(plane("a1", "b1", "c1", "c2"), "east-2"), is_done)
    assert kinds(steps, AttachVolumes, Condemn) == ["Condemn"]


def test_it_may_go_back_to_the_machine_that_it_was_taken_from() -> None:
    moved = until(dead(plane(), "east-2"), is_done)
    back = until(powered(dead(moved, "east-2"), Power.ON, "east-b1"), is_done)
    assert back.memory.replica("east-2").machine == "east-b1"
    assert back.memory.left == (LeftBehind(site="east", machine="east-b2", replica="east-2"),)


def test_all_that_holds_healing_back_holds_that_back_as_well() -> None:
    spent = replace(HEALING, budget=0)
    still = dead(plane(healing=spent), "east-2")
    for _ in range(40):
        assert planned(observe(still), AttachVolumes) == []
        still = tick(still)


def test_a_replica_is_where_its_volume_is_whatever_became_of_its_machine() -> None:
    world = observe(plane())
    facts = tuple(
        replace(each, volume_at="east-b2", has_data=None) if each.name == "east-2" else each for each in world.replicas
    )
    (step,) = planned(replace(world, replicas=facts), AttachVolumes)
    assert isinstance(step, AttachVolumes)
    assert (step.replica, step.machine, step.source) == ("east-2", "east-b2", "east-b1")


# A lost quorum


def lost(power: Power = Power.OFF, consent: Consent | None = None, **how: bool) -> Truth:
    """East-1 is left of three."""
    truth = replace(plane(**how), consent=consent or Consent())  # type: ignore[arg-type]
    return tick(dead(truth, "east-2", "east-3", power=power))


def test_a_lost_quorum_comes_back_with_a_dead_member_before_anything_is_given_up() -> None:
    truth = lost()
    steps = steps_until(truth, is_done)
    assert kinds(steps, AttachVolumes, BeginEpoch, Condemn) == ["AttachVolumes", "AttachVolumes"]
    healed = until(truth, is_done)
    assert (healed.memory.epoch, set(healed.members)) == (0, {"east-1", "east-2", "east-3"})
    assert healed.serving == {"east-1", "east-2", "east-3"}


def test_no_more_members_than_it_takes_are_moved_before_there_is_a_quorum() -> None:
    assert len(planned(about_to_attach(lost()), AttachVolumes)) == 1


def test_two_that_come_back_at_once_get_a_machine_each() -> None:
    truth = replace(plane("a1", "a2", "a3", "a4", "b1", "b2", "c1", replicas=5), consent=YES)
    alive = next(each.name for each in truth.memory.replicas if each.slot.zone == "c")
    gone = [each.name for each in truth.memory.replicas if each.name != alive]
    steps = planned(observe(tick(dead(truth, *gone))), AttachVolumes)
    assert len({step.machine for step in steps if isinstance(step, AttachVolumes)}) == len(steps) == 2


def test_that_comes_before_a_new_epoch_that_a_person_has_consented_to() -> None:
    world = observe(lost(consent=YES))
    (step,) = planned(world, AttachVolumes)
    assert isinstance(step, AttachVolumes)
    failing = tuple(
        Failing(step=bare(replace(step, replica=name, machine=to, source=source)), error="it is not sure")
        for name, to, source in (("east-2", "east-b2", "east-b1"), ("east-3", "east-c2", "east-c1"))
    )
    assert len(planned(replace(world, failing=failing), BeginEpoch)) == 1, "what is refused holds nobody up"


def test_where_volumes_are_local_only_the_epoch_is_left() -> None:
    assert len(planned(observe(lost(consent=YES, reattachable=False)), BeginEpoch)) == 1


def test_nothing_is_taken_from_a_majority_that_may_live_where_we_cannot_see_it() -> None:
    still = lost(Power.FROZEN)
    still = with_memory(still, quorum_lost=still.now - 100)
    assert planned(observe(still), AttachVolumes) == []
    sure = replace(still, consent=Consent(epoch=1, even_if_others_live=True))
    assert len(planned(observe(sure), AttachVolumes)) == 1


@pytest.mark.parametrize("reattachable", [True, False])
def test_a_person_who_may_say_that_they_are_gone_is_told_what_comes_of_it(reattachable: bool, golden: Golden) -> None:
    still = lost(Power.FROZEN, reattachable=reattachable)
    sure = replace(still, consent=Consent(epoch=1, even_if_others_live=True))
    unsure, advised = advice(observe(still)), advice(observe(sure))
    golden(unsure)
    assert "waiting for" not in advised, "nothing is waited for then"
    golden(advised)


def test_machines_that_are_only_booting_have_their_time() -> None:
    noted = until(lost(), lambda truth, _: truth.memory.quorum_lost is not None)
    waits = plan(observe(noted))
    assert waits.now == ()
    assert any("volumes of dead machines are attached to other machines" in each.then for each in waits.waiting)


def test_without_a_budget_a_person_is_asked() -> None:
    truth = tick(dead(plane(healing=replace(HEALING, budget=0)), "east-2", "east-3"))
    still = with_memory(truth, quorum_lost=truth.now - 100)
    assert planned(observe(still), AttachVolumes) == []
    assert planned(observe(replace(still, consent=YES)), AttachVolumes)


def test_a_word_for_an_epoch_that_was_not_needed_is_no_word_for_the_next_one() -> None:
    truth = lost(consent=YES)
    steps = steps_until(truth, is_done)
    assert kinds(steps, AttachVolumes, WithdrawConsent, BeginEpoch)[:2] == ["AttachVolumes", "WithdrawConsent"]
    assert until(truth, is_done).consent.epoch is None


def test_a_machine_that_answers_keeps_what_it_has() -> None:
    world = observe(lost())
    assert {each.machine for each in world.replicas} == {MachineState.UP, MachineState.DOWN}
    (step,) = planned(about_to_attach(lost()), AttachVolumes)
    assert isinstance(step, AttachVolumes)
    assert step.source != "east-a1"
