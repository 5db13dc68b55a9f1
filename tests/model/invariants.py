"""The ten invariants of the design, each checked at every step that the planner takes.

A fault can take away a property; a step must not. So each is a claim on one step: what held before holds after.
"""

from __future__ import annotations

from quarterdeck.model.steps import (
    AddLearner,
    DecideBootstrap,
    Plan,
    Promote,
    ReleaseReplica,
    RemoveMember,
    SetBackends,
    SetRecord,
    StartUnit,
    Step,
    StopBalancer,
    StopUnit,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.world import Component, Health, World
from quarterdeck.planner.quorum import Voter, has_quorum, home
from quarterdeck.planner.simulator import Power, Truth, elected, healthy, members, serving

TAKES_AWAY = (RemoveMember, Swap, StopUnit, ReleaseReplica, StopBalancer)
NEEDS_A_QUORUM = (*TAKES_AWAY, AddLearner, Promote, TransferLeadership)


class Broken(AssertionError):
    """An invariant does not hold."""


def claim(holds: bool, text: str) -> None:
    if not holds:
        raise Broken(text)


def true_voters(truth: Truth) -> frozenset[Voter]:
    well = healthy(truth)
    return frozenset(
        Voter(name, truth.memory.replica(name).site, name in well)
        for name, member in members(truth).items()
        if not member.learner
    )


def flat(step: Step) -> tuple[Step, ...]:
    return step.changes if isinstance(step, Swap) else (step,)


def check_plan(world: World, plan: Plan) -> None:
    """What a plan may hold, given nothing but its observation."""
    steps = [change for step in plan.now for change in flat(step)]
    if world.membership is None:
        claim(
            world.deleting or not any(isinstance(step, NEEDS_A_QUORUM) for step in plan.now), "8: unknown is not zero"
        )
    for step in steps:
        if isinstance(step, Promote):
            member = world.membership.of(step.replica) if world.membership else None
            known = member is not None and member.learner and member.health is Health.HEALTHY and member.lag is not None
            claim(known and member.lag <= world.settings.lag_bound, f"2: {step.replica} is promoted while it lags")
        if isinstance(step, DecideBootstrap):
            claim(not world.memory.bootstrap and not world.memory.created, "9: the cluster is founded twice")
        if isinstance(step, StartUnit) and step.component is Component.ETCD:
            started = world.memory.replica(step.replica).started
            claim(not started or world.replica(step.replica).has_data is True, "9: a member starts on an empty folder")
    added = [step.replica for step in steps if isinstance(step, AddLearner)]
    if added and world.membership is not None:
        needed = {
            record.name
            for record in world.memory.replicas
            if record.slot in world.slots and world.membership.of(record.name) is None and not record.listed
        }
        reachable = {name for name in needed if world.replica(name).machine.value == "up"}
        claim(reachable <= set(added), "2: learners are added one after the other")


def check_observed(world: World, plan: Plan) -> None:
    """Rule 1 and rule 4, on the healthy voters of the observation, change by change."""
    if world.membership is None:
        return
    sites = {record.name: record.site for record in world.memory.replicas}
    now = {
        member.replica: Voter(member.replica, sites.get(member.replica, ""), member.health is Health.HEALTHY)
        for member in world.membership.voters
    }
    learners = {member.replica for member in world.membership.learners}
    for step in (change for each in plan.now for change in flat(each)):
        if isinstance(step, Promote):
            now[step.replica] = Voter(step.replica, sites[step.replica], healthy=True)
            learners.discard(step.replica)
        elif isinstance(step, RemoveMember):
            claim(world.membership.leader != step.replica, f"4: the leader {step.replica} is removed")
            if step.replica in learners:
                learners.discard(step.replica)
                continue
            now.pop(step.replica, None)
            claim(has_quorum(now.values()), f"1: {step.replica} is removed, and the healthy rest is no quorum")
        elif isinstance(step, StopUnit) and step.component is Component.ETCD and step.replica in now:
            rest = [voter for name, voter in now.items() if name != step.replica]
            claim(has_quorum(rest), f"1: {step.replica} is stopped, and the healthy rest is no quorum")


def leads_somewhere(truth: Truth, site: str) -> bool:
    backends = dict(truth.balancers).get(site, frozenset())
    return site not in truth.dead_edges and bool(backends & serving(truth))


def check_step(before: Truth, step: Step, after: Truth, held: frozenset[str]) -> None:
    """What one step may do to the truth. ``held``: the sites whose address clients may hold."""
    if elected(before) is not None:
        claim(elected(after) is not None, f"1: {type(step).__name__} loses the quorum")
    if home(true_voters(before)) is not None:
        claim(home(true_voters(after)) is not None, f"3: after {type(step).__name__} no site holds a quorum by itself")
    for site in held:
        if leads_somewhere(before, site):
            claim(leads_somewhere(after, site), f"5: {type(step).__name__} makes the address of {site} lead nowhere")
    match step:
        case SetBackends():
            new = set(step.backends) - dict(before.balancers).get(step.site, frozenset())
            claim(new <= serving(before), "6: a backend is added that is not ready")
        case SetRecord():
            claim(leads_somewhere(before, step.to), f"5: the name leads to {step.to}, which leads nowhere")
        case StopUnit(component=Component.APISERVER):
            lost = not before.replica(step.replica).data
            used = any(step.replica in names for site, names in before.balancers if site not in before.dead_edges)
            claim(lost or not used, f"6: the apiserver of {step.replica} stops while load balancers use it")
        case StopUnit(component=Component.ETCD):
            claim(step.replica not in members(before), f"1: etcd of the member {step.replica} is stopped")
        case RemoveMember():
            _check_removal(before, step)
        case ReleaseReplica():
            claim(before.deleting or step.replica not in members(before), f"7: the member {step.replica} is released")
            claim(before.deleting or _whole(before), f"7: {step.replica} is released before the exchange is done")
        case _:
            pass


def _check_removal(before: Truth, step: RemoveMember) -> None:
    claim(elected(before) != step.replica or len(members(before)) == 1, f"4: the leader {step.replica} is removed")
    on = before.machine_of(step.replica).power is Power.ON
    serves = Component.APISERVER in before.replica(step.replica).units
    claim(not (on and serves), f"6: {step.replica} is removed while its apiserver runs")


def _whole(truth: Truth) -> bool:
    """Every slot has a healthy voter with a ready apiserver."""
    ready = serving(truth)
    return all(any(truth.memory.replica(name).slot == slot for name in ready) for slot in truth.slots)
