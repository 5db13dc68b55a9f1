"""A program that does not get well on a machine that answers: it is restarted, once, and then its replica goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from model.faulty_truth import FaultyTruth
from model.observations import Seen, dead, placed, seen, voters_at
from model.stories import (
    HEALING_STEPS,
    Stop,
    about_to,
    is_done,
    kind,
    later,
    planned,
    steps_until,
    until,
    why_not,
    with_balancers,
    with_fact,
    with_member,
    with_membership,
    with_memory,
    with_unit,
)
from model.worlds import FORMER, NEW, changing, empty, settled
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.bounds import HealingBounds
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.leadership import Leadership, Obstacle
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Condemned
from quarterdeck.model.steps.healing import Condemn
from quarterdeck.model.steps.members import AddLearner
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.units import AdoptRevision, ReviveUnit, StartUnit, StopUnit
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.machines import machine_for
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.healing import held_back
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.parts import Power, apiserver_of, etcd_of
from quarterdeck.planner.unhealthy_programs import unhealthy
from quarterdeck.planner.view import view

HEALING = HealingBounds(budget=3, window=60.0, after=2.0, later=10.0, hung=2.0)
PROGRAMS = (Component.ETCD, Component.APISERVER, Component.CONTROLLER_MANAGER, Component.SCHEDULER)


def plane(replicas: int = 3, healing: HealingBounds = HEALING) -> FaultyTruth:
    truth = empty("east", replicas, sites=("east",))
    return settled(replace(truth, settings=replace(truth.settings, healing=healing)))


def apart() -> FaultyTruth:
    """One whose events are in an etcd of their own."""
    truth = changing(3, 3, ReplicaChange(), apart=frozenset({FORMER, NEW}))
    return settled(replace(truth, settings=replace(truth.settings, healing=HEALING)))


def hung(truth: FaultyTruth, component: Component, *names: str) -> FaultyTruth:
    """It does nothing any more until it is killed."""
    for name in names:
        replica = truth.replica(name)
        truth = truth.with_replica(name, replace(replica, hung=replica.hung | {component}))
    return truth


def sick(truth: FaultyTruth, component: Component, name: str) -> FaultyTruth:
    """And it does so again whenever it is started on that machine."""
    machine = truth.machine_of(name).name
    return replace(hung(truth, component, name), sick=truth.sick | {(machine, component)})


def healed(truth: FaultyTruth) -> int:
    return len(truth.memory.healed)


@pytest.mark.parametrize("component", PROGRAMS, ids=str)
def test_a_program_that_hangs_is_restarted_once_and_the_plane_is_as_wanted(component: Component) -> None:
    struck = later(hung(plane(), component, "east-2"), 1)
    steps = [
        each for each in steps_until(struck, is_done) if each.split()[0] in ("ReviveUnit", "Condemn", "PlaceReplica")
    ]
    assert steps == [f"ReviveUnit {component} of east-2"]
    well = until(struck, is_done)
    assert well.memory.unhealthy == ()
    assert healed(well) == 1


@pytest.mark.parametrize("component", PROGRAMS, ids=str)
def test_if_that_does_not_help_its_replica_is_exchanged(component: Component) -> None:
    struck = sick(plane(), component, "east-2")
    steps = [each.split()[0] for each in steps_until(later(struck, 1), is_done)]
    order = ["ReviveUnit", "Condemn", "PlaceReplica"]
    assert [each for each in steps if each in order] == order
    well = until(later(struck, 1), is_done)
    assert set(well.members) == {"east-1", "east-3", "east-4"}
    assert well.machine_of("east-4").name != struck.machine_of("east-2").name
    assert healed(well) == 2


def test_one_whose_member_is_well_votes_until_another_one_has_come() -> None:
    struck = sick(plane(), Component.APISERVER, "east-2")
    steps = [each.split()[0] for each in steps_until(later(struck, 1), is_done)]
    assert steps.index("Promote") < steps.index("RemoveMember")
    dead = sick(plane(), Component.ETCD, "east-2")
    steps = [each.split()[0] for each in steps_until(later(dead, 1), is_done)]
    assert steps.index("RemoveMember") < steps.index("AddLearner"), "with a dead voter nobody joins"


def test_a_machine_with_which_programs_do_not_get_well_is_cordoned_when_that_was_so_twice() -> None:
    """Its zone has no other machine, so that a replica comes back to it when the first one has gone."""
    truth = plane(3, replace(HEALING, budget=9))
    here, other = truth.machine_of("east-2").name, "east-b2"
    off = tuple(replace(each, power=Power.OFF) if each.name == other else each for each in truth.machines)
    first = sick(replace(truth, machines=off), Component.SCHEDULER, "east-2")
    done = until(later(first, 1), lambda truth, _: any(each.cordoned for each in truth.machines))
    assert [each.name for each in done.machines if each.cordoned] == [here]
    rest = later(done, 120)
    assert len(rest.healthy) == 3
    assert rest.memory.unhealthy == ()


def nowhere_in_its_zone(component: Component) -> FaultyTruth:
    """The scheduler of east-2 hangs on its machine again and again; on the other one of its zone ``component`` does."""
    truth = sick(plane(3, replace(HEALING, budget=9)), Component.SCHEDULER, "east-2")
    return replace(truth, sick=truth.sick | {("east-b2", component)})


def test_who_works_in_another_zone_stays_when_the_one_that_comes_in_its_place_does_not_get_well() -> None:
    """The one in another zone was on its way out, and waited for controllers of the new one to stand by."""
    rest = later(nowhere_in_its_zone(Component.SCHEDULER), 150)
    assert [each.name for each in rest.machines if each.cordoned] == ["east-b1", "east-b2"]
    assert sorted(rest.machine_of(each).name for each in rest.healthy) == ["east-a1", "east-a2", "east-c1"]
    assert (rest.memory.unhealthy, rest.memory.condemned) == ((), ())


def test_a_joiner_whose_etcd_does_not_get_well_is_given_up_for_another_one() -> None:
    """Nobody else is still to come: who is to go waits for this one."""
    struck = nowhere_in_its_zone(Component.ETCD)
    joins = until(struck, lambda truth, _: "east-4" in truth.members)
    steps = steps_until(joins, lambda truth, _: "east-5" in truth.healthy and not truth.members["east-5"].learner)
    healing = [each for each in steps if each.split()[0] in ("ReviveUnit", "Condemn", "RemoveMember")]
    assert healing == ["ReviveUnit etcd of east-4", "Condemn east-4", "RemoveMember east-4"]


TO_EVENTS = ("ReviveUnit", "Condemn", "RemoveMember", "ReleaseMember", "AddLearner", "PlaceReplica", "Promote")


def done_to_events(truth: FaultyTruth, stop: Stop = is_done) -> list[str]:
    steps = [each for each in steps_until(later(truth, 1), stop) if each.split()[0] in TO_EVENTS]
    return [each for each in steps if "east-2" in each or each.startswith("PlaceReplica")]


def test_a_member_of_the_events_etcd_that_hangs_is_restarted() -> None:
    struck = hung(apart(), Component.EVENTS_ETCD, "east-2")
    assert done_to_events(struck) == ["ReviveUnit etcd-events of east-2"]
    assert healed(until(later(struck, 1), is_done)) == 1


@pytest.mark.parametrize("name", ["east-1", "east-2"], ids=["leads", "follows"])
def test_if_that_does_not_help_its_replica_gets_another_member_and_stays(name: str) -> None:
    truth = apart()
    alone = replace(truth, machines=tuple(each for each in truth.machines if each.name.endswith("1")))
    struck = sick(alone, Component.EVENTS_ETCD, name)
    gone = until(later(struck, 1), lambda truth, _: name not in truth.of(Cluster.EVENTS).members)
    assert [(each.program, each.alone) for each in gone.memory.condemned] == [(Component.EVENTS_ETCD, True)]
    assert "etcd-events of east" in gone.memory.condemned[0].description
    cured = replace(gone, sick=frozenset())
    assert not any("apiserver" in each for each in steps_until(cured, is_done)), "all else is served meanwhile"
    well = until(cured, is_done)
    assert set(well.members) == set(well.of(Cluster.EVENTS).members) == {"east-1", "east-2", "east-3"}
    assert (well.memory.condemned, healed(well)) == ((), 1), "what nobody misses is no exchange"


def test_one_whose_other_member_does_not_get_well_either_is_exchanged_once_another_one_has_come() -> None:
    struck = sick(apart(), Component.EVENTS_ETCD, "east-2")
    assert done_to_events(struck) == [
        "ReviveUnit etcd-events of east-2",
        "Condemn east-2",
        "RemoveMember east-2",
        "ReleaseMember east-2",
        "AddLearner east-2",
        "Condemn east-2",
        "PlaceReplica east-4",
        "RemoveMember east-2",
        "RemoveMember east-2",
    ]
    well = until(later(struck, 1), is_done)
    assert set(well.members) == set(well.of(Cluster.EVENTS).members) == {"east-1", "east-3", "east-4"}
    assert healed(well) == 2


def test_one_that_got_another_member_lately_gets_no_third_one() -> None:
    struck = sick(apart(), Component.EVENTS_ETCD, "east-2")
    renewed = until(later(struck, 1), about_to(AddLearner))
    well = until(replace(renewed, sick=frozenset()), is_done)
    again = sick(well, Component.EVENTS_ETCD, "east-2")
    steps = done_to_events(again)
    assert "ReleaseMember east-2" not in steps
    assert "PlaceReplica east-4" in steps


def test_a_member_of_the_events_etcd_that_gets_well_before_it_is_taken_out_stays() -> None:
    struck = until(
        later(sick(apart(), Component.EVENTS_ETCD, "east-2"), 1), lambda truth, _: bool(truth.memory.condemned)
    )
    replica = struck.replica("east-2")
    well = replace(struck, sick=frozenset()).with_replica("east-2", replace(replica, hung=frozenset()))
    assert "Pardon east-2" in steps_until(well, is_done)
    assert "ReleaseMember east-2" not in steps_until(well, is_done)


def test_the_events_etcd_spares_nobody_without_whom_the_others_are_no_quorum() -> None:
    """They are healthy, and one of them lags: it is to catch up first."""
    struck = until(
        later(sick(apart(), Component.EVENTS_ETCD, "east-2"), 1), lambda truth, _: bool(truth.memory.revived)
    )
    late = until(struck, about_to(Condemn))
    assert all(each.alone for each in planned(observe(late), *HEALING_STEPS).steps if isinstance(each, Condemn))
    world = observe(late)
    world = with_member(world, "east-3", lambda member: replace(member, lag=None), Cluster.EVENTS)
    assert not planned(world, *HEALING_STEPS).steps
    assert dict(held_back(view(world))) == {"etcd-events of east-2": "the others are not a healthy quorum without it"}


@pytest.mark.parametrize("component", PROGRAMS)
def test_no_program_waits_for_a_member_of_the_events_etcd_to_get_well(component: Component) -> None:
    revived = until(
        later(sick(apart(), Component.EVENTS_ETCD, "east-2"), 1), lambda truth, _: bool(truth.memory.revived)
    )
    both = until(hung(revived, component, "east-3"), about_to(ReviveUnit))
    assert "etcd-events of east-2" in dict(both.memory.unhealthy) or component != Component.ETCD
    assert set(until(both, is_done).of(Cluster.EVENTS).members) == {"east-1", "east-3", "east-4"}


def test_who_comes_joins_the_events_etcd_too_once_it_has_no_dead_voter() -> None:
    """Another replica is to be exchanged while a member of it does not get well: neither waits for ever."""
    truth = apart()
    truth = replace(truth, settings=replace(truth.settings, healing=replace(HEALING, budget=9)))
    struck = sick(sick(truth, Component.EVENTS_ETCD, "east-2"), Component.APISERVER, "east-3")
    well = until(later(struck, 1), is_done)
    assert set(well.members) == set(well.of(Cluster.EVENTS).members) == {"east-1", "east-4", "east-5"}


def test_two_replicas_whose_apiservers_do_not_get_well_are_exchanged_one_after_the_other() -> None:
    """Each was to be ready before the other one could go."""
    truth = plane(3, replace(HEALING, budget=9))
    struck = sick(sick(truth, Component.APISERVER, "east-2"), Component.APISERVER, "east-3")
    assert set(until(later(struck, 1), is_done).members) == {"east-1", "east-4", "east-5"}


def test_a_member_that_hangs_waits_for_no_other_program_to_get_well() -> None:
    """Without it there is no quorum to exchange the replica with that needs to be."""
    truth = sick(plane(3, replace(HEALING, budget=9)), Component.SCHEDULER, "east-2")
    revived = until(truth, lambda truth, _: healed(truth) == 1)
    both = later(hung(revived, Component.ETCD, "east-3"), 14)
    assert "etcd of east-3" in dict(both.memory.revived)
    assert set(until(both, is_done).members) == {"east-1", "east-3", "east-4"}


def test_nothing_is_restarted_before_it_did_not_get_well_for_long_enough() -> None:
    noted = until(hung(plane(), Component.SCHEDULER, "east-2"), lambda truth, _: bool(truth.memory.unhealthy))
    assert healed(later(noted, 1)) == 0
    assert healed(later(noted, 2)) == 1


def test_one_that_gets_well_by_itself_is_forgotten() -> None:
    noted = until(hung(plane(), Component.APISERVER, "east-2"), lambda truth, _: bool(truth.memory.unhealthy))
    replica = noted.replica("east-2")
    back = until(noted.with_replica("east-2", replace(replica, hung=frozenset(), warm=True)), is_done)
    assert back.memory.unhealthy == ()
    assert healed(back) == 0


def test_no_machine_of_a_condemned_replica_is_given_another_one() -> None:
    world = observe(plane())
    record = world.memory.replica("east-2")
    condemned = Condemned(replica="east-2", why="", since=0.0, program=Component.APISERVER)
    assert machine_for(world, record.slot, {"east-b1", "east-b2"}, [record]) is not None
    memory = replace(world.memory, condemned=(condemned,))
    assert machine_for(replace(world, memory=memory), record.slot, {"east-b1", "east-b2"}, [record]) is None


def test_what_a_load_balancer_finds_well_is_only_not_seen_by_us() -> None:
    world = observe(hung(plane(), Component.APISERVER, "east-2"))
    balancers = tuple(replace(each, healthy=each.healthy | {"east-2"}) for each in world.balancers)
    assert unhealthy(view(replace(world, balancers=balancers))) == ()
    north = BalancerFact(site="north", running=True, backends=frozenset({"east-2"}))
    assert unhealthy(view(replace(world, balancers=(*balancers, north)))) == (), "one of them is enough"
    blind = tuple(replace(each, healthy=each.healthy - {"east-2"}) for each in world.balancers)
    assert [component for _, component in unhealthy(view(replace(world, balancers=blind)))] == [Component.APISERVER]


def test_a_member_that_only_we_do_not_hear_is_left_alone() -> None:
    truth = plane()
    unheard = replace(truth, mute=frozenset({etcd_of("east-2"), apiserver_of("east-2")}))
    assert healed(later(unheard, 60)) == 0


def test_an_apiserver_whose_etcd_is_not_well_is_not_to_blame() -> None:
    struck = hung(hung(plane(), Component.APISERVER, "east-2"), Component.ETCD, "east-2")
    steps = [each for each in steps_until(later(struck, 1), is_done) if each.startswith("ReviveUnit")]
    assert steps == ["ReviveUnit etcd of east-2", "ReviveUnit kube-apiserver of east-2"]


def test_one_at_a_time_and_the_next_when_the_one_before_is_well(golden: Golden) -> None:
    struck = hung(plane(5), Component.APISERVER, "east-1", "east-2")
    first = until(struck, lambda truth, _: healed(truth) == 1)
    assert not any(isinstance(each, ReviveUnit) for each in plan(observe(first)).now)
    golden(str(why_not(later(first, 0))))
    assert healed(until(first, is_done)) == 2


def test_when_half_of_the_replicas_ail_at_once_it_is_waited_for_longer(golden: Golden) -> None:
    struck = hung(plane(), Component.APISERVER, "east-1", "east-2")
    assert healed(later(struck, 8)) == 0
    golden(str(why_not(later(struck, 8))))
    assert healed(later(struck, 14)) >= 1


def test_the_budget_is_that_of_all_healing_and_0_means_never(golden: Golden) -> None:
    once = until(later(hung(plane(3, replace(HEALING, budget=1)), Component.SCHEDULER, "east-2"), 1), is_done)
    again = hung(once, Component.SCHEDULER, "east-3")
    assert healed(later(again, 20)) == 1
    golden(str(why_not(later(again, 20))))
    dead = replace(
        again,
        machines=tuple(replace(each, power=Power.OFF) if each.name == "east-a1" else each for each in again.machines),
    )
    assert later(dead, 20).memory.condemned == ()
    never = later(hung(plane(3, replace(HEALING, budget=0)), Component.ETCD, "east-2"), 60)
    assert never.memory.unhealthy == ()
    assert healed(never) == 0


def test_a_single_replica_is_restarted_and_never_condemned_for_what_nobody_else_shows() -> None:
    struck = later(sick(plane(1), Component.APISERVER, "east-1"), 40)
    assert struck.memory.condemned == ()
    assert healed(struck) == 1
    assert why_not(struck) == {"kube-apiserver of east-1": "no other replica shows that the cause is its machine"}


def test_without_another_machine_it_is_left_as_it_is(golden: Golden) -> None:
    truth = plane()
    alone = replace(truth, machines=tuple(each for each in truth.machines if each.name.endswith("1")))
    struck = later(sick(alone, Component.APISERVER, "east-2"), 60)
    assert struck.memory.condemned == ()
    golden(str(why_not(struck)))


def test_a_condemned_one_that_gets_well_before_it_is_exchanged_stays() -> None:
    struck = until(sick(plane(), Component.APISERVER, "east-2"), lambda truth, _: bool(truth.memory.condemned))
    replica = struck.replica("east-2")
    well = replace(struck, sick=frozenset()).with_replica("east-2", replace(replica, hung=frozenset(), warm=True))
    assert set(until(well, is_done).members) == {"east-1", "east-2", "east-3"}


def failing(world: World, component: Component, name: str) -> World:
    """It does not run, and starting it has failed."""
    step = StartUnit(site="east", why="", replica=name, component=component)
    facts = tuple(
        replace(
            each,
            units=tuple((one, UnitState.STOPPED if one == component else at) for one, at in each.units),
            ready=False,
        )
        if each.name == name
        else each
        for each in world.replicas
    )
    balancers = tuple(replace(each, healthy=each.healthy - {name}) for each in world.balancers)
    return replace(world, replicas=facts, balancers=balancers, failing=(Failing(step=step, error="the disk is full"),))


def test_a_program_that_cannot_be_started_again_and_again_has_its_replica_exchanged() -> None:
    world = failing(observe(plane()), Component.APISERVER, "east-2")
    ((record, component),) = unhealthy(view(world))
    assert (record.name, component) == ("east-2", Component.APISERVER)
    noted = with_memory(world, unhealthy=(("kube-apiserver of east-2", world.now),))
    # The step is tried again: nothing fails at this moment.
    assert len(unhealthy(view(replace(noted, failing=())))) == 1
    assert [kind(each) for each in planned(replace(noted, now=noted.now + 1.0), *HEALING_STEPS).steps] == []
    (step,) = planned(replace(noted, now=noted.now + 2.0), *HEALING_STEPS).steps
    assert isinstance(step, Condemn)
    assert (step.replica, step.program) == ("east-2", Component.APISERVER)
    assert unhealthy(view(replace(world, failing=()))) == (), "a mere start is none"
    stop = StopUnit(site="east", why="", replica="east-2", component=Component.APISERVER)
    start = StartUnit(site="east", why="", replica="east-2", component=Component.SCHEDULER)
    for step in (stop, start):
        other = replace(world, failing=(Failing(step=step, error="the disk is full"),))
        assert unhealthy(view(other)) == (), "another step fails"


def blamed(world: World) -> list[str]:
    return [f"{component} of {record.name}" for record, component in unhealthy(view(world))]


def hindered() -> dict[str, tuple[Component, Callable[[World], World]]]:
    """What may be the reason why a program of east-2 hangs, or why it is not seen to work."""
    apiserver, scheduler, name = Component.APISERVER, Component.SCHEDULER, "east-2"

    def seen(who: str, **facts: Any) -> Callable[[World], World]:
        return lambda world: with_member(world, who, lambda member: replace(member, **facts))

    def observed(**facts: Any) -> Callable[[World], World]:
        return lambda world: with_fact(world, name, lambda fact: replace(fact, **facts))

    def raised(world: World) -> World:
        return with_membership(world, alarms=("memberID:1 alarm:NOSPACE ",))

    return {
        "its member only listens": (apiserver, seen(name, learner=True)),
        "its member is far behind": (apiserver, seen(name, lag=10**6)),
        "its member is not well": (apiserver, seen(name, health=Health.SUSPECT)),
        "its apiserver is not ready": (scheduler, observed(ready=False)),
        "the member of its apiserver is not well": (scheduler, seen(name, health=Health.SUSPECT)),
        "its machine does not answer": (scheduler, observed(machine=MachineState.UNREACHABLE)),
        "etcd has raised an alarm": (scheduler, raised),
        "there is no quorum": (
            scheduler,
            lambda world: seen("east-1", health=Health.DOWN)(seen("east-3", health=Health.DOWN)(world)),
        ),
        "the plane is still founded": (scheduler, lambda world: with_memory(world, created=False)),
    }


@pytest.mark.parametrize("why", hindered())
def test_no_program_is_blamed_while_the_cause_may_be_another_one(why: str) -> None:
    component, change = hindered()[why]
    world = observe(hung(plane(), component, "east-2"))
    world = with_balancers(world, replace(world.balancer("east"), healthy=frozenset({"east-1", "east-3"})))
    assert blamed(world) == [f"{component} of east-2"]
    assert blamed(change(world)) == []


def on_trial(component: Component, replicas: int = 1) -> World:
    """So many replicas run another revision, which changes a program. It hangs on the first of them, and worked."""
    truth = changing(3, 3, ReplicaChange(restart=frozenset({component})), apart=frozenset({FORMER, NEW}))
    truth = replace(truth, settings=replace(truth.settings, healing=HEALING))

    def rests(truth: FaultyTruth, now: Plan) -> bool:
        changed = [each.name for each in truth.memory.replicas if each.revision == NEW]
        return len(changed) == replicas and any(isinstance(each, StopUnit) for each in now.now)

    world = observe(hung(until(truth, rests), component, "east-2"))
    assert view(world).resting is None
    return world


def test_a_program_of_a_revision_that_is_on_trial_is_the_rollouts_until_it_works_elsewhere() -> None:
    assert blamed(on_trial(Component.SCHEDULER)) == []
    assert blamed(on_trial(Component.SCHEDULER, 2)) == ["kube-scheduler of east-2"]


def test_no_revision_is_on_trial_for_a_member_that_lags_or_for_one_of_the_events_etcd() -> None:
    def seen(world: World, cluster: Cluster, **facts: Any) -> World:
        return with_member(world, "east-2", lambda member: replace(member, **facts), cluster)

    world = seen(on_trial(Component.EVENTS_ETCD), Cluster.EVENTS, health=Health.DOWN)
    assert blamed(world) == ["etcd-events of east-2"]
    world = on_trial(Component.ETCD)
    assert blamed(seen(world, Cluster.MAIN, health=Health.DOWN)) == []
    assert blamed(seen(world, Cluster.MAIN, health=Health.HEALTHY, lagging=True, lag=5_000)) == ["etcd of east-2"]


def etcd_of_third(
    *, started: bool, member: bool = True, has_data: bool | None = True, at: UnitState = UnitState.RUNNING
) -> World:
    """The etcd of east-3 is down: it hangs, or exits repeatedly (``at`` is FAILED)."""
    hangs = at is UnitState.RUNNING
    third = Seen("east-3", member=member, health=Health.DOWN, lag=None, etcd=at, started=started, has_data=has_data)
    world = seen(*voters_at("east", 2), replace(third, listed=member, ready=False), to="east", count=3)
    etcd = frozenset({Component.ETCD})
    facts = {"silent": etcd, "hung": etcd} if hangs else {"crash_looping": etcd}
    return with_fact(world, "east-3", lambda fact: replace(fact, **facts))


def test_a_member_is_blamed_once_it_has_begun_and_as_long_as_its_data_is_there() -> None:
    down = ["etcd of east-3"]
    assert blamed(etcd_of_third(started=True)) == down
    assert blamed(etcd_of_third(started=True, at=UnitState.FAILED)) == down
    assert blamed(etcd_of_third(started=True, has_data=None)) == [], "its volume may be away"
    assert blamed(etcd_of_third(started=False, has_data=None)) == down, "it hung before it ever answered"
    assert blamed(etcd_of_third(started=False, at=UnitState.FAILED)) == [], "it is about to start"
    assert blamed(etcd_of_third(started=False, member=False)) == [], "it is no member yet"


def test_what_has_exited_since_it_was_seen_to_hang_is_started_and_not_blamed() -> None:
    world = observe(hung(plane(), Component.SCHEDULER, "east-2"))
    assert blamed(with_unit(world, "east-2", Component.SCHEDULER, UnitState.FAILED)) == []


def test_who_has_no_program_is_not_blamed_for_what_is_left_of_it() -> None:
    cloud = Component.CLOUD_CONTROLLER_MANAGER
    world = with_unit(observe(plane()), "east-2", cloud, UnitState.RUNNING)
    assert blamed(with_fact(world, "east-2", lambda fact: replace(fact, silent={cloud}, hung={cloud}))) == []


def test_no_member_of_the_events_etcd_is_blamed_while_nobody_knows_who_is_one() -> None:
    world = observe(hung(apart(), Component.EVENTS_ETCD, "east-2"))
    assert blamed(replace(world, events_membership=None)) == []


# --- when a replica is exchanged for it -----------------------------------------------------------------------------


def revived(world: World) -> World:
    """The scheduler of east-2 hangs again, and was restarted lately."""
    scheduler, name = Component.SCHEDULER, "kube-scheduler of east-2"
    world = with_memory(world, unhealthy=((name, world.now - 99.0),), revived=((name, world.now),))
    world = replace(world, settings=replace(world.settings, healing=HEALING))
    return with_fact(world, "east-2", lambda fact: replace(fact, silent={scheduler}, hung={scheduler}))


def test_one_that_exits_repeatedly_is_restarted_although_it_runs_at_the_moment() -> None:
    world = with_memory(revived(observe(plane())), revived=())
    scheduler = frozenset({Component.SCHEDULER})
    starts = with_fact(world, "east-2", lambda fact: replace(fact, silent=scheduler, hung=frozenset()))
    assert not planned(starts, *HEALING_STEPS).steps, "it may be starting"
    ends = with_fact(starts, "east-2", lambda fact: replace(fact, crash_looping=scheduler))
    assert [kind(step) for step in planned(ends, *HEALING_STEPS).steps] == ["ReviveUnit"]


def of_others(**facts: Any) -> World:
    """The same of no other replica."""
    world = revived(observe(plane()))
    for name in ("east-1", "east-3"):
        world = with_fact(world, name, lambda fact: replace(fact, **facts))
    return world


def lagging(world: World) -> World:
    """The member of east-2 lags, and was restarted lately."""
    etcd = "etcd of east-2"
    world = with_memory(world, unhealthy=((etcd, world.now - 999.0),), revived=((etcd, world.now),))
    world = replace(world, settings=replace(world.settings, healing=HEALING))
    return with_member(world, "east-2", lambda it: replace(it, health=Health.HEALTHY, lagging=True, lag=5_000))


FOUR = voters_at("east", 4)


@pytest.mark.parametrize(
    ("world", "shown"),
    [
        pytest.param(revived(observe(plane())), True, id="it works elsewhere"),
        pytest.param(of_others(ready=False), False, id="it has no apiserver there"),
        pytest.param(of_others(silent={Component.SCHEDULER}), False, id="it hangs there as well"),
        pytest.param(lagging(seen(placed("east-1"), *FOUR[1:], to="east", count=4)), True, id="others vote"),
        pytest.param(lagging(on_trial(Component.ETCD)), False, id="others run another revision"),
    ],
)
def test_a_replica_is_exchanged_only_if_another_one_shows_that_the_cause_is_its_machine(
    world: World, shown: bool
) -> None:
    ((_, why),) = held_back(view(world)) or ((None, ""),)
    assert ("no other replica shows" not in why) is shown


def others() -> dict[str, World]:
    """Other replicas of the plane that are not where they are to be."""
    three = voters_at("east", 3)
    at_east = seen(*three, to="east", count=3)
    return {
        "one is missing": seen(*three, to="east", count=4),
        "one is to be replaced": replace(at_east, condemned=("east-3",), machines=()),
        "one only listens": seen(*three[:2], replace(three[2], learner=True), to="east", count=3),
        "one has not joined": seen(*three[:2], placed("east-3"), to="east", count=3),
        "none of them has the quorum": seen(*three, *voters_at("west", 5, first=4), to="east", count=3),
        "the plane goes back": seen(*three, dead("west-4"), to="west", count=3),
    }


@pytest.mark.parametrize("why", others())
def test_no_replica_is_exchanged_for_a_program_before_the_others_are_in_place(why: str, golden: Golden) -> None:
    assert kind(planned(revived(observe(plane())), *HEALING_STEPS).steps[0]) == "Condemn"
    world = revived(others()[why])
    assert not planned(world, Condemn).steps
    golden(dict(held_back(view(world)))["kube-scheduler of east-2"])


def test_nothing_is_restarted_while_another_replica_is_out_by_our_own_doing() -> None:
    truth = changing(3, 3, ReplicaChange(restart=frozenset({Component.APISERVER})))
    rolling = until(replace(truth, settings=replace(truth.settings, healing=HEALING)), about_to(AdoptRevision))
    struck = hung(rolling, Component.SCHEDULER, "east-3")
    assert view(observe(struck)).resting is not None
    assert unhealthy(view(observe(struck))) == ()
    rolled = until(struck, is_done)
    assert healed(rolled) == 0
    assert healed(until(later(hung(rolled, Component.SCHEDULER, "east-3"), 1), is_done)) == 1


def test_a_program_of_a_cordoned_replica_is_left_alone() -> None:
    struck = replace(hung(plane(), Component.ETCD, "east-2"), cordoned=("east-2",))
    assert healed(later(struck, 60)) == 0


@pytest.mark.parametrize("component", [Component.CONTROLLER_MANAGER, Component.SCHEDULER])
def test_controllers_that_something_else_keeps_from_leading_are_left_alone_however_often_they_end(
    component: Component,
) -> None:
    """A webhook that delays leases ends each leader after 10 s, on any machine."""
    world = observe(plane())
    ends = tuple(replace(each, crash_looping=frozenset({component})) for each in world.replicas)
    world = replace(world, replicas=ends)
    unled = Leadership(component=component, lease=str(component), led=False)
    assert [each for _, each in unhealthy(view(replace(world, leading=(unled,))))] == [component] * 3, "they crash"
    webhook = Obstacle(seen="a webhook refuses it", mend="take it out")
    for hindered in (
        replace(unled, obstacles=(webhook,)),
        replace(unled, holder="ghost", foreign=True),
        replace(unled, holder="ghost", expired=False),
    ):
        assert unhealthy(view(replace(world, leading=(hindered,)))) == ()
