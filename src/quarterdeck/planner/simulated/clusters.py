"""The simulated cluster for events goes."""

from __future__ import annotations

from dataclasses import replace

from quarterdeck.model.steps.clusters import ForgetCluster, ReleaseMember
from quarterdeck.planner.simulated.effects import Effects, must_answer
from quarterdeck.planner.simulated.truth import Truth


def forgotten(truth: Truth, _: ForgetCluster) -> Truth:
    """Nobody asks its members any more."""
    nobody = tuple((name, replace(each, events=None)) for name, each in truth.replicas)
    return replace(truth, replicas=nobody, events_leader=None, events_full=False)


def released(truth: Truth, step: ReleaseMember) -> Truth:
    """Nothing is left of a member but what etcd lists. Raises RefusedError."""
    must_answer(truth, step.replica)
    kept = replace(truth.replica(step.replica), events_data=False)
    return truth.with_replica(step.replica, kept)


EFFECTS: Effects = {ForgetCluster: forgotten, ReleaseMember: released}
