"""A step that is refused every time: what of it the driver remembers, and what must be done all the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from model.faulty_truth import FaultyTruth
from model.invariants import claim, healthy_at, names
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import WithdrawConsent
from quarterdeck.model.steps.healing import Condemn
from quarterdeck.model.steps.members import (
    AddLearner,
    Compact,
    Defragment,
    Disarm,
    NoteFull,
    Promote,
    RemoveMember,
    Swap,
    TransferLeadership,
)
from quarterdeck.model.steps.placement import AttachVolumes, ReleaseReplica
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import SetBackends, StopBalancer
from quarterdeck.model.steps.units import NoteProven, RestartUnit, StartUnit
from quarterdeck.model.world import World
from quarterdeck.planner.claims import bare
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is refused: all steps of a kind on one thing, whatever else they say (a load balancer's machine refuses any
    files, for whichever backends).
    """

    kind: type[Step]
    replica: str
    site: str
    component: Component | None
    cluster: Cluster | None

    @staticmethod
    def of(step: Step) -> Refusal:
        named = getattr(step, "replica", "") or (step.to if isinstance(step, TransferLeadership) else "")
        site = "" if named else step.site
        return Refusal(type(step), named, site, getattr(step, "component", None), getattr(step, "cluster", None))


def refusing(refused: Refusal | None) -> frozenset[str]:
    """The site whose load balancer takes nothing new, if one does not: nobody can light its address."""
    return frozenset({refused.site}) if refused is not None and refused.kind is SetBackends else frozenset()


def ranked(step: Step | None, rank: Mapping[int, int]) -> Step | None:
    """A step with the rank of its member's id in place of that; None when there is no such member any more."""
    if isinstance(step, Swap):
        changes = tuple(ranked(change, rank) for change in step.changes)
        known = tuple(change for change in changes if isinstance(change, Promote | RemoveMember))
        return replace(step, changes=known) if len(known) == len(changes) else None
    if not isinstance(step, Promote | RemoveMember | TransferLeadership):
        return step
    number = rank.get(step.member)
    if number is None or number == step.member:
        return step if number is not None else None
    return replace(step, member=number)


def check_held_back(first: Plan, world: World, plan: Plan) -> None:
    """What is put aside is still done before what a later rule wants done to the same thing. ``first``: what is planned
    when nothing is put aside. (Leadership that goes to another one instead does come to the same. And where a volume
    cannot be attached another member comes: that is meant.)
    """
    for each in world.failing:
        if each.step in map(bare, first.now):
            later = [step for step in plan.now if step not in first.now and _thing(step) == _thing(each.step)]
            if isinstance(each.step, TransferLeadership):
                later = [step for step in later if not isinstance(step, TransferLeadership)]
            if isinstance(each.step, AttachVolumes):
                later = [step for step in later if not isinstance(step, Condemn)]
            claim(not later, f"10: {names(tuple(later))} comes before {names((each.step,))}")


def _thing(step: Step) -> object:
    """What a step changes."""
    if isinstance(step, NoteFull | Compact | Defragment | Disarm):
        return "room", step.cluster
    if isinstance(step, NoteProven):
        return "revision", step.revision
    if isinstance(step, WithdrawConsent):
        return "consent"
    if isinstance(step, AddLearner | Promote | RemoveMember | TransferLeadership | Swap):
        return step.cluster
    return Refusal.of(step).replica, Refusal.of(step).site, Refusal.of(step).component, isinstance(step, StopBalancer)


def claim_others(truth: FaultyTruth, refused: Refusal, *, straight: bool) -> None:
    """Where a plane comes to rest though a step is refused, all is done that does not depend on that. ``straight``: it
    has had this goal all the time, so that it goes there by way of no other site.
    """
    mine = {refused.replica} - {""}
    if truth.deleting:
        left = {record.name for record in truth.memory.replicas} - mine
        claim(not left or not mine, f"10: {left} are left for {refused}")
        return
    if not truth.memory.created:
        return
    claim(truth.elected is not None, f"10: no quorum for {refused}")
    now = view(observe(truth))
    wanted = {record.name for record in now.wanted}
    for name, member in truth.members.items():
        # All are added before any of them starts; and who is to leave need not join.
        if member.learner and (refused.kind is AddLearner or name not in wanted):
            continue
        claim(name in mine or (name in truth.healthy and not member.behind), f"10: {name} is left behind for {refused}")
    # Apiservers of a replica whose events are kept apart need a voter there, which needs its peers.
    if refused.kind in (StartUnit, RestartUnit) and refused.component != Component.EVENTS_ETCD:
        voters = {name for name in wanted - mine if (of := truth.members.get(name)) and not of.learner}
        claim(voters <= truth.serving, f"10: {voters - truth.serving} do not serve for {refused}")
    site = truth.slots[0].site
    door = truth.door
    # Where clients are led to now, they must be led on from there.
    apart = refused.kind in (SetBackends, StopBalancer) and refused.site not in (door, truth.record)
    if (apart and straight) or refused.kind is ReleaseReplica:
        standbys = {each.name for each in truth.memory.standbys}
        here = all(truth.site_of(name) == site for name in truth.members if name not in standbys)
        done = here and healthy_at(truth, truth.slots) and truth.quorum_site == site and truth.record == door
        claim(done, f"10: the plane is not at {site} for {refused}")
