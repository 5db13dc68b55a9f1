"""The etcd cluster that has the events alone: when there is to be one, how it goes, and how a replica gets another
member of it.
"""

from __future__ import annotations

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import ForgetCluster, ReleaseMember
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import IDLE, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.members import is_stale
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.reading import Reading


def dissolve(view: Reading) -> RuleOutcome:
    """The events' cluster goes once nothing that runs keeps events there; nobody misses what it has."""
    world = view.world
    used = any(
        view.keeps_events_apart(record) and not view.apiserver_off(record)
        for record in world.memory.replicas
        if record.name not in view.lost
    )
    if world.memory.events.exists and not view.wants_events and not used:
        why = "no apiserver keeps events there any more"
        return RuleOutcome((ForgetCluster(site="", why=why, cluster=Cluster.EVENTS),))
    stale = [each for each in world.memory.replicas if is_stale(world, each)]
    why = "there is no such cluster any more"
    return RuleOutcome(tuple(step for record in stale for step in _release(view, record, why)))


def renew(view: Reading) -> RuleOutcome:
    """A replica whose member of the events' cluster is lost, and was taken out, gets another one where it is: what it
    had of the one before goes first. Nobody misses that: a quorum of the others has the events.
    """
    events = view.events
    if events is None or events.world.membership is None or not view.wants_events:
        return RuleOutcome()
    out = (each for each in view.wanted if each.name in events.lost and events.member(each) is None)
    why = "it is no member any more, and another one comes in its place"
    none = view.world.memory.leaving.union(view.world.cordoned)
    there = [each for each in out if each.events is not None and each.name not in none]
    return RuleOutcome(tuple(step for record in there for step in _release(view, record, why)))


def _release(view: Reading, record: Replica, why: str) -> tuple[Step, ...]:
    state = view.unit(record, Component.EVENTS_ETCD)
    if state is UnitState.UNKNOWN:
        return ()  # its machine does not answer: that is a leftover
    if state not in IDLE:
        component = Component.EVENTS_ETCD
        return (StopUnit(site=record.site, why=why, replica=record.name, component=component),)
    return (ReleaseMember(site=record.site, why=why, replica=record.name, cluster=Cluster.EVENTS),)


def left_behind(view: Reading) -> tuple[str, ...]:
    """What is still to be cleaned up when its machine is back."""
    stale = [each for each in view.world.memory.replicas if is_stale(view.world, each) and not view.reachable(each)]
    return tuple(f"the events' etcd of {each.name} on machine {each.machine}, which does not answer" for each in stale)


def not_read(world: World) -> Wait:
    """That nobody knows the members of the events' cluster."""
    lasts = f"bring back the members that do not answer ({world.command('status')} lists them)"
    then = f"{lasts}; if they are gone for good, set spec.etcd.events.separate to false"
    return Wait("a quorum of the members of the events' etcd to answer", then)


def not_ready_for(view: Reading, record: Replica) -> tuple[Wait, ...]:
    """Why a replica cannot be started anew to keep events apart now: all that are wanted must vote in their cluster,
    itself too unless its member of it is started anew with it.
    """
    events = view.events
    assert events is not None, "whoever is to keep events apart wants a cluster for them"
    if events.world.membership is None:
        return (not_read(view.world),)
    anew = Component.EVENTS_ETCD in view.world.stops(view.change(record))
    needed = [each for each in view.wanted if not (anew and each.name == record.name)]
    sick = [each for each in needed if not events.is_healthy_voter(each)]
    return tuple(next_steps.voter(view.world, each, Cluster.EVENTS) for each in sick)
