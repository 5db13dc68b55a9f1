"""The planner with one thing wrong: each mutation takes out one rule, one gate, or one predicate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

import pytest

from model.kinds import Kind
from model.narrow_mutations import strangers_that_are_heard_of_are_counted_on
from model.searches import (
    APART,
    DIFFERS,
    DISABLED,
    FIRST,
    FLOATING,
    HANDED,
    HANGS,
    HEALS,
    HEALS_EVENTS,
    HEALS_PROGRAMS,
    HEALS_SLOW,
    NEWER_ETCD,
    NO_ROOM,
    PEOPLE,
    RELOADED,
    ROUND_ROBIN,
    SEED,
    SHARED,
    STANDBY,
    STRANGE,
    TWINS,
    UPGRADED,
    Search,
    sampled,
)
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.clusters import Cluster, Full
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.membership import EtcdMinor, Health, MemberFact, Membership
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Claim, Step
from quarterdeck.model.steps.clusters import DecideBootstrap, NoteCreated, ReleaseMember
from quarterdeck.model.steps.members import AddLearner, CancelDowngrade, Defragment, Promote, RemoveMember, Swap
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.stored import NoteLowered, NoteUnchecked
from quarterdeck.model.steps.traffic import SetRecord
from quarterdeck.model.steps.units import AdoptRevision, RestartUnit, StartUnit, StopUnit
from quarterdeck.model.world import MachineFact, World
from quarterdeck.planner import (
    etcd_versions,
    machines,
    members,
    planner,
    reading,
    revisions,
    rolling_restart,
    stage,
    standbys,
    unhealthy_programs,
)
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.rule import Ask, Members, Rule
from quarterdeck.planner.rules import (
    etcd_downgrade,
    healing,
    membership,
    notes,
    placement,
    release,
    replica_programs,
    rollout,
    standby,
    traffic,
    upkeep,
)
from quarterdeck.planner.stage import Stage
from quarterdeck.planner.view import View

Patch = pytest.MonkeyPatch

CALM = Search(replicas=3, to=3, wishes=1)
FAULT = Search(replicas=3, to=3, faults=1, data_loss=True)
FAULT_ONE = Search(replicas=1, to=1, faults=1, data_loss=True)
BEHIND = Search(replicas=1, to=1, faults=1, data_loss=True, front="north")
ROLL = Search(replicas=3, to=3, change=ReplicaChange(restart=frozenset({Component.ETCD})), wishes=1)
ROLL_FAULT = Search(
    replicas=3, to=3, change=ReplicaChange(restart=frozenset({Component.APISERVER})), faults=1, data_loss=True
)
RELOAD = Search(replicas=3, to=3, change=RELOADED, wishes=1)
RELOAD_FAULT = Search(replicas=3, to=3, change=RELOADED, faults=1, data_loss=True)
ROLL_APISERVER = Search(replicas=3, to=3, change=ReplicaChange(restart=frozenset({Component.APISERVER})), wishes=1)
HANGS_ONE = replace(HANGS[0], faults=1)
BROKEN = Search(
    replicas=3,
    to=3,
    change=ReplicaChange(restart=frozenset({Component.APISERVER})),
    broken=Component.APISERVER,
    faults=1,
    data_loss=True,
)
EXCHANGED = Search(replicas=3, to=3, change=ReplicaChange(exchange=True), per_zone=1, wishes=1)
EXCHANGED_FREE = sampled(
    Search(replicas=3, to=3, change=ReplicaChange(exchange=True), faults=2, wishes=1, data_loss=True), SEED
)
APART_OFF, APART_MOVE = (replace(search, wishes=1) for search in (APART[4], APART[6]))
HANDED_ON, _, _, _, BACK_AT_ONCE = HANDED[:5]
DIES, NO_SPARE, ZONE_DIES, TWO_OF_FIVE, DIE_TWICE, _, ONLY_UNSEEN = HEALS[:7]
HANG = HEALS_PROGRAMS[0]
LAGS, _, LAGS_MOVING, LAG_TWICE, LAGS_APART = HEALS_SLOW
TO_ONE = Search(replicas=3, to=1, faults=1, data_loss=True)
FULL = NO_ROOM[0]
REFUSED = Search(replicas=3, to=3, faults=1, kinds=frozenset({Kind.REFUSED}))
REFUSED_BACK = Search(replicas=1, to=1, faults=1, wishes=1, kinds=frozenset({Kind.REFUSED}), mended=False)


@dataclass(frozen=True)
class Mutation:
    """``breaks``: the number of the invariant that then does not hold; ``search``: where that is seen."""

    apply: Callable[[Patch], None]
    breaks: int
    search: Search

    def __str__(self) -> str:
        return self.apply.__name__


def _rule(patch: Patch, old: Ask, new: Ask) -> None:
    """Put another rule in the place of one."""
    _rows(patch, old, lambda row: replace(row, ask=new))


def _rows(patch: Patch, old: Ask, changed: Callable[[Rule], Rule]) -> None:
    """Change the rows of a rule."""
    assert any(row.ask is old for row in planner.RULES)
    patch.setattr(planner, "RULES", tuple(changed(row) if row.ask is old else row for row in planner.RULES))


def _before(patch: Patch, old: Ask, new: Ask) -> None:
    """Ask another rule before one, when the members are known."""
    known = [row.ask is old and row.members is not Members.UNKNOWN for row in planner.RULES]
    index = known.index(True)
    patch.setattr(planner, "RULES", (*planner.RULES[:index], Rule(ask=new), *planner.RULES[index:]))


def _nothing(_: View) -> RuleOutcome:
    return RuleOutcome()


def _may_drain(patch: Patch, mutated: Callable[[View], bool]) -> None:
    for module in (traffic, replica_programs):
        patch.setattr(module, "may_drain", mutated)


# --- the standby ----------------------------------------------------------------------------------------------------


def the_standby_is_promoted_with_the_others(patch: Patch) -> None:
    def promote(view: View) -> RuleOutcome:
        ready = [(each, view.whole.member(each.name)) for each in standbys.standbys(view.whole)]
        steps = tuple(
            Promote(site=each.site, why="", replica=each.name, member=member.id)
            for each, member in ready
            if member is not None and standbys.follows(view.whole, each)
        )
        return RuleOutcome(steps) if steps else membership.promote(view)

    _rule(patch, membership.promote, promote)


def the_standby_stays_where_the_plane_has_it_no_longer(patch: Patch) -> None:
    _rule(patch, standby.leave, _nothing)


def the_standby_keeps_its_revision(patch: Patch) -> None:
    patch.setattr(standby, "_behind", lambda *_: False)


def a_standby_that_hangs_is_left_alone(patch: Patch) -> None:
    patch.setattr(standbys, "is_sick", lambda *_: False)


# --- members --------------------------------------------------------------------------------------------------------


def the_lag_gate_is_dropped(patch: Patch) -> None:
    patch.setattr(View, "caught_up", lambda view, replica: view.member(replica) is not None)


def a_member_rests_whatever_voters_belong_to_no_replica(patch: Patch) -> None:
    patch.setattr(rolling_restart, "can_spare", lambda *_: True)


def nobody_is_told_of_voters_that_belong_to_no_replica(patch: Patch) -> None:
    named, it = membership.stray_voters, Wait("somebody to look at it", "")
    patch.setattr(membership, "stray_voters", lambda *of: tuple(it for _ in named(*of)))


def learners_are_added_one_by_one(patch: Patch) -> None:
    def join(view: View) -> RuleOutcome:
        outcome = membership.join(view)
        adds = isinstance(next(iter(outcome.steps), None), AddLearner)
        return RuleOutcome(outcome.steps[:1], outcome.waiting) if adds else outcome

    _rule(patch, membership.join, join)


def learners_join_a_sick_cluster(patch: Patch) -> None:
    """etcd refuses that: the plan would try for ever."""

    def join(view: View) -> RuleOutcome:
        absent = [record for record in view.wanted if view.member(record) is None]
        return RuleOutcome(tuple(AddLearner(site=each.site, why="", replica=each.name) for each in absent))

    _rule(patch, membership.join, join)


def whoever_does_not_answer_is_restarted(patch: Patch) -> None:
    def rejoin(view: View) -> RuleOutcome:
        return RuleOutcome(
            tuple(
                RestartUnit(site=each.site, why="", replica=each.name, component=Component.ETCD)
                for each in view.wanted
                if (member := view.member(each)) and member.health is not Health.HEALTHY and view.reachable(each)
            )
        )

    _rule(patch, membership.rejoin, rejoin)


def promotion_looks_at_no_home(patch: Patch) -> None:
    patch.setattr(View, "keeps_quorum_site", lambda view, replica: True)


def unhealthy_voters_are_counted(patch: Patch) -> None:
    real = planner.plan

    def plan(world: World) -> Plan:
        if world.membership is None:
            return real(world)
        members = tuple(
            each if each.learner else replace(each, health=Health.HEALTHY, lag=0) for each in world.membership.members
        )
        return real(replace(world, membership=replace(world.membership, members=members)))

    patch.setattr(planner, "plan", plan)


def who_is_not_seen_is_down(patch: Patch) -> None:
    """One observer's view is everybody's: what does not answer us serves nobody."""
    real = planner.plan

    def plan(world: World) -> Plan:
        if world.membership is None:
            return real(world)
        members = tuple(
            replace(each, health=Health.DOWN) if each.health is Health.UNREACHABLE else each
            for each in world.membership.members
        )
        return real(replace(world, membership=replace(world.membership, members=members)))

    patch.setattr(planner, "plan", plan)


def steps_name_the_first_member(patch: Patch) -> None:
    """Every membership change has the id of the same member."""
    real = membership.remove

    def remove(view: View) -> RuleOutcome:
        outcome = real(view)
        first = min((member.id for member in view.membership.members), default=0)
        steps = tuple(replace(each, member=first) if isinstance(each, RemoveMember) else each for each in outcome.steps)
        return RuleOutcome(steps, outcome.waiting)

    _rule(patch, membership.remove, remove)


def voters_are_removed_whoever_remains(patch: Patch) -> None:
    def remove(view: View) -> RuleOutcome:
        for record in view.unwanted:
            member = view.member(record)
            leads = view.membership.leader == record.name
            if member is not None and view.quorum_site is not None and not leads and view.apiserver_off(record):
                return RuleOutcome((RemoveMember(site=record.site, why="", replica=record.name, member=member.id),))
        return RuleOutcome()

    _rule(patch, membership.remove, remove)


def the_leader_is_removed_as_it_is(patch: Patch) -> None:
    """No transfer, and no rule that asks for one."""
    _rule(patch, membership.lead, _nothing)

    def leaderless(rule: Ask) -> Ask:
        def asked(view: View) -> RuleOutcome:
            world = view.world
            blind = replace(world, membership=replace(view.membership, leader=None))
            return rule(replace(view, world=blind))

        return asked

    for rule in (membership.swap, membership.remove):
        _rule(patch, rule, leaderless(rule))


def leadership_is_never_transferred(patch: Patch) -> None:
    """Leaders are not removed, but nobody makes them hand over."""
    _rule(patch, membership.lead, _nothing)


def source_voters_go_before_they_have_drained(patch: Patch) -> None:
    patch.setattr(View, "apiserver_off", lambda view, replica: True)


def the_swap_takes_all_out_before_it_promotes(patch: Patch) -> None:
    def swap(view: View) -> RuleOutcome:
        outcome = membership.swap(view)
        if not outcome.steps or not view.learners:
            return outcome
        gone = [each for each in view.unwanted if view.member(each) and each.name != view.membership.leader]
        removals = [
            RemoveMember(site=each.site, why="", replica=each.name, member=member.id)
            for each in gone
            if (member := view.member(each)) is not None
        ]
        promotions = [change for step in outcome.steps if isinstance(step, Swap) for change in step.changes]
        changes = (*removals, *(change for change in promotions if isinstance(change, Promote)))
        return RuleOutcome((Swap(site=view.heading, why="", changes=changes),))

    _rule(patch, membership.swap, swap)


def the_swap_is_not_atomic(patch: Patch) -> None:
    def swap(view: View) -> RuleOutcome:
        outcome = membership.swap(view)
        return RuleOutcome(tuple(step.changes[0] for step in outcome.steps if isinstance(step, Swap)), outcome.waiting)

    _rule(patch, membership.swap, swap)


def unwanted_members_are_stopped_early(patch: Patch) -> None:
    def stop(view: View) -> RuleOutcome:
        return RuleOutcome(
            tuple(
                StopUnit(site=each.site, why="", replica=each.name, component=Component.ETCD)
                for each in view.unwanted
                if view.reachable(each) and view.apiserver_off(each) and Component.ETCD in _running(view, each)
            )
        )

    _before(patch, membership.swap, stop)


def _running(view: View, record: Replica) -> set[Component]:
    return {component for component, state in view.fact(record).units if state == "running"}


def members_start_on_whatever_is_there(patch: Patch) -> None:
    def keep_running(view: View) -> RuleOutcome:
        return RuleOutcome(
            tuple(
                StartUnit(site=each.site, why="", replica=each.name, component=Component.ETCD)
                for each in view.world.memory.replicas
                if each.started and view.reachable(each) and Component.ETCD not in _running(view, each)
            )
        )

    _rule(patch, membership.keep_running, keep_running)


def a_plane_that_does_not_answer_is_founded_again(patch: Patch) -> None:
    def found_again(view: View) -> RuleOutcome:
        if view.world.membership is not None:
            return RuleOutcome()
        names = tuple(record.name for record in view.wanted)
        return RuleOutcome((DecideBootstrap(site="", why="", replicas=names),))

    _rule(patch, placement.found, found_again)


# --- what is not known ----------------------------------------------------------------------------------------------


def an_unknown_membership_is_an_empty_one(patch: Patch) -> None:
    real = planner.plan

    def plan(world: World) -> Plan:
        if world.membership is None and world.memory.created:
            world = replace(world, membership=Membership(members=(), leader=None))
        return real(world)

    patch.setattr(planner, "plan", plan)


def an_unknown_record_is_no_record(patch: Patch) -> None:
    real = planner.plan
    patch.setattr(planner, "plan", lambda world: real(replace(world, record_known=True)))


def a_load_balancer_that_does_not_answer_is_none(patch: Patch) -> None:
    """It may go on sending connections to apiservers that are stopped."""

    def may_drain(seen: View) -> bool:
        world = seen.world
        servers = {record.name for record in seen.servers}
        running = [balancer for balancer in world.balancers if balancer.running]
        leads = world.record == seen.door == world.memory.served_site
        return seen.takeover and leads and all(reading._carries(each, servers) for each in running)

    _may_drain(patch, may_drain)


# --- traffic --------------------------------------------------------------------------------------------------------


def backends_are_added_before_they_are_ready(patch: Patch) -> None:
    real = traffic.backends

    def backends(view: View) -> RuleOutcome:
        facts = tuple(
            replace(fact, ready=fact.ready or fact.unit(Component.APISERVER) == "running")
            for fact in view.world.replicas
        )
        return real(replace(view, world=replace(view.world, replicas=facts)))

    _rule(patch, traffic.backends, backends)


def the_record_is_set_before_the_target_is_ready(patch: Patch) -> None:
    def record(view: View) -> RuleOutcome:
        if view.world.record in (None, view.door):
            return RuleOutcome()
        return RuleOutcome((SetRecord(site="", why="", to=view.door),))

    _before(patch, placement.place, record)


def load_balancers_are_let_go_before_the_time_to_live(patch: Patch) -> None:
    patch.setattr(View, "expired", lambda view, since: True)


def apiservers_stop_while_they_are_listed(patch: Patch) -> None:
    def retire(view: View) -> RuleOutcome:
        return RuleOutcome(
            tuple(
                StopUnit(site=each.site, why="", replica=each.name, component=Component.APISERVER)
                for each in view.unwanted
                if view.takeover and view.reachable(each) and Component.APISERVER in _running(view, each)
            )
        )

    _before(patch, traffic.backends, retire)


def backends_leave_a_load_balancer_that_reaches_no_other(patch: Patch) -> None:
    patch.setattr(reading, "_carries", lambda balancer, servers: servers <= balancer.backends)


def apiservers_stop_before_they_have_drained(patch: Patch) -> None:
    def retire(view: View) -> RuleOutcome:
        settings = replace(view.world.settings, drain=0.0)
        return replica_programs.retire(replace(view, world=replace(view.world, settings=settings)))

    _rule(patch, replica_programs.retire, retire)


def an_apiserver_is_rescued_beside_the_removal_of_its_member(patch: Patch) -> None:
    _rows(patch, replica_programs.serve_in_outage, lambda row: replace(row, beside=True))


# --- the end --------------------------------------------------------------------------------------------------------


def replicas_are_released_while_they_are_members(patch: Patch) -> None:
    def let_go(view: View) -> RuleOutcome:
        steps = tuple(
            ReleaseReplica(site=each.site, why="", replica=each.name)
            for each in view.unwanted
            if view.quorum_site == view.heading and view.apiserver_off(each)
        )
        return RuleOutcome(steps)

    _before(patch, membership.remove, let_go)


def volumes_are_released_before_the_exchange_is_done(patch: Patch) -> None:
    def let_go(view: View) -> RuleOutcome:
        steps, _ = release.release(view)
        return RuleOutcome(steps)

    _before(patch, membership.lead, let_go)


def done_is_said_before_all_runs(patch: Patch) -> None:
    _rule(patch, replica_programs.settled, _nothing)


def former_addresses_are_not_remembered(patch: Patch) -> None:
    real = notes.note

    def note(view: View) -> RuleOutcome:
        outcome = real(view)
        return RuleOutcome(tuple(step for step in outcome.steps if type(step).__name__ != "NoteRecord"))

    _rule(patch, notes.note, note)


def the_user_cannot_change_their_mind(patch: Patch) -> None:
    """A retreat that is never taken: two sites' voters, and a third one wanted."""
    patch.setattr(stage, "_retreat", lambda world, goal, at: None)


# --- steps that fail ------------------------------------------------------------------------------------------------


def what_a_failing_step_claims_is_not_held_back(patch: Patch) -> None:
    _claim(patch, None)


def a_failing_step_holds_back_all(patch: Patch) -> None:
    _claim(patch, Claim("all"))


def _claim(patch: Patch, claim: Claim | None) -> None:
    """Have steps of all kinds claim the same."""
    kinds: list[type[Step]] = [Step]
    for kind in kinds:
        kinds += kind.__subclasses__()
        if "claim" in vars(kind):
            patch.setattr(kind, "claim", property(lambda _: claim))


# --- inside a site --------------------------------------------------------------------------------------------------


def a_replica_rests_whoever_else_does_not_serve(patch: Patch) -> None:
    patch.setattr(rolling_restart, "spared", lambda view, record: view.membership is not None)


def a_revision_is_adopted_while_programs_run_as_before(patch: Patch) -> None:
    def roll(seen: View) -> RuleOutcome:
        steps = (AdoptRevision(site="", why="", replica=each.name, revision=seen.revision) for each in seen.behind)
        return RuleOutcome(tuple(steps))

    _rule(patch, rollout.roll, roll)


def replicas_reload_whoever_else_does_not_serve(patch: Patch) -> None:
    patch.setattr(rollout, "spared", lambda *_: True)


def who_was_given_other_files_keeps_them(patch: Patch) -> None:
    patch.setattr(rollout, "_has_others", lambda *_: False)


def the_leader_is_stopped_as_it_is(patch: Patch) -> None:
    patch.setattr(
        rollout,
        "_stop_member",
        lambda plane, record, component: RuleOutcome((rollout._stop(plane, record, component),)),
    )


def apiservers_rest_before_they_have_drained(patch: Patch) -> None:
    patch.setattr(
        rollout, "_drained", lambda view, record: RuleOutcome((rollout._stop(view, record, Component.APISERVER),))
    )


def a_revision_that_does_not_run_is_not_given_up(patch: Patch) -> None:
    _rule(patch, rollout.reject, _nothing)


def a_program_that_is_never_ready_is_waited_for(patch: Patch) -> None:
    patch.setattr(rollout, "never_ready", lambda world, record: ())


def a_program_gets_no_time_to_become_ready(patch: Patch) -> None:
    def reject(seen: View) -> RuleOutcome:
        settings = replace(seen.world.settings, start=0.0)
        return rollout.reject(replace(seen, world=replace(seen.world, settings=settings)))

    _rule(patch, rollout.reject, reject)


def all_replicas_are_exchanged_at_once(patch: Patch) -> None:
    def exchanging(
        world: World, site: str, kept: tuple[Replica, ...], spare: tuple[Replica, ...], slots: tuple[Slot, ...]
    ) -> Stage:
        return Stage(heading=site, wanted=kept, missing=slots[len(kept) :])

    patch.setattr(stage, "_exchanging", exchanging)


def a_crowded_machine_is_taken_though_another_is_free(patch: Patch) -> None:
    real = machines.machine_for

    def machine_for(world: World, slot: Slot, taken: set[str], leaving: Iterable[Replica] = ()) -> MachineFact | None:
        crowded = real(world, slot, {each.name for each in world.machines}, leaving)
        return crowded or real(world, slot, taken, leaving)

    patch.setattr(placement, "machine_for", machine_for)


# --- two clusters ---------------------------------------------------------------------------------------------------


def the_cluster_is_forgotten_while_events_are_kept_there(patch: Patch) -> None:
    patch.setattr(View, "keeps_events_apart", lambda view, replica: False)


def the_quorum_of_events_goes_first(patch: Patch) -> None:
    """Whatever becomes of the target then, its events are gone with it."""
    real = membership.swap

    def swap(view: View) -> RuleOutcome:
        moved = replace(view.plane, quorum_site=view.heading)
        return real(view if view.plane is view else replace(view, plane_or_none=moved))

    _rule(patch, membership.swap, swap)


def replicas_are_released_while_they_are_members_of_the_events_cluster(patch: Patch) -> None:
    patch.setattr(release, "_has_a_vote_on_events", lambda view, record: False)
    for rule in (membership.remove, membership.remove_dead):
        _rows(patch, rule, lambda row: replace(row, per_cluster=False))


def a_member_of_the_events_cluster_is_given_up_again_and_again(patch: Patch) -> None:
    patch.setattr(healing, "_was_renewed", lambda view, record: False)


def members_of_the_events_cluster_lose_their_data_before_they_are_taken_out(patch: Patch) -> None:
    real, of = membership.remove_dead, Cluster.EVENTS

    def remove_dead(view: View) -> RuleOutcome:
        gone = (each for each in view.plane.wanted if view.plane is not view and each.name in view.lost)
        steps = tuple(ReleaseMember(site=each.site, why="", replica=each.name, cluster=of) for each in gone)
        return RuleOutcome(steps) if steps else real(view)

    _rule(patch, real, remove_dead)


def what_is_left_of_a_cluster_founds_the_next_one(patch: Patch) -> None:
    patch.setattr(reading, "is_stale", lambda world, record: False)


# --- room in etcd ---------------------------------------------------------------------------------------------------


def the_leader_is_defragmented_as_it_is(patch: Patch) -> None:
    patch.setattr(upkeep, "hand_over", lambda view, to, why: None)


def writes_are_taken_before_there_is_room(patch: Patch) -> None:
    patch.setattr(upkeep, "_defragment", lambda view, counted: None)


def history_goes_at_once(patch: Patch) -> None:
    real = upkeep._compact

    def compact(view: View, counted: list[MemberFact], full: Full, known: int) -> RuleOutcome | None:
        hasty = replace(view.world, settings=replace(view.world.settings, history=0.0))
        return real(replace(view, world=hasty), counted, full, known)

    patch.setattr(upkeep, "_compact", compact)


def members_are_defragmented_all_at_once(patch: Patch) -> None:
    def defragment(view: View, counted: list[MemberFact]) -> RuleOutcome | None:
        full = [each for each in counted if each.space is not None and upkeep.has_no_room(each.space)]
        return RuleOutcome(tuple(Defragment(site="", why="", replica=each.replica) for each in full)) if full else None

    patch.setattr(upkeep, "_defragment", defragment)


def who_is_not_well_keeps_nobody_from_being_defragmented(patch: Patch) -> None:
    patch.setattr(upkeep, "_is_well", lambda view, member: True)


def learners_without_room_stay(patch: Patch) -> None:
    real = upkeep._learners

    def learners(view: View) -> RuleOutcome | None:
        members = tuple(replace(each, space=None) if each.learner else each for each in view.membership.members)
        return real(replace(view, world=replace(view.world, membership=replace(view.membership, members=members))))

    patch.setattr(upkeep, "_learners", learners)


def who_has_other_data_leads_on(patch: Patch) -> None:
    patch.setattr(membership, "_depose", lambda view: None)


def who_is_to_be_exchanged_leads_on(patch: Patch) -> None:
    real = membership._depose
    patch.setattr(membership, "_depose", lambda view: real(replace(view, world=replace(view.world, condemned=()))))


def removed_founders_join_again(patch: Patch) -> None:
    """As who has never been a member, where nobody has seen them as one."""
    patch.setattr(NoteCreated, "remembered", lambda self, memory, now: replace(memory, created=True))


def learners_that_copy_are_not_waited_for(patch: Patch) -> None:
    patch.setattr(upkeep, "has_the_data", lambda world, member: True)


def a_silent_edge_is_believed_to_send_to_what_others_do(patch: Patch) -> None:
    patch.setattr(BalancerFact, "everywhere", property(lambda fact: fact.backends if fact.alike else frozenset()))


def edges_that_send_to_others_count_as_alike(patch: Patch) -> None:
    _sees(patch, lambda fact: replace(fact, alike=True))


def a_silent_edge_has_no_address_but_its_own(patch: Patch) -> None:
    patch.setattr("model.two_edges.in_use", lambda _seen, held: frozenset(held))


def edges_to_which_no_address_can_come_are_left_so(patch: Patch) -> None:
    _sees(patch, lambda fact: replace(fact, edges=tuple(replace(each, unrouted="") for each in fact.edges)))


def a_name_keeps_the_edges_that_it_has(patch: Patch) -> None:
    real = planner.plan
    patch.setattr(planner, "plan", lambda world: real(replace(world, amiss="")))


def _sees(patch: Patch, as_seen: Callable[[BalancerFact], BalancerFact]) -> None:
    """The planner is told of load balancers otherwise than they are."""
    real = planner.plan

    def plan(world: World) -> Plan:
        return real(replace(world, balancers=tuple(map(as_seen, world.balancers))))

    patch.setattr(planner, "plan", plan)


# --- healing --------------------------------------------------------------------------------------------------------


def _healed_by(patch: Patch, changed: Callable[[View], View]) -> None:
    """Healing goes by another view than all other rules do."""
    _rule(patch, healing.heal, lambda view: healing.heal(changed(view)))


def _with_memory(change: Callable[[World], World]) -> Callable[[View], View]:
    return lambda view: replace(view, world=change(view.world))


def _heals_as(patch: Patch, **bounds: object) -> None:
    def changed(world: World) -> World:
        healing = replace(world.settings.healing, **bounds)  # type: ignore[arg-type]
        return replace(world, settings=replace(world.settings, healing=healing))

    _healed_by(patch, _with_memory(changed))


def who_is_dead_is_waited_for(patch: Patch) -> None:
    _heals_as(patch, budget=0)


def the_budget_is_not_kept(patch: Patch) -> None:
    _heals_as(patch, budget=99)


def who_was_just_seen_to_be_dead_is_condemned(patch: Patch) -> None:
    _heals_as(patch, after=0.0)


def who_does_not_answer_us_is_condemned(patch: Patch) -> None:
    patch.setattr(healing, "is_dead", lambda view, record: not view.reachable(record))


def who_is_down_is_condemned_where_its_machine_answers(patch: Patch) -> None:
    real = healing.is_dead

    def is_dead(view: View, record: Replica) -> bool:
        member = view.member(record)
        return real(view, record) or (member is not None and member.health is Health.DOWN)

    patch.setattr(healing, "is_dead", is_dead)


def several_are_condemned_at_once(patch: Patch) -> None:
    def changed(world: World) -> World:
        return replace(world, memory=replace(world.memory, condemned=()))

    _healed_by(patch, _with_memory(changed))


def somebody_is_condemned_though_there_is_no_machine(patch: Patch) -> None:
    patch.setattr(healing, "_has_room", lambda view, record, other_zones: True)


def what_does_not_get_well_is_left_alone(patch: Patch) -> None:
    patch.setattr(healing, "unhealthy", lambda view: ())


def what_just_hangs_is_killed_at_once(patch: Patch) -> None:
    _heals_as(patch, hung=0.0)


def what_only_we_do_not_see_is_killed(patch: Patch) -> None:
    def unseen(view: View) -> tuple[tuple[Replica, Component], ...]:
        return tuple(
            (each, Component.APISERVER) for each in view.wanted if not view.ready(each) and view.reachable(each)
        )

    patch.setattr(healing, "unhealthy", unseen)
    patch.setattr(healing, "may_be_starting", lambda view, record, component: False)


def what_hangs_is_killed_again_and_again(patch: Patch) -> None:
    patch.setattr(healing, "_was_revived", lambda view, record, component: False)


def members_that_lag_are_left_alone(patch: Patch) -> None:
    for module in (unhealthy_programs, healing):
        patch.setattr(module, "lags", lambda view, record, component: False)


def members_that_lag_are_killed_at_once(patch: Patch) -> None:
    _heals_as(patch, lagging=0.0)


def members_that_join_have_no_more_time_than_others(patch: Patch) -> None:
    for module in (unhealthy_programs, healing):
        patch.setattr(module, "joins", lambda view, record, component: False)


def members_are_given_up_that_lag_as_others_do(patch: Patch) -> None:
    patch.setattr(healing, "not_alone", lambda view, record, component: "")


def whoever_lags_waits_for_who_waits_for_it(patch: Patch) -> None:
    patch.setattr(healing, "_may_go", lambda view, record, component: False)


def nobody_goes_to_another_zone(patch: Patch) -> None:
    patch.setattr(stage, "_loosened", lambda world, slots, empty: slots)


def own_addresses_drain_no_longer_than_load_balancers(patch: Patch) -> None:
    patch.setattr(View, "farewell", property(lambda view: view.world.settings.drain))


def the_name_has_apiservers_that_are_not_ready(patch: Patch) -> None:
    real = traffic.chosen

    def chosen(view: View, leaving: Collection[str]) -> tuple[str, ...]:
        every = tuple(each.name for each in view.world.memory.replicas if each.name not in leaving)
        return every if real(view, leaving) else ()

    patch.setattr(traffic, "chosen", chosen)


def the_name_keeps_who_is_to_rest(patch: Patch) -> None:
    real = traffic.follow
    patch.setattr(traffic, "follow", lambda view, leaving: real(view, ()))


def controllers_are_handed_on_at_once(patch: Patch) -> None:
    patch.setattr(revisions, "next_revision", lambda world: world.revision)
    patch.setattr(World, "may_run_beside", lambda self, one, other: True)


def controllers_start_whatever_runs_elsewhere(patch: Patch) -> None:
    patch.setattr(View, "kept_from", lambda self, replica: ())


def versions_skip_the_window_between(patch: Patch) -> None:
    patch.setattr(revisions, "next_revision", lambda world: world.revision)
    patch.setattr(World, "may_run_beside", lambda self, one, other: True)


def older_programs_start_though_nothing_was_read(patch: Patch) -> None:
    patch.setattr(revisions, "is_unchecked", lambda world, revision: False)
    patch.setattr(rollout, "is_unchecked", lambda world, revision: False)


def a_check_of_what_is_stored_counts_for_ever(patch: Patch) -> None:
    real = rollout.check_stored

    def checked(view: View) -> RuleOutcome:
        found = real(view)
        return RuleOutcome() if any(isinstance(each, NoteUnchecked) for each in found.steps) else found

    _rule(patch, real, checked)


def an_older_etcd_starts_whatever_the_cluster_works_as(patch: Patch) -> None:
    patch.setattr(revisions, "is_closed", lambda world, revision: False)


def an_older_etcd_starts_on_data_of_the_newer_one(patch: Patch) -> None:
    real = etcd_versions._has_gone_back

    def gone_back(world: World, target: EtcdMinor | None) -> bool:
        if world.membership is None:
            return real(world, target)
        members = tuple(replace(each, storage=target) for each in world.membership.members)
        return real(replace(world, membership=replace(world.membership, members=members)), target)

    patch.setattr(etcd_versions, "_has_gone_back", gone_back)


def that_etcd_stores_as_the_older_one_counts_for_ever(patch: Patch) -> None:
    real = etcd_downgrade.note

    def noted(view: View) -> RuleOutcome:
        found = real(view)
        ends = any(isinstance(each, NoteLowered) and not each.revision for each in found.steps)
        return RuleOutcome() if ends else found

    _rule(patch, real, noted)


def a_downgrade_of_etcd_is_not_cancelled(patch: Patch) -> None:
    real = etcd_downgrade.downgrade

    def enabled(view: View) -> RuleOutcome:
        found = real(view)
        return RuleOutcome() if any(isinstance(each, CancelDowngrade) for each in found.steps) else found

    _rule(patch, real, enabled)


def a_first_revision_is_never_given_up(patch: Patch) -> None:
    _rule(patch, rollout.reject, lambda view: RuleOutcome())


def what_was_created_is_taken_to_run(patch: Patch) -> None:
    patch.setattr(rollout, "settled", lambda view: RuleOutcome())


def another_spec_waits_for_programs_of_the_first_one(patch: Patch) -> None:
    patch.setattr(revisions, "costs_nothing", lambda world, record, stops: False)


def founders_that_hang_are_waited_for(patch: Patch) -> None:
    patch.setattr(revisions, "_founds", lambda world, record, cluster: False)


def nobody_is_told_of_authentication(patch: Patch) -> None:
    real, it = members.awaited, Wait("it", "")
    patch.setattr(members, "awaited", lambda world, kind: it if kind == members.AUTHENTICATION else real(world, kind))


MUTATIONS = (
    Mutation(controllers_are_handed_on_at_once, 21, HANDED_ON),
    Mutation(versions_skip_the_window_between, 21, UPGRADED[0]),
    Mutation(older_programs_start_though_nothing_was_read, 26, UPGRADED[0]),
    Mutation(a_check_of_what_is_stored_counts_for_ever, 26, UPGRADED[0]),
    Mutation(an_older_etcd_starts_whatever_the_cluster_works_as, 25, NEWER_ETCD[0]),
    Mutation(an_older_etcd_starts_on_data_of_the_newer_one, 25, NEWER_ETCD[0]),
    Mutation(that_etcd_stores_as_the_older_one_counts_for_ever, 25, NEWER_ETCD[0]),
    Mutation(a_downgrade_of_etcd_is_not_cancelled, 25, NEWER_ETCD[0]),
    Mutation(controllers_start_whatever_runs_elsewhere, 21, BACK_AT_ONCE),
    Mutation(who_is_dead_is_waited_for, 10, DIES),
    Mutation(the_budget_is_not_kept, 18, DIE_TWICE),
    Mutation(who_was_just_seen_to_be_dead_is_condemned, 18, DIES),
    Mutation(who_does_not_answer_us_is_condemned, 18, ONLY_UNSEEN),
    Mutation(who_is_down_is_condemned_where_its_machine_answers, 18, HANG),
    Mutation(several_are_condemned_at_once, 18, TWO_OF_FIVE),
    Mutation(somebody_is_condemned_though_there_is_no_machine, 18, NO_SPARE),
    Mutation(nobody_goes_to_another_zone, 10, ZONE_DIES),
    Mutation(what_does_not_get_well_is_left_alone, 10, HANG),
    Mutation(what_just_hangs_is_killed_at_once, 18, HANG),
    Mutation(what_only_we_do_not_see_is_killed, 18, ONLY_UNSEEN),
    Mutation(what_hangs_is_killed_again_and_again, 18, HANG),
    Mutation(what_hangs_is_killed_again_and_again, 18, LAGS),
    Mutation(members_that_lag_are_left_alone, 10, LAGS),
    Mutation(members_that_lag_are_left_alone, 10, LAGS_APART),
    Mutation(members_that_lag_are_killed_at_once, 18, LAGS),
    Mutation(members_that_join_have_no_more_time_than_others, 18, LAGS_MOVING),
    Mutation(members_are_given_up_that_lag_as_others_do, 18, LAG_TWICE),
    Mutation(whoever_lags_waits_for_who_waits_for_it, 10, LAGS_MOVING),
    Mutation(a_replica_rests_whoever_else_does_not_serve, 11, ROLL_FAULT),
    Mutation(a_revision_is_adopted_while_programs_run_as_before, 13, ROLL),
    Mutation(a_revision_is_adopted_while_programs_run_as_before, 13, RELOAD),
    Mutation(replicas_reload_whoever_else_does_not_serve, 11, RELOAD_FAULT),
    Mutation(who_was_given_other_files_keeps_them, 13, RELOAD),
    Mutation(the_leader_is_stopped_as_it_is, 4, ROLL),
    Mutation(apiservers_rest_before_they_have_drained, 6, ROLL),
    Mutation(a_revision_that_does_not_run_is_not_given_up, 10, BROKEN),
    Mutation(a_program_that_is_never_ready_is_waited_for, 10, HANGS_ONE),
    Mutation(a_program_gets_no_time_to_become_ready, 13, ROLL_APISERVER),
    Mutation(all_replicas_are_exchanged_at_once, 11, EXCHANGED),
    Mutation(a_crowded_machine_is_taken_though_another_is_free, 12, EXCHANGED_FREE),
    Mutation(a_first_revision_is_never_given_up, 13, FIRST[0]),
    Mutation(founders_that_hang_are_waited_for, 13, FIRST[9]),
    Mutation(what_was_created_is_taken_to_run, 13, FIRST[2]),
    Mutation(another_spec_waits_for_programs_of_the_first_one, 10, FIRST[-2]),
    Mutation(the_lag_gate_is_dropped, 2, CALM),
    Mutation(a_member_rests_whatever_voters_belong_to_no_replica, 1, PEOPLE[3]),
    Mutation(strangers_that_are_heard_of_are_counted_on, 1, STRANGE[3]),
    Mutation(nobody_is_told_of_authentication, 22, DISABLED[0]),
    Mutation(nobody_is_told_of_voters_that_belong_to_no_replica, 22, PEOPLE[6]),
    Mutation(learners_are_added_one_by_one, 2, CALM),
    Mutation(learners_join_a_sick_cluster, 10, FAULT),
    Mutation(whoever_does_not_answer_is_restarted, 1, FAULT),
    Mutation(promotion_looks_at_no_home, 3, CALM),
    Mutation(unhealthy_voters_are_counted, 1, FAULT_ONE),
    Mutation(who_is_not_seen_is_down, 8, FAULT),
    Mutation(steps_name_the_first_member, 1, CALM),
    Mutation(voters_are_removed_whoever_remains, 3, FAULT_ONE),
    Mutation(the_leader_is_removed_as_it_is, 4, CALM),
    Mutation(leadership_is_never_transferred, 10, CALM),
    Mutation(source_voters_go_before_they_have_drained, 6, CALM),
    Mutation(the_swap_takes_all_out_before_it_promotes, 3, CALM),
    Mutation(the_swap_is_not_atomic, 3, CALM),
    Mutation(unwanted_members_are_stopped_early, 1, CALM),
    Mutation(members_start_on_whatever_is_there, 9, FAULT),
    Mutation(a_plane_that_does_not_answer_is_founded_again, 9, FAULT),
    Mutation(an_unknown_membership_is_an_empty_one, 8, FAULT),
    Mutation(an_unknown_record_is_no_record, 8, FAULT),
    Mutation(a_load_balancer_that_does_not_answer_is_none, 6, FAULT),
    Mutation(backends_are_added_before_they_are_ready, 6, CALM),
    Mutation(the_record_is_set_before_the_target_is_ready, 5, CALM),
    Mutation(load_balancers_are_let_go_before_the_time_to_live, 5, CALM),
    Mutation(apiservers_stop_while_they_are_listed, 6, CALM),
    Mutation(backends_leave_a_load_balancer_that_reaches_no_other, 5, BEHIND),
    Mutation(apiservers_stop_before_they_have_drained, 6, CALM),
    Mutation(an_apiserver_is_rescued_beside_the_removal_of_its_member, 6, TO_ONE),
    Mutation(replicas_are_released_while_they_are_members, 7, CALM),
    Mutation(volumes_are_released_before_the_exchange_is_done, 7, CALM),
    Mutation(done_is_said_before_all_runs, 10, FAULT),
    Mutation(former_addresses_are_not_remembered, 5, CALM),
    Mutation(the_user_cannot_change_their_mind, 3, CALM),
    Mutation(the_cluster_is_forgotten_while_events_are_kept_there, 14, APART_OFF),
    Mutation(the_quorum_of_events_goes_first, 14, APART_MOVE),
    Mutation(replicas_are_released_while_they_are_members_of_the_events_cluster, 7, APART_MOVE),
    Mutation(a_member_of_the_events_cluster_is_given_up_again_and_again, 18, HEALS_EVENTS[0]),
    Mutation(members_of_the_events_cluster_lose_their_data_before_they_are_taken_out, 7, HEALS_EVENTS[1]),
    Mutation(what_is_left_of_a_cluster_founds_the_next_one, 9, APART_OFF),
    Mutation(the_leader_is_defragmented_as_it_is, 15, FULL),
    Mutation(writes_are_taken_before_there_is_room, 15, FULL),
    Mutation(history_goes_at_once, 15, FULL),
    Mutation(members_are_defragmented_all_at_once, 15, FULL),
    Mutation(who_is_not_well_keeps_nobody_from_being_defragmented, 15, NO_ROOM[4]),
    Mutation(learners_without_room_stay, 10, FULL),
    Mutation(learners_that_copy_are_not_waited_for, 15, FULL),
    Mutation(who_has_other_data_leads_on, 16, DIFFERS[0]),
    Mutation(who_is_to_be_exchanged_leads_on, 16, DIFFERS[-2]),
    Mutation(removed_founders_join_again, 9, PEOPLE[5]),
    Mutation(a_silent_edge_is_believed_to_send_to_what_others_do, 6, TWINS[1]),
    Mutation(edges_that_send_to_others_count_as_alike, 6, TWINS[1]),
    Mutation(a_name_keeps_the_edges_that_it_has, 10, TWINS[1]),
    Mutation(a_silent_edge_has_no_address_but_its_own, 6, FLOATING[1]),
    Mutation(edges_to_which_no_address_can_come_are_left_so, 10, SHARED[1]),
    Mutation(own_addresses_drain_no_longer_than_load_balancers, 5, ROUND_ROBIN[3]),
    Mutation(the_name_has_apiservers_that_are_not_ready, 6, ROUND_ROBIN[0]),
    Mutation(the_name_keeps_who_is_to_rest, 10, ROUND_ROBIN[3]),
    Mutation(what_a_failing_step_claims_is_not_held_back, 10, REFUSED_BACK),
    Mutation(a_failing_step_holds_back_all, 10, REFUSED),
    Mutation(the_standby_is_promoted_with_the_others, 24, STANDBY[0]),
    Mutation(the_standby_stays_where_the_plane_has_it_no_longer, 10, STANDBY[1]),
    Mutation(the_standby_keeps_its_revision, 10, STANDBY[3]),
    Mutation(a_standby_that_hangs_is_left_alone, 10, STANDBY[11]),
)
