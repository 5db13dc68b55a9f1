"""The simulated main cluster begins anew."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.components import Component
from quarterdeck.model.steps.recovery import BeginEpoch, DeleteKept, RestoreMember, WithdrawConsent
from quarterdeck.model.world import Consent
from quarterdeck.planner.simulated.effects import Effects, RefusedError, must_answer
from quarterdeck.planner.simulated.parts import Power
from quarterdeck.planner.simulated.things import all_of
from quarterdeck.planner.simulated.truth import Truth


def begun(truth: Truth, step: BeginEpoch) -> Truth:
    """Who voted before is remembered: what runs of it may still be a quorum for those that it reaches."""
    if truth.memory.epoch == step.epoch:
        return truth
    voters = frozenset(name for name, member in truth.members.items() if not member.learner)
    nobody = tuple((name, replace(each, member=None, events=None, warm=False)) for name, each in truth.replicas)
    return replace(
        truth,
        replicas=nobody,
        former=(*truth.former, voters),
        leader=None,
        events_leader=None,
        full=False,
        events_full=False,
    )


def restored(truth: Truth, step: RestoreMember) -> Truth:
    """The founder has what the survivor has. Raises RefusedError."""
    must_answer(truth, step.replica)
    survivor = truth.replica(step.survivor)
    if Component.ETCD in survivor.units or not survivor.data:
        raise RefusedError(f"the data of {step.survivor} is in use, or gone")
    return truth.with_replica(step.replica, replace(truth.replica(step.replica), data=True))


def dropped(truth: Truth, step: DeleteKept) -> Truth:
    """Nothing is left of it. Raises RefusedError."""
    where = next(each for each in truth.machines if each.name == step.machine)
    if where.power is not Power.ON or {where.name, all_of(where.site)} & truth.mute:
        raise RefusedError(f"machine {step.machine} does not answer")
    return truth


def withdrawn(truth: Truth, step: WithdrawConsent) -> Truth:
    """Nobody has said anything of an epoch."""
    return replace(truth, consent=Consent(automatic=truth.consent.automatic))


EFFECTS: Effects = {
    BeginEpoch: begun,
    RestoreMember: restored,
    WithdrawConsent: withdrawn,
    DeleteKept: dropped,
}
