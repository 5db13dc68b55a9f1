"""The etcd cluster for events alone: when it is restored and removed, and how a replica gets another member of it."""

from __future__ import annotations

from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import Seed
from quarterdeck.model.memory import Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import ForgetCluster, ReleaseMember, RestoreMember
from quarterdeck.model.steps.plan import Wait
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import IDLE, MachineState, UnitState
from quarterdeck.model.world import World
from quarterdeck.planner import next_steps
from quarterdeck.planner.members import is_stale
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.reading import Reading


def dissolve(view: Reading) -> RuleOutcome:
    """The events' cluster is removed once no running apiserver stores events there; its data is not needed."""
    world = view.world
    used = any(
        view.keeps_events_apart(record) and not view.apiserver_off(record)
        for record in world.memory.replicas
        if record.name not in view.lost
    )
    if world.memory.events.exists and not view.wants_events and not used:
        why = "no apiserver stores events there any longer"
        return RuleOutcome((ForgetCluster(site="", why=why, cluster=Cluster.EVENTS),))
    stale = [each for each in world.memory.replicas if is_stale(world, each)]
    why = "that cluster no longer exists"
    return RuleOutcome(tuple(step for record in stale for step in _release(view, record, why)))


def restore(view: Reading) -> RuleOutcome:
    """The founder of the events' cluster gets the data of a backup, after that of the main cluster. Where that fails,
    or the founder is gone, the events' cluster begins empty: events are never worth an outage.
    """
    memory = view.world.memory
    seed = memory.events.seed
    if seed is None or seed.restored or memory.seeding is not None:
        return RuleOutcome()
    if why := _not_restored(view, seed):
        return RuleOutcome((ForgetCluster(site="", why=f"{why}, so it begins empty", cluster=Cluster.EVENTS),))
    if not memory.events.exists:
        return RuleOutcome()  # its founder is about to be recorded
    founder = memory.replica(seed.founder)
    if not view.reachable(founder):
        return RuleOutcome(waiting=(next_steps.machine(view.world, founder, ", which gets the events"),))
    why = f"it begins at etcd revision {seed.revision:,} of its backup"
    step = RestoreMember(site=founder.site, why=why, replica=founder.name, origin=seed.origin, cluster=Cluster.EVENTS)
    return RuleOutcome((step,))


def _not_restored(view: Reading, seed: Seed) -> str:
    """Why the events' cluster does not get its data; "" if it does."""
    if not view.wants_events:
        return "no replica stores events separately"
    founder = next((each for each in view.world.memory.replicas if each.name == seed.founder), None)
    if founder is None or view.fact(founder).machine is MachineState.DOWN:
        return f"{seed.founder} is gone, which was to get the data"
    for each in view.world.failing:
        if isinstance(each.step, RestoreMember) and each.step.cluster is Cluster.EVENTS:
            return each.error
    return ""


def renew(view: Reading) -> RuleOutcome:
    """A replica whose member of the events' cluster is lost, and was removed, gets another one on its machine: the
    leftovers of the previous one are removed first. No data is lost: a quorum of the others has the events.
    """
    events = view.events
    if events is None or events.world.membership is None or not view.wants_events:
        return RuleOutcome()
    out = (each for each in view.wanted if each.name in events.lost and events.member(each) is None)
    why = "it is no longer a member, and another one replaces it"
    none = view.world.memory.leaving.union(view.world.cordoned)
    there = [each for each in out if each.events is not None and each.name not in none]
    return RuleOutcome(tuple(step for record in there for step in _release(view, record, why)))


def _release(view: Reading, record: Replica, why: str) -> tuple[Step, ...]:
    state = view.unit(record, Component.EVENTS_ETCD)
    if state is UnitState.UNKNOWN:
        return ()  # its machine does not answer: it is reported as a leftover
    if state not in IDLE:
        component = Component.EVENTS_ETCD
        return (StopUnit(site=record.site, why=why, replica=record.name, component=component),)
    return (ReleaseMember(site=record.site, why=why, replica=record.name, cluster=Cluster.EVENTS),)


def left_behind(view: Reading) -> tuple[str, ...]:
    """What must still be cleaned up when its machine is back."""
    stale = [each for each in view.world.memory.replicas if is_stale(view.world, each) and not view.reachable(each)]
    return tuple(f"the events' etcd of {each.name} on machine {each.machine}, which does not answer" for each in stale)


def not_read(world: World) -> Wait:
    """The wait while the members of the events' cluster are unknown."""
    lasts = f"bring back the members that do not answer ({world.command('status')} lists them)"
    then = f"{lasts}; if they are gone for good, set spec.etcd.events.separate to false"
    return Wait("a quorum of the members of the events' etcd to answer", then)


def not_ready_for(view: Reading, record: Replica) -> tuple[Wait, ...]:
    """Why a replica cannot be restarted now to store events separately: all wanted replicas must vote in the events'
    cluster, this one too unless its member of it is restarted with it.
    """
    events = view.events
    assert events is not None, "replicas that store events separately need a cluster for them"
    if events.world.membership is None:
        return (not_read(view.world),)
    restarts = Component.EVENTS_ETCD in view.world.stops(view.change(record))
    needed = [each for each in view.wanted if not (restarts and each.name == record.name)]
    sick = [each for each in needed if not events.is_healthy_voter(each)]
    return tuple(next_steps.voter(view.world, each, Cluster.EVENTS) for each in sick)
