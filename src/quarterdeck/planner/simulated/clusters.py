"""Effects on a whole simulated cluster: that of events is removed, and the main one starts a new epoch."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import Consent
from quarterdeck.model.steps.clusters import (
    BeginEpoch,
    DeleteKept,
    ForgetCluster,
    ReleaseMember,
    RestoreMember,
    WithdrawConsent,
)
from quarterdeck.planner.simulated.effects import Effects, RefusedError, machine_must_answer, must_answer
from quarterdeck.planner.simulated.truth import Truth


def forgotten(truth: Truth, _: ForgetCluster) -> Truth:
    """The members of the cluster are not queried from then on."""
    nobody = tuple((name, replace(each, events=None)) for name, each in truth.replicas)
    return replace(truth, replicas=nobody, events_leader=None, events_full=False)


def released(truth: Truth, step: ReleaseMember) -> Truth:
    """Delete a member's data; etcd still lists the member. Raises RefusedError."""
    must_answer(truth, step.replica)
    kept = replace(truth.replica(step.replica), events_data=False)
    return truth.with_replica(step.replica, kept)


def begun(truth: Truth, step: BeginEpoch) -> Truth:
    """Begin an epoch, of which no member and no leader is known yet."""
    if truth.memory.epoch == step.epoch:
        return truth
    nobody = tuple((name, replace(each, member=None, events=None, warm=False)) for name, each in truth.replicas)
    return replace(
        truth.with_former_voters(),
        replicas=nobody,
        leader=None,
        events_leader=None,
        full=False,
        events_full=False,
    )


def restored(truth: Truth, step: RestoreMember) -> Truth:
    """Restore the data of the survivor, standby or backup to the founder. Raises RefusedError."""
    must_answer(truth, step.replica)
    seed = truth.memory.seed
    source = seed.source if seed is not None else None
    if source is not None:
        survivor = truth.replica(source)
        if Component.ETCD in survivor.units or not survivor.data:
            raise RefusedError(f"{step.origin} is in use, or gone")
    if step.cluster is Cluster.EVENTS:
        return truth.with_replica(step.replica, replace(truth.replica(step.replica), events_data=True))
    return truth.with_replica(step.replica, replace(truth.replica(step.replica), data=True))


def dropped(truth: Truth, step: DeleteKept) -> Truth:
    """Delete the member's data. Raises RefusedError."""
    machine_must_answer(truth, step.machine)
    return truth


def withdrawn(truth: Truth, step: WithdrawConsent) -> Truth:
    """No member has reported anything of an epoch."""
    return replace(truth, consent=Consent(automatic=truth.consent.automatic))


EFFECTS: Effects = {
    ForgetCluster: forgotten,
    ReleaseMember: released,
    BeginEpoch: begun,
    RestoreMember: restored,
    WithdrawConsent: withdrawn,
    DeleteKept: dropped,
}
