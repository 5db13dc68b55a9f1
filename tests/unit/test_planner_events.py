"""An etcd cluster for events alone: it comes and goes on a live plane, moves with it, and is never worth an outage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest
from model.stories import (
    ROLLING_STEPS,
    about_to,
    all_steps,
    is_done,
    planned,
    step_words,
    steps_until,
    until,
    whats,
    with_fact,
    with_member,
    with_membership,
    with_memory,
    with_unit,
)
from model.worlds import FORMER, NEW, changing, moving_apart, settled, wanted
from support.golden import Golden

from quarterdeck.model.clusters import Cluster, ClusterMemory, MemberMemory
from quarterdeck.model.components import NAMED, Component, ReplicaChange
from quarterdeck.model.membership import Health, Membership
from quarterdeck.model.memory import Condemned, Memory, Replica
from quarterdeck.model.remember import remember
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import DecideBootstrap, ForgetCluster, NoteCreated, NoteMembers, ReleaseMember
from quarterdeck.model.steps.members import AddLearner, RemoveMember, Swap
from quarterdeck.model.steps.traffic import SetBackends
from quarterdeck.model.steps.units import AdoptRevision, RestartUnit, StartUnit, StopUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World
from quarterdeck.planner.events import dissolve, left_behind, not_ready_for, renew
from quarterdeck.planner.members import is_stale, wants_events
from quarterdeck.planner.outcome import RuleOutcome
from quarterdeck.planner.planner import ask, plan
from quarterdeck.planner.rule import Ask
from quarterdeck.planner.rule_table import RULES
from quarterdeck.planner.rules import membership
from quarterdeck.planner.rules.release import release
from quarterdeck.planner.simulated import apply, observe
from quarterdeck.planner.simulated.dry_run import dry_run
from quarterdeck.planner.simulated.parts import Power, SimMember, SimReplica
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.view import View, view

RESTARTED = ReplicaChange(restart=frozenset({Component.APISERVER}))
EVENTS, EVENTS_ETCD, UNKNOWN = Cluster.EVENTS, Component.EVENTS_ETCD, UnitState.UNKNOWN


def asked(rule: Ask, seen: View) -> RuleOutcome:
    """What a rule says of both clusters."""
    (row,) = (each for each in RULES if each.ask is rule)
    return ask(row, seen)


@cache
def going_on(replicas: int = 3) -> Truth:
    """A plane that is well, whose user has just asked for events apart."""
    return changing(replicas, replicas, RESTARTED, apart=frozenset({NEW}))


@cache
def going_off(replicas: int = 3) -> Truth:
    """One that keeps them apart, whose user has just asked for it to keep them no more."""
    return changing(replicas, replicas, RESTARTED, apart=frozenset({FORMER}))


@cache
def moves(replicas: int = 3) -> Truth:
    return moving_apart(replicas, replicas)


def of_events(world: World, name: str, health: Health) -> World:
    """The world with one member of the events' cluster seen otherwise."""
    return with_member(world, name, lambda member: replace(member, health=health), Cluster.EVENTS)


def about_to_rest() -> World:
    """The moment at which the first replica is to go over to keeping events apart."""
    return observe(until(going_on(), about_to(StopUnit)))


# --- on and off -----------------------------------------------------------------------------------------------------


def test_nobody_goes_over_before_the_cluster_is_there() -> None:
    done = steps_until(going_on(), about_to(StopUnit))
    assert done[0].startswith("DecideBootstrap")
    assert done[1:4] == [f"StartUnit etcd-events of east-{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize("name", ["east-1", "east-2", "east-3"])
def test_nobody_goes_over_while_a_member_does_not_vote(name: str, golden: Golden) -> None:
    assert all_steps(planned(about_to_rest(), *ROLLING_STEPS))
    outcome = planned(of_events(about_to_rest(), name, Health.SUSPECT), *ROLLING_STEPS)
    golden(whats(outcome))
    assert not outcome.steps


def test_nobody_goes_over_while_the_cluster_does_not_answer(golden: Golden) -> None:
    outcome = planned(replace(about_to_rest(), events_membership=None), *ROLLING_STEPS)
    golden(whats(outcome))


def test_a_member_that_is_restarted_with_its_apiserver_need_not_vote_meanwhile(golden: Golden) -> None:
    both = ReplicaChange(restart=frozenset({EVENTS_ETCD}))
    asked = changing(3, 3, both, apart=frozenset({FORMER, NEW}))
    stopped = until(asked, lambda _, now: "StopUnit etcd-events of east-2" in map(step_words, now.now))
    for step in plan(observe(stopped)).now:
        stopped = apply(stopped, step)
    outcome = planned(of_events(observe(stopped), "east-2", Health.SUSPECT), *ROLLING_STEPS)
    assert [type(step) for step in outcome.steps] == [AdoptRevision]
    outcome = planned(of_events(observe(asked), "east-1", Health.SUSPECT), *ROLLING_STEPS)
    golden(whats(outcome))


def test_an_apiserver_starts_only_when_both_its_members_vote() -> None:
    well = observe(settled(replace(going_off(), revision=FORMER)))
    world = with_unit(well, "east-1", Component.APISERVER, UnitState.STOPPED)
    assert all_steps(planned(world, StartUnit)) == ["StartUnit kube-apiserver of east-1"]
    assert not planned(of_events(world, "east-1", Health.SUSPECT), StartUnit).steps
    assert not planned(replace(world, events_membership=None), StartUnit).steps


def test_events_are_given_up_without_a_quorum_of_their_members() -> None:
    """Who has lost them for good can go on without."""
    truth = going_off()
    for name in ("east-1", "east-2"):
        truth = truth.with_replica(name, replace(truth.replica(name), events_data=False))
    assert observe(truth).events_membership is None
    end = until(truth, is_done)
    assert not end.memory.events.exists
    assert {each.revision for each in end.memory.replicas} == {NEW}


def test_a_cluster_is_forgotten_when_nothing_that_runs_keeps_events_there() -> None:
    before = until(going_off(), lambda truth, now: [each.revision for each in truth.memory.replicas].count(NEW) == 2)
    assert not planned(observe(before), ForgetCluster).steps
    after = until(before, about_to(ForgetCluster))
    assert {each.revision for each in after.memory.replicas} == {NEW}


def test_a_cluster_that_is_not_wanted_any_more_is_not_waited_for() -> None:
    going = replace(observe(until(going_off(), about_to(ForgetCluster))), events_membership=None)
    wanted_still = replace(observe(going_off()), events_membership=None)
    of_events = "a quorum of the members of the events' etcd to answer"
    assert of_events in whats(plan(wanted_still))
    assert of_events not in whats(plan(going))


def test_what_is_left_of_a_cluster_is_stopped_and_then_removed() -> None:
    done = steps_until(until(going_off(), about_to(ForgetCluster)), is_done)
    stops = [done.index(f"StopUnit etcd-events of east-{number}") for number in (1, 2, 3)]
    removals = [done.index(f"ReleaseMember east-{number}") for number in (1, 2, 3)]
    assert done.index("ForgetCluster") < min(stops) < max(stops) < min(removals)


def test_what_is_left_on_a_machine_that_does_not_answer_is_a_leftover(golden: Golden) -> None:
    truth = until(going_off(), about_to(ReleaseMember))
    off = tuple(replace(each, power=Power.OFF) if each.name == "east-a1" else each for each in truth.machines)
    world = observe(replace(truth, machines=off))
    assert "ReleaseMember east-1" not in all_steps(planned(world))
    _, leftovers = release(view(world))
    golden(leftovers)


def test_a_cluster_that_comes_again_has_nothing_of_the_one_before() -> None:
    """Who still has something of that one is no founder."""
    stopped = until(going_off(), about_to(ReleaseMember))
    world = observe(replace(stopped, revision=FORMER))
    found = view(world).events
    assert found is not None
    assert found.wanted == ()
    back = until(replace(stopped, revision=FORMER), about_to(DecideBootstrap))
    assert all(each.events is None for each in back.memory.replicas)
    assert until(back, is_done).memory.events.epoch == 2


def test_a_single_replica_is_exchanged_for_one_that_keeps_events_apart() -> None:
    done = steps_until(going_on(1), is_done)
    assert done.index("StartUnit kube-apiserver of east-2") > done.index("StartUnit etcd-events of east-2")
    assert "StopUnit kube-apiserver of east-1" in done


def test_a_cluster_is_wanted_as_long_as_anybody_who_is_wanted_keeps_events_there() -> None:
    world = observe(going_off())
    kept, gone = (replace(record("east-1"), revision=each) for each in (FORMER, NEW))
    assert wants_events(world, (kept, gone), NEW)
    assert wants_events(world, (gone,), FORMER)
    assert not wants_events(world, (gone,), NEW)


def test_a_member_of_a_cluster_of_before_is_stale() -> None:
    has = record("east-1", MemberMemory(epoch=1))
    world = observe(going_off())
    now = ClusterMemory(epoch=1, bootstrap=("east-1",))
    for events, stale in ((now, False), (replace(now, epoch=2), True), (replace(now, bootstrap=()), True)):
        assert is_stale(with_memory(world, events=events), has) is stale
    assert not is_stale(world, record("east-1"))


def test_who_is_no_member_any_more_keeps_no_cluster_from_going() -> None:
    """Its machine does not answer: nobody can tell what runs there, and nothing that does can serve."""
    truth = until(going_off(), about_to(ForgetCluster))
    gone = replace(truth.memory.replicas[0], name="east-9", machine="east-a2", revision=FORMER, listed=True)
    world = observe(truth)
    silent = ReplicaFact(
        name="east-9",
        machine=MachineState.UNREACHABLE,
        units=tuple((each, UnitState.UNKNOWN) for each in NAMED),
        ready=None,
    )
    world = replace(
        world,
        memory=replace(world.memory, replicas=(*world.memory.replicas, gone)),
        replicas=(*world.replicas, silent),
    )
    assert all_steps(dissolve(view(world))) == ["ForgetCluster"]


@pytest.mark.parametrize(("apiserver", "goes"), [(UnitState.RUNNING, False), (UnitState.STOPPED, True)])
def test_a_cluster_stays_while_an_apiserver_stores_events_there_wanted_or_not(apiserver: UnitState, goes: bool) -> None:
    truth = until(going_off(), about_to(ForgetCluster))
    other = replace(truth.memory.replicas[0], name="east-9", machine="east-a2", revision=FORMER, listed=False)
    world = observe(truth)
    fact = ReplicaFact(name="east-9", machine=MachineState.UP, units=((Component.APISERVER, apiserver),))
    world = replace(world, replicas=(*world.replicas, fact))
    world = with_memory(world, replicas=(*world.memory.replicas, other))
    assert not view(world).wants_events
    assert (all_steps(dissolve(view(world))) == ["ForgetCluster"]) is goes


def test_what_a_machine_that_answers_has_left_is_no_leftover() -> None:
    assert left_behind(view(observe(until(going_off(), about_to(ReleaseMember))))) == ()


def test_a_member_of_a_cluster_that_exists_is_no_leftover() -> None:
    world = observe(settled(replace(going_off(), revision=FORMER)))
    silent = with_fact(world, "east-1", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    assert left_behind(view(silent)) == ()


# --- moves ----------------------------------------------------------------------------------------------------------


def test_both_clusters_move_and_the_main_one_goes_first() -> None:
    about = until(moves(), about_to(Swap))
    first = [step for step in plan(observe(about)).now if isinstance(step, Swap)]
    assert [step.cluster for step in first] == [Cluster.MAIN]
    end = until(about, is_done)
    assert end.of(EVENTS).quorum_site == end.quorum_site == "west"
    assert set(end.of(EVENTS).members) == set(end.members)


def test_the_same_replicas_vote_in_both_before_the_swap() -> None:
    about = until(moves(), about_to(Swap))
    voting = {name for name, member in about.members.items() if not member.learner}
    assert {name for name, member in about.of(EVENTS).members.items() if not member.learner} == voting


def test_the_second_replica_of_a_move_from_one_to_one_stays_until_both_clusters_have_moved() -> None:
    before = until(moves(1), about_to(Swap))
    (main,) = (step for step in plan(observe(before)).now if isinstance(step, Swap) and step.cluster is Cluster.MAIN)
    now = view(observe(apply(before, main)))
    assert now.events is not None
    assert (now.quorum_site, now.events.quorum_site) == ("west", "east")
    assert (len(now.wanted), now.missing) == (2, ())
    end = until(moves(1), is_done)
    assert (len(end.members), len(end.of(EVENTS).members)) == (1, 1)


def test_a_target_without_its_events_does_not_take_over() -> None:
    about = until(moves(), lambda truth, _: bool(truth.replica("west-4").events))
    served = until(about, lambda truth, now: "SetRecord west" in map(step_words, now.now))
    assert view(observe(served)).takeover
    assert not view(replace(observe(served), events_membership=None)).takeover
    assert not view(of_events(observe(served), "west-4", Health.DOWN)).takeover or {
        each.name for each in view(of_events(observe(served), "west-4", Health.DOWN)).servers
    } == {"west-5"}


def test_a_replica_is_not_released_while_it_is_a_member_of_the_other_cluster() -> None:
    about = until(moves(), lambda truth, now: "ReleaseReplica east-1" in map(step_words, now.now))
    world = observe(about)
    steps, _ = release(view(world))
    assert "ReleaseReplica east-1" in map(step_words, steps)
    former = observe(until(moves(), about_to(Swap))).events_membership
    assert former is not None
    late = replace(world, events_membership=former)
    assert "ReleaseReplica east-1" not in map(step_words, release(view(late))[0])
    blind = replace(world, events_membership=None)
    assert "ReleaseReplica east-1" not in map(step_words, release(view(blind))[0])


def test_a_member_for_events_stays_while_its_apiserver_serves_unless_it_is_down() -> None:
    def leaving(steps: Iterable[Step]) -> list[str]:
        return [each.replica for each in steps if isinstance(each, RemoveMember) and each.cluster is EVENTS]

    world = observe(until(moves(), lambda _, now: leaving(now.now) != []))
    (name,) = leaving(plan(world).now)
    assert world.member(name) is not None, "it is a member of the main cluster too"
    serving = with_unit(world, name, Component.APISERVER, UnitState.RUNNING)
    others = leaving(asked(membership.remove, view(serving)).steps)
    assert len(others) == 1, "one of them is removed at a time"
    assert name not in others, "its apiserver writes events to it"
    down = view(of_events(serving, name, Health.DOWN)).events
    assert down is not None
    assert down.serves_nobody(world.memory.replica(name)), "the apiserver cannot write events to it"


@pytest.mark.parametrize("name", ["east-1", "east-2"], ids=["leads", "follows"])
def test_a_replica_that_lost_its_events_gets_another_member_where_it_is(name: str) -> None:
    truth = settled(replace(going_off(), revision=FORMER))
    lost = truth.with_replica(name, replace(truth.replica(name), events_data=False))
    assert view(observe(lost)).outdated == frozenset()
    assert [each for each in steps_until(lost, is_done) if not each.startswith("Note")] == [
        f"RemoveMember {name}",
        f"StopUnit etcd-events of {name}",
        f"ReleaseMember {name}",
        f"AddLearner {name}",
        f"StartUnit etcd-events of {name}",
        f"Promote {name}",
    ]


def test_one_that_leads_on_without_its_data_hands_over_before_it_is_taken_out() -> None:
    """Its files are deleted, and it has them open."""
    truth = settled(replace(going_off(), revision=FORMER))
    world = with_fact(observe(truth), "east-1", lambda fact: replace(fact, events=replace(fact.events, has_data=False)))
    assert all_steps(asked(membership.remove_dead, view(world))) == ["TransferLeadership east-2"]


def test_another_member_comes_only_when_nothing_of_the_one_before_is_left() -> None:
    truth = settled(replace(going_off(), revision=FORMER))
    lost = until(truth.with_replica("east-2", replace(truth.replica("east-2"), events_data=False)), about_to(StopUnit))
    world = observe(lost)
    assert all_steps(renew(view(world))) == ["StopUnit etcd-events of east-2"]
    silent = with_fact(world, "east-2", lambda fact: replace(fact, units=tuple((each, UNKNOWN) for each in NAMED)))
    assert not renew(view(silent)).steps
    assert not renew(view(replace(world, cordoned=("east-2",)))).steps
    assert not renew(view(replace(world, events_membership=None))).steps
    assert not asked(membership.join, view(world)).steps


def without_events(world: World, name: str, **memory: object) -> World:
    """The world in which a replica is no member of the events' cluster; ``memory``: what is remembered of its own."""
    known = world.events_membership
    assert known is not None
    world = with_membership(world, EVENTS, members=tuple(each for each in known.members if each.replica != name))

    def changed(record: Replica) -> Replica:
        assert record.events is not None
        return replace(record, events=replace(record.events, **memory))  # type: ignore[arg-type]

    return replace(world, memory=world.memory.with_replica(name, changed))


def test_only_who_was_taken_out_of_the_cluster_gets_another_member() -> None:
    world = observe(settled(replace(going_off(), revision=FORMER)))
    out = without_events(world, "east-2")
    assert all_steps(renew(view(out))) == ["StopUnit etcd-events of east-2"]
    assert not renew(view(without_events(world, "east-2", listed=False, started=False))).steps, "it is yet to be added"
    lost = with_fact(world, "east-2", lambda fact: replace(fact, events=replace(fact.events, has_data=False)))
    assert not renew(view(lost)).steps, "it is yet to be taken out"
    assert not renew(view(without_events(observe(until(going_off(), about_to(ForgetCluster))), "east-2"))).steps


def test_a_member_that_is_replaced_is_released_once() -> None:
    given_up = Condemned(replica="east-2", why="", since=0.0, program=EVENTS_ETCD, alone=True)
    world = without_events(observe(settled(replace(going_off(), revision=FORMER))), "east-2")
    world = with_memory(world, condemned=(given_up,))
    assert all_steps(renew(view(world))) == ["StopUnit etcd-events of east-2"]
    released = replace(world, memory=world.memory.with_replica("east-2", lambda each: replace(each, events=None)))
    assert not renew(view(released)).steps


def test_a_replica_whose_member_is_restarted_too_need_not_vote_in_the_cluster_before() -> None:
    both = changing(3, 3, ReplicaChange(restart=frozenset({EVENTS_ETCD})), apart=frozenset({FORMER, NEW}))
    world = of_events(observe(both), "east-2", Health.SUSPECT)
    first, second = (world.memory.replica(name) for name in ("east-1", "east-2"))
    assert not_ready_for(view(world), second) == ()
    assert len(not_ready_for(view(world), first)) == 1


def test_another_class_of_the_events_volume_is_another_replica() -> None:
    truth = settled(replace(going_off(), revision=FORMER))
    records = tuple(
        replace(each, events=replace(each.events, storage_class="slow") if each.events else None)
        for each in truth.memory.replicas
    )
    world = observe(with_memory(truth, replicas=records))
    assert view(replace(world, events_class="slow")).outdated == frozenset()
    assert view(replace(world, events_class="fast")).outdated == {"east-1", "east-2", "east-3"}


def test_alarms_of_either_cluster_keep_replicas_from_being_exchanged() -> None:
    now = plan(with_membership(observe(moves()), Cluster.EVENTS, alarms=("memberID:1 alarm:NOSPACE ",)))
    assert all(isinstance(step, SetBackends) for step in now.now)
    assert any("NOSPACE" in each for each in whats(now))


def test_an_unread_membership_of_the_events_cluster_is_waited_for_where_it_is_wanted() -> None:
    well = observe(settled(replace(going_off(), revision=FORMER)))
    assert plan(well).done
    unread = plan(replace(well, events_membership=None))
    assert any("events' etcd to answer" in each for each in whats(unread))
    assert not unread.now


# --- memory ---------------------------------------------------------------------------------------------------------


def record(name: str, events: MemberMemory | None = None) -> Replica:
    return Replica(name=name, slot=Slot(site="east", zone="a"), machine=f"m-{name}", listed=True, events=events)


def test_founders_have_a_member_from_when_they_are_decided() -> None:
    memory = Memory(replicas=(record("east-1"), record("east-2")), bootstrap=("east-1",), created=True)
    step = DecideBootstrap(site="", why="", replicas=("east-1",), storage_class="fast", cluster=EVENTS)
    after = remember(memory, step, 0.0)
    assert after.events == ClusterMemory(epoch=1, bootstrap=("east-1",))
    assert after.replica("east-1").events == MemberMemory(epoch=1, storage_class="fast")
    assert after.replica("east-2").events is None
    assert (after.bootstrap, after.created) == (("east-1",), True)


def test_what_is_noted_of_one_cluster_says_nothing_of_the_other() -> None:
    has = MemberMemory(epoch=1, storage_class="fast")
    memory = Memory(replicas=(record("east-1", has),), events=ClusterMemory(epoch=1, bootstrap=("east-1",)))
    after = remember(memory, NoteCreated(site="", why="", cluster=EVENTS), 0.0)
    assert (after.created, after.events.created) == (False, True)
    note = NoteMembers(site="", why="", listed=("east-1",), started=("east-1",), storage_class="slow", cluster=EVENTS)
    after = remember(after, note, 0.0)
    assert after.replica("east-1").events == replace(has, listed=True, started=True)
    assert not after.replica("east-1").started
    restart = RestartUnit(site="east", why="", replica="east-1", component=EVENTS_ETCD)
    after = remember(after, restart, 0.0)
    assert after.replica("east-1").events == replace(has, listed=True, started=True, restarted=True)
    assert not after.replica("east-1").restarted


def test_a_joiner_has_a_member_from_when_it_is_known_to_the_cluster() -> None:
    memory = Memory(replicas=(record("east-1"),), events=ClusterMemory(epoch=3, bootstrap=("east-9",)))
    step = AddLearner(site="east", why="", replica="east-1", storage_class="fast", cluster=EVENTS)
    assert remember(memory, step, 0.0).replica("east-1").events == MemberMemory(epoch=3, storage_class="fast")


def test_a_cluster_that_is_forgotten_leaves_its_number_and_what_its_members_have() -> None:
    has = MemberMemory(epoch=2, listed=True, started=True)
    known = ClusterMemory(epoch=2, bootstrap=("east-1",), created=True, cluster_id=7, revision=9)
    memory = Memory(replicas=(record("east-1", has),), events=known)
    after = remember(memory, ForgetCluster(site="", why="", cluster=EVENTS), 0.0)
    assert after.events == ClusterMemory(epoch=2)
    assert after.replica("east-1").events == has
    assert not after.of(EVENTS).replica("east-1").started
    gone = remember(after, ReleaseMember(site="east", why="", replica="east-1", cluster=EVENTS), 0.0)
    assert gone.replica("east-1").events is None
    step = DecideBootstrap(site="", why="", replicas=("east-1",), cluster=EVENTS)
    again = remember(after, step, 0.0)
    assert again.events == ClusterMemory(epoch=3, bootstrap=("east-1",))


def test_members_of_the_cluster_are_removed_by_its_own_ids() -> None:
    about = until(moves(), lambda truth, now: any(_removes_from_events(step) for step in now.now))
    (step,) = (step for step in plan(observe(about)).now if _removes_from_events(step))
    assert isinstance(step, RemoveMember)
    assert about.of(EVENTS).with_id(step.member) == step.replica


def _removes_from_events(step: object) -> bool:
    return isinstance(step, RemoveMember) and step.cluster is EVENTS


def test_a_learner_of_the_events_cluster_that_no_record_names_goes() -> None:
    truth = settled(replace(going_off(), revision=FORMER))
    stray = truth.with_replica("east-9", SimReplica(events=SimMember(id=99, learner=True)))
    (step,) = plan(observe(stray)).now
    assert (type(step), getattr(step, "member", 0), getattr(step, "cluster", None)) == (RemoveMember, 99, EVENTS)


def test_a_learner_of_the_events_cluster_that_missed_its_publication_is_restarted() -> None:
    joining = until(moves(), lambda truth, now: truth.replica("west-4").runs(EVENTS_ETCD))
    world = observe(joining)
    assert world.events_membership is not None
    members = tuple(
        replace(each, health=Health.SUSPECT, published=True, lag=0) if each.replica == "west-4" else each
        for each in world.events_membership.members
    )
    records = tuple(
        replace(each, events=replace(each.events, listed=True, started=False)) if each.events is not None else each
        for each in world.memory.replicas
    )
    world = replace(
        world,
        memory=replace(world.memory, replicas=records),
        events_membership=replace(world.events_membership, members=members),
    )
    assert "RestartUnit etcd-events of west-4" in all_steps(asked(membership.rejoin, view(world)))


def test_machines_that_do_not_answer_found_nothing() -> None:
    world = with_fact(observe(going_on()), "east-1", lambda fact: replace(fact, machine=MachineState.UNREACHABLE))
    (step,) = (step for step in plan(world).now if isinstance(step, DecideBootstrap))
    assert step.replicas == ("east-2", "east-3")


def test_the_view_of_a_plane_with_one_cluster_has_no_other() -> None:
    world = observe(settled(replace(going_on(), revision=FORMER)))
    assert view(world).events is None
    assert view(replace(world, events_membership=Membership(members=(), leader=None))).events is None


def test_a_plane_that_moves_and_goes_over_at_once_founds_at_its_target() -> None:
    asked = replace(going_on(), slots=wanted("west", 3))
    (step,) = (step for step in plan(observe(until(asked, about_to(DecideBootstrap)))).now)
    assert isinstance(step, DecideBootstrap)
    assert {name.split("-")[0] for name in step.replicas} == {"west"}
    end = until(asked, is_done)
    assert end.of(EVENTS).quorum_site == "west"


def test_a_forecast_tells_the_margin_of_the_cluster_that_a_step_is_about() -> None:
    forecast = dry_run(observe(moves()))
    assert not forecast.stuck_on
    adds = [each for each in forecast.steps if isinstance(each.step, AddLearner) and each.step.cluster is EVENTS]
    assert [(each.voters, each.learners, each.margin) for each in adds] == [(3, 1, 1), (3, 2, 1), (3, 3, 1)]
    started = [step_words(each.step) for each in forecast.steps]
    assert forecast.steps[started.index("StartUnit etcd-events of west-4")].learners == 3


def test_what_runs_of_a_cluster_that_goes_runs_on_as_long_as_events_are_kept_there() -> None:
    truth = until(replace(going_off(), slots=wanted("west", 3)), about_to(AddLearner))
    world = with_unit(observe(truth), "east-1", EVENTS_ETCD, UnitState.STOPPED)
    assert all_steps(asked(membership.keep_running, view(world))) == ["StartUnit etcd-events of east-1"]
    assert not whats(asked(membership.join, view(world)))
