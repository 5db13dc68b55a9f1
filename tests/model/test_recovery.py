"""New epochs, after a lost quorum and from a backup: whatever comes between, one epoch begins, from its origin; nothing
of the former one takes writes where it can be reached, none of its data is lost, and the plane is as wanted in the end.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.components import having
from support.tiers import smoke

from model.explorer import Explorer
from model.faulty_truth import FaultyTruth
from model.invariants import Broken
from model.kinds import Kind
from model.stories import until
from model.walk import Planner, State, Walker
from model.worlds import beside, empty, settled, wanted
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import BackupOrigin, Consent, EventsPoint, RestorePoint
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import BeginEpoch, ForgetCluster, RestoreMember
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.steps.units import StartUnit, StopUnit
from quarterdeck.model.world import Failing, World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.simulated import observe, tick
from quarterdeck.planner.simulated.parts import Power

pytestmark = pytest.mark.timeout(600)

#: What may come between: a driver that dies, freezes or is slow, and a machine that dies besides.
BETWEEN = frozenset(
    {
        Kind.TAKEOVER,
        Kind.SOME_STEPS,
        Kind.REPLY_LOST,
        Kind.LATE,
        Kind.SLOW,
        Kind.REFUSED,
        Kind.CRASH,
        Kind.UNSEEN_SUPERVISOR,
    }
)


#: Of who says that they are gone who do not answer.
ALL_THE_SAME = Consent(epoch=1, even_if_others_live=True)


def lost(power: Power, consent: Consent, *, replicas: int = 3, left: int = 1, apart: bool = False) -> FaultyTruth:
    """The machines of all but ``left`` of the replicas are in that state, and the user has said what is to be done."""
    truth = replace(empty("east", replicas), programs=having(events=("",) if apart else ()))
    truth = settled(truth)
    gone = {truth.machine_of(each.name).name for each in truth.memory.replicas[left:]}
    machines = tuple(replace(each, power=power) if each.name in gone else each for each in truth.machines)
    return tick(replace(truth, machines=machines, consent=consent))


def searched(truth: FaultyTruth, *, faults: int, kinds: frozenset[Kind] = BETWEEN, planner: Planner = plan) -> Explorer:
    explorer = Explorer(Walker(planner=planner, kinds=kinds))
    explorer.explore(State(truth, faults=faults, calm=False))
    return explorer


@pytest.mark.parametrize("faults", [*smoke(0), 1])
def test_two_of_three_die_for_good_and_may_come_back_at_any_moment(faults: int) -> None:
    explorer = searched(lost(Power.OFF, Consent(epoch=1)), faults=faults)
    print(f"{explorer.states:,} states, {explorer.walker.steps:,} steps")
    assert explorer.states > 20


def test_a_cut_off_majority_that_comes_back_is_stopped_before_anything_else_is_done() -> None:
    """With a fault between it is searched by ./test soak."""
    assert searched(lost(Power.FROZEN, ALL_THE_SAME), faults=0).states > 20


def test_the_plane_keeps_its_events_again() -> None:
    assert searched(lost(Power.OFF, Consent(epoch=1), apart=True), faults=0).states > 20


def test_three_of_five_die_for_good() -> None:
    assert searched(lost(Power.OFF, Consent(epoch=1), replicas=5, left=2), faults=0).states > 20


def test_the_survivor_dies_as_well_before_it_was_copied() -> None:
    truth = until(lost(Power.OFF, Consent(epoch=1), replicas=5, left=2), lambda now, _: now.memory.epoch == 1)
    assert truth.memory.seed is not None
    gone = truth.machine_of(truth.memory.seed.candidates[0]).name
    machines = tuple(replace(each, power=Power.OFF) if each.name == gone else each for each in truth.machines)
    truth = replace(truth, machines=machines, consent=Consent(epoch=2))
    assert searched(truth, faults=0).states > 20


#: A person restores a backup of the first epoch.
ORIGIN = BackupOrigin(store="file:///backups", folder="demo/1", epoch=0)
RESTORE = Consent(epoch=1, restore=RestorePoint(origin=ORIGIN, revision=5))


@pytest.mark.parametrize("faults", [*smoke(0), pytest.param(1, marks=pytest.mark.soak)])
def test_a_plane_that_serves_is_restored_from_a_backup(faults: int) -> None:
    assert searched(lost(Power.ON, RESTORE), faults=faults).states > 20


@pytest.mark.parametrize("left", [*smoke(0), 1, 2])
def test_a_plane_whose_machines_died_is_restored_from_a_backup_and_they_may_come_back(left: int) -> None:
    assert searched(lost(Power.OFF, RESTORE, left=left), faults=0).states > 20


def test_a_plane_with_an_etcd_of_events_is_restored_from_a_backup() -> None:
    assert searched(lost(Power.ON, RESTORE, apart=True), faults=0).states > 20


#: The same with the events' cluster.
BOTH = replace(RESTORE, restore=RestorePoint(origin=ORIGIN, revision=5, events=EventsPoint(epoch=1, revision=9)))


@pytest.mark.parametrize("faults", [*smoke(0), pytest.param(1, marks=pytest.mark.soak)])
def test_the_etcd_of_events_is_restored_too(faults: int) -> None:
    truth = lost(Power.ON, BOTH, apart=True)
    done = until(truth, lambda _, now: any(_restores_events(step) for step in now.now))
    assert done.memory.seeding is None, "the main cluster comes first"
    assert searched(truth, faults=faults).states > 20


def _restores_events(step: Step) -> bool:
    return isinstance(step, RestoreMember) and step.cluster is Cluster.EVENTS


@pytest.mark.parametrize("why", ["it fails", "its founder is gone"])
def test_events_that_cannot_be_restored_begin_empty(why: str) -> None:
    truth = until(lost(Power.ON, BOTH, apart=True), lambda _, now: any(map(_restores_events, now.now)))
    world = observe(truth)
    if why == "it fails":
        step = next(each for each in plan(world).now if _restores_events(each))
        world = replace(world, failing=(Failing(step=replace(step, why=""), error="the store does not answer"),))
    else:
        gone = truth.machine_of(truth.memory.bootstrap[0]).name
        off = tuple(replace(each, power=Power.OFF) if each.name == gone else each for each in truth.machines)
        world = observe(replace(truth, machines=off))
    (forgotten,) = plan(world).now
    assert isinstance(forgotten, ForgetCluster)
    assert remember(world.memory, forgotten, 0.0).events.seed is None


def with_events_at_once(world: World) -> Plan:
    """The events' cluster is founded before it has its data."""
    seed = world.memory.events.seed
    if seed is None or not world.memory.events.exists:
        return plan(world)
    memory = replace(world.memory, events=replace(world.memory.events, seed=replace(seed, restored=True)))
    return plan(replace(world, memory=memory))


@pytest.mark.smoke
def test_a_planner_that_founds_events_before_their_data_is_there_is_found() -> None:
    with pytest.raises(Broken, match=r"^17: events"):
        searched(lost(Power.ON, BOTH, apart=True), faults=0, planner=with_events_at_once)


def test_a_backup_is_not_restored_while_a_majority_that_does_not_answer_may_serve() -> None:
    truth = lost(Power.FROZEN, RESTORE)
    now = plan(observe(truth))
    assert not any(isinstance(step, BeginEpoch) for step in now.now)
    assert any("two epochs must never serve at once" in str(wait) for wait in now.waiting)
    assert searched(replace(truth, consent=replace(RESTORE, even_if_others_live=True)), faults=0).states > 20


def test_another_moment_is_restored_where_the_first_one_cannot_be() -> None:
    truth = until(lost(Power.ON, RESTORE), lambda now, _: now.memory.epoch == 1)
    assert searched(replace(truth, consent=replace(RESTORE, epoch=2)), faults=0).states > 20


@pytest.mark.parametrize("consent", [RESTORE, Consent(epoch=1)], ids=["from a backup", "from a survivor"])
def test_controllers_wait_for_kubelets_that_do_not_come_back_and_not_for_ever(consent: Consent) -> None:
    power = Power.ON if consent is RESTORE else Power.OFF
    assert searched(replace(lost(power, consent), kubelets=False), faults=0).states > 20


def test_kubelets_that_come_back_are_not_waited_for_any_longer() -> None:
    truth = replace(lost(Power.ON, RESTORE, replicas=1), kubelets=False)
    ready = until(
        truth, lambda _, planned: any("a kubelet to renew its Lease" in str(each) for each in planned.waiting)
    )
    assert not starts_controllers(ready)
    assert starts_controllers(replace(ready, kubelets=True))
    assert starts_controllers(replace(ready, now=ready.now + ready.settings.kubelets)), "they are waited for in vain"


def starts_controllers(truth: FaultyTruth) -> bool:
    """Whether the controller manager starts now."""
    component = Component.CONTROLLER_MANAGER
    return any(isinstance(step, StartUnit) and step.component == component for step in plan(observe(truth)).now)


def with_controllers_at_once(world: World) -> Plan:
    """Controllers start as soon as an apiserver is ready."""
    return plan(replace(world, kubelets_back=True))


@pytest.mark.smoke
def test_a_planner_that_starts_controllers_before_kubelets_are_back_is_found() -> None:
    with pytest.raises(Broken, match=r"^23:"):
        searched(
            replace(lost(Power.ON, RESTORE, replicas=1), kubelets=False), faults=0, planner=with_controllers_at_once
        )


#: A person fails over to the standby.
FAILOVER = Consent(epoch=1, standby=True)


def failed_over(power: Power, consent: Consent = FAILOVER, *, gone: int = 3, apart: bool = False) -> FaultyTruth:
    """A plane with a standby at west, of whose machines at east so many are in that state, and which the user wants at
    west.
    """
    truth = replace(empty("east", 3), programs=having(events=("",) if apart else ()))
    truth = beside(settled(truth), "west")
    lost = {truth.machine_of(each.name).name for each in truth.memory.replicas if each.site == "east"}
    lost = frozenset(sorted(lost)[:gone])
    machines = tuple(replace(each, power=power) if each.name in lost else each for each in truth.machines)
    edges = frozenset({"east"}) if gone == 3 else frozenset[str]()
    checked = tuple(each for each in truth.checked if each[0] not in edges)
    lost_site = replace(truth, machines=machines, dead_edges=edges, checked=checked)
    return tick(replace(lost_site, consent=consent, slots=wanted("west", 3), standby=None))


@pytest.mark.parametrize("faults", [*smoke(0), pytest.param(1, marks=pytest.mark.soak)])
def test_a_site_is_lost_and_its_plane_fails_over_to_the_standby(faults: int) -> None:
    """Its machines may come back at any moment."""
    explorer = searched(failed_over(Power.OFF), faults=faults)
    print(f"{explorer.states:,} states, {explorer.walker.steps:,} steps")
    assert explorer.states > 20


def test_a_failover_ends_at_the_site_of_the_standby_without_the_old_replicas() -> None:
    truth = settled(failed_over(Power.OFF))
    assert truth.memory.epoch == 1
    assert {truth.site_of(name) for name in truth.members} == {"west"}
    assert truth.record == "west"
    back = replace(truth, machines=tuple(replace(each, power=Power.ON) for each in truth.machines))
    back = settled(replace(back, dead_edges=frozenset()))
    assert {truth.site_of(each.name) for each in back.memory.replicas} == {"west"}
    assert {each.site for each in back.memory.kept} == {"east", "west"}  # the data of the standby is kept as well


def test_a_plane_whose_events_are_apart_fails_over() -> None:
    assert searched(failed_over(Power.OFF, apart=True), faults=0).states > 20


def test_a_majority_that_does_not_answer_may_live_on_so_that_nothing_fails_over() -> None:
    truth = failed_over(Power.FROZEN)
    now = plan(observe(truth))
    assert not any(isinstance(step, BeginEpoch) for step in now.now)
    assert any("two epochs must never serve at once" in str(wait) for wait in now.waiting)
    assert searched(replace(truth, consent=replace(FAILOVER, even_if_others_live=True)), faults=0).states > 20


def test_a_quorum_that_answers_is_moved_and_the_consent_to_the_failover_ends() -> None:
    truth = settled(failed_over(Power.OFF, gone=1))
    assert truth.memory.epoch == 0
    assert not truth.consent.standby
    assert {truth.site_of(name) for name in truth.members} == {"west"}


def without_a_fence(world: World) -> Plan:
    """What comes back of a former epoch runs on."""
    now = plan(world)
    former = {each.name for each in world.memory.replicas if world.memory.is_former(each)}
    steps = tuple(step for step in now.now if not (isinstance(step, StopUnit) and step.replica in former))
    return replace(now, now=steps, waiting=now.waiting or (Wait("nothing", ""),))


def without_keeping(world: World) -> Plan:
    """What is let go of a former epoch takes its data along."""
    now = plan(world)
    return replace(
        now, now=tuple(replace(step, keep=False) if isinstance(step, ReleaseReplica) else step for step in now.now)
    )


@pytest.mark.smoke
@pytest.mark.parametrize("planner", [without_a_fence, without_keeping])
def test_a_planner_that_does_not_keep_epochs_apart_is_found(planner: Planner) -> None:
    with pytest.raises(Broken, match=r"^17:"):
        searched(lost(Power.OFF, Consent(epoch=1)), faults=0, planner=planner)


def at_once(world: World) -> Plan:
    """A plane fails over as soon as its quorum is not seen."""
    return plan(replace(world, consent=Consent(epoch=1, standby=True, even_if_others_live=True)))


@pytest.mark.smoke
@pytest.mark.parametrize("asked", [Consent(), FAILOVER], ids=["nobody asked", "others may live"])
def test_a_planner_that_fails_over_without_consent_is_found(asked: Consent) -> None:
    with pytest.raises(Broken, match=r"^17:"):
        searched(failed_over(Power.FROZEN, asked), faults=0, planner=at_once)


def before_anybody_asks(world: World) -> Plan:
    """A backup is restored as soon as a person may have asked for it."""
    return plan(replace(world, consent=replace(RESTORE, even_if_others_live=True)))


@pytest.mark.smoke
@pytest.mark.parametrize("asked", [Consent(), RESTORE], ids=["nobody asked", "others may live"])
def test_a_planner_that_restores_without_consent_is_found(asked: Consent) -> None:
    with pytest.raises(Broken, match=r"^17:"):
        searched(lost(Power.FROZEN, asked), faults=0, planner=before_anybody_asks)
