"""What a plane's conditions tell, and how seldom they are written."""

from __future__ import annotations

from dataclasses import replace

from support.golden import Golden
from support.resources import with_status

from quarterdeck.api.base import Condition, ConditionStatus
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.engine.notices.conditions import KINDS, judged, reworded, stalled, turned, unseen, why_stalled
from quarterdeck.model.balancers import BalancerFact, EdgeFact
from quarterdeck.model.clusters import ClusterMemory, Full
from quarterdeck.model.components import Component
from quarterdeck.model.epochs import BackupOrigin, Seed
from quarterdeck.model.leadership import Leadership
from quarterdeck.model.membership import Health, MemberFact, Membership, Space
from quarterdeck.model.memory import Condemned, Memory, Rejection, Replica
from quarterdeck.model.seats import Slot
from quarterdeck.model.steps.clusters import NoteCreated
from quarterdeck.model.steps.plan import Plan, Wait
from quarterdeck.model.world import World

SERVES = BalancerFact(site="east", running=True, backends=frozenset({"a-1"}), healthy=frozenset({"a-1"}))
REPLICA = Replica(name="a-1", slot=Slot(site="east", zone="a"), machine="m-1")
WELL = World(
    slots=(),
    memory=Memory(served_site="east", replicas=(REPLICA,)),
    now=0.0,
    plane_name="demo",
    record="east",
    balancers=(SERVES,),
)
BUSY = Plan(now=(NoteCreated(site="east", why=""),))


def of(found: tuple[Condition, ...]) -> dict[str, str]:
    return {each.type: each.status.value for each in found}


def message_of(found: tuple[Condition, ...], kind: str) -> str:
    return next(each.message for each in found if each.type == kind)


def look(
    before: tuple[Condition, ...] = (), world: World = WELL, plan: Plan | None = None, *asked: str, now: float = 2.0
) -> tuple[Condition, ...]:
    return judged(before, world, plan or Plan(), asked=asked, generation=3, now=now)


def test_nothing_is_known_of_a_plane_that_nobody_has_looked_at() -> None:
    found = unseen(1.0)
    assert of(found) == dict.fromkeys(KINDS, "Unknown")
    settled = look(found)
    expected = {
        ConditionType.READY: "True",
        ConditionType.AVAILABLE: "True",
        ConditionType.RECONCILING: "False",
        ConditionType.STALLED: "False",
    }
    assert of(settled) == {**expected, ConditionType.CONTROLLERS_LEAD: "Unknown"}, "no apiserver was asked for leases"
    assert {each.observed_generation for each in settled} == {3}


def test_available_is_what_the_last_look_saw_and_unknown_where_it_saw_nothing() -> None:
    dead = replace(SERVES, healthy=frozenset())
    deaf = replace(dead, reachable=False)
    assert of(look(world=replace(WELL, balancers=(dead,))))[ConditionType.AVAILABLE] == "False"
    assert of(look(world=replace(WELL, balancers=(deaf,))))[ConditionType.AVAILABLE] == "Unknown"
    half = replace(SERVES, reachable=False)
    assert of(look(world=replace(WELL, balancers=(half,))))[ConditionType.AVAILABLE] == "True", (
        "one of its edges is silent"
    )
    assert of(look(world=replace(WELL, record=None)))[ConditionType.AVAILABLE] == "False"
    unread = replace(WELL, record=None, record_known=False)
    assert of(look(world=unread))[ConditionType.AVAILABLE] == "True", (
        "the name is unread, and led there when it was read last"
    )


def test_what_is_waited_for_is_said_and_stays_said_while_steps_are_taken(golden: Golden) -> None:
    waits = look(plan=Plan(waiting=(Wait("learner a-2 to catch up: 12,345 entries behind", "see to it"),)))
    assert (of(waits)[ConditionType.READY], of(waits)[ConditionType.RECONCILING]) == ("False", "True")
    golden(message_of(waits, ConditionType.RECONCILING))
    less = look(waits, plan=Plan(waiting=(Wait("learner a-2 to catch up: 17 entries behind", "see to it"),)))
    assert not turned(waits, less)
    assert not reworded(waits, less), "a number alone is no news"
    assert look(waits, plan=BUSY, now=9.0) == waits, "nothing is to be written"
    other = look(waits, plan=Plan(waiting=(Wait("the name to be read", "see to it"),)))
    assert reworded(waits, other)
    assert not turned(waits, other)


def test_a_plane_that_needs_a_person_is_stalled(golden: Golden) -> None:
    waiting = Plan(waiting=(Wait("the record", "see to it"),))
    assert of(look((), WELL, waiting, "a record is up to a person"))[ConditionType.STALLED] == "True"
    alarmed = replace(WELL, membership=Membership(members=(), leader=None, alarms=("memberID:1 alarm:CORRUPT",)))
    message = message_of(look(world=replace(alarmed, plane_name="alpha")), ConditionType.STALLED)
    golden(message)
    failed = stalled(look(plan=BUSY), "the key file is gone", generation=3, now=5.0)
    assert (of(failed)[ConditionType.RECONCILING], of(failed)[ConditionType.STALLED]) == ("False", "True")
    assert of(look(failed, plan=BUSY))[ConditionType.STALLED] == "False", "who drives next goes on"


def test_a_plane_whose_etcd_authenticates_is_stalled_whichever_cluster_it_is(golden: Golden) -> None:
    refuses = Membership(members=(), leader=None, alarms=("memberID:1 alarm:CORRUPT",), authenticates=True)
    main = look(world=replace(WELL, plane_name="alpha", membership=refuses))
    assert [each.reason for each in main if each.type == ConditionType.STALLED] == ["AuthenticationEnabled"]
    golden(message_of(main, ConditionType.STALLED))
    there = ClusterMemory(epoch=1, bootstrap=("a-1",))
    events = replace(WELL, events_membership=refuses, memory=replace(WELL.memory, events=there))
    golden(message_of(look(world=events), ConditionType.STALLED))


def test_a_plane_without_room_in_etcd_needs_a_person_only_where_the_quota_is_too_small(golden: Golden) -> None:
    full = Space(size=99 << 20, in_use=99 << 20, quota=100 << 20)
    member = MemberFact(id=1, replica="a-1", learner=False, health=Health.HEALTHY, lag=0, space=full, revision=7)
    raised = replace(WELL, membership=Membership(members=(member,), leader="a-1", alarms=("memberID:1 alarm:NOSPACE",)))
    assert of(look(world=raised))[ConditionType.STALLED] == "False"
    tried = Full(since=0.0, revision=7, compacted=True, defragmented=("a-1",))
    hopeless = replace(raised, memory=replace(WELL.memory, full=tried))
    golden(message_of(look(world=hopeless), ConditionType.STALLED))
    events = replace(
        WELL,
        events_membership=raised.membership,
        memory=replace(WELL.memory, events=ClusterMemory(epoch=1, bootstrap=("a-1",), full=tried)),
    )
    assert "(raise spec.etcd.events.quotaBytes)" in message_of(look(world=events), ConditionType.STALLED)


def test_a_voter_that_belongs_to_no_replica_needs_a_person_who_is_told_how_to_remove_it(golden: Golden) -> None:
    own = MemberFact(id=1, replica="a-1", learner=False, health=Health.HEALTHY)
    url = "https://10.0.0.9:2380"
    stray = MemberFact(
        id=0x8E9E05C52164694D, replica="", name="a-1", peer_urls=(url,), learner=False, health=Health.DOWN
    )
    world = replace(WELL, membership=Membership(members=(own, stray), leader="a-1"))
    found = look(world=world)
    assert next(each.reason for each in found if each.type == ConditionType.STALLED) == "UnknownMember"
    golden(message_of(found, ConditionType.STALLED))
    learns = replace(world, membership=Membership(members=(own, replace(stray, learner=True)), leader="a-1"))
    assert of(look(world=learns))[ConditionType.STALLED] == "False", "a learner is removed without being asked for"


def test_a_plane_that_went_back_from_what_is_wanted_is_not_ready_however_quiet_it_is(golden: Golden) -> None:
    memory = replace(WELL.memory, rejected=Rejection(revision="a-new", why="unknown flag: --nonsense"))
    found = look(world=replace(WELL, memory=memory, revision="a-new"))
    assert of(found) == {
        ConditionType.READY: "False",
        ConditionType.AVAILABLE: "True",
        ConditionType.RECONCILING: "False",
        ConditionType.STALLED: "True",
        ConditionType.CONTROLLERS_LEAD: "Unknown",
    }
    golden(message_of(found, ConditionType.STALLED))
    assert of(look(world=replace(WELL, memory=memory, revision="a-newer")))[ConditionType.READY] == "True"


def test_why_it_is_stalled_is_said_of_the_spec_of_now_alone(golden: Golden) -> None:
    plane = new_control_plane("demo", site="east")
    failed = stalled((), "the key file is gone", generation=plane.metadata.generation, now=5.0)
    stalled_plane = with_status(plane, conditions=failed)
    golden(why_stalled(stalled_plane))
    newer = stalled_plane.metadata.model_copy(update={"generation": stalled_plane.metadata.generation + 1})
    assert why_stalled(stalled_plane.model_copy(update={"metadata": newer})) == ""
    assert why_stalled(plane) == ""


def test_a_condition_has_its_time_from_its_last_turn() -> None:
    first = look(now=2.0)
    again = look(first, plan=BUSY, now=7.0)
    times = {each.type: each.last_transition_time.timestamp() for each in again}
    assert times == {
        ConditionType.READY: 7.0,
        ConditionType.AVAILABLE: 2.0,
        ConditionType.RECONCILING: 7.0,
        ConditionType.STALLED: 2.0,
        ConditionType.CONTROLLERS_LEAD: 2.0,
    }
    assert next(each for each in again if each.type == ConditionType.READY).status is ConditionStatus.FALSE


def test_a_plane_with_an_edge_that_takes_no_part_is_degraded_and_serves(golden: Golden) -> None:
    edges = (EdgeFact(name="e1"), EdgeFact(name="e2", leads=False, unrouted="keepalived does not run there"))
    world = replace(WELL, balancers=(replace(SERVES, edges=edges),))
    found = look(world=world, plan=BUSY)
    assert next(each.reason for each in found if each.type == ConditionType.READY) == "Degraded"
    golden(message_of(found, ConditionType.READY))
    assert of(found)[ConditionType.AVAILABLE] == "True"


def test_a_plane_with_a_replica_that_is_dead_is_degraded_and_says_which(golden: Golden) -> None:
    memory = replace(WELL.memory, down=(("a-2", 0.0),), condemned=(Condemned(replica="a-3", why="dead", since=0.0),))
    found = look(world=replace(WELL, memory=memory), plan=Plan(waiting=(Wait("a-2 to be back", "see to it"),)))
    assert next(each.reason for each in found if each.type == ConditionType.READY) == "Degraded"
    golden(message_of(found, ConditionType.READY))
    assert of(look(world=replace(WELL, memory=memory)))[ConditionType.READY] == "True", "what is left of a-3 is no harm"


def test_a_plane_whose_controllers_nobody_leads_is_as_wanted_and_not_ready() -> None:
    led = Leadership(component=Component.SCHEDULER, lease="kube-scheduler", holder="host_1", led=True)
    unled = replace(led, component=Component.CONTROLLER_MANAGER, holder="ghost", led=False)
    well = look(world=replace(WELL, leading=(led,)))
    assert (of(well)[ConditionType.READY], of(well)[ConditionType.CONTROLLERS_LEAD]) == ("True", "True")
    ill = look(world=replace(WELL, leading=(led, unled)))
    assert (of(ill)[ConditionType.READY], of(ill)[ConditionType.CONTROLLERS_LEAD]) == ("False", "False")
    assert message_of(ill, ConditionType.READY) == message_of(ill, ConditionType.CONTROLLERS_LEAD) == unled.trouble
    assert of(ill)[ConditionType.RECONCILING] == "False", "nothing is done about it"
    gone = look(world=replace(WELL, leading=(unled,), deleting=True))
    assert of(gone)[ConditionType.CONTROLLERS_LEAD] == "Unknown"
    origin = BackupOrigin(store="file:///backups", folder="a/1", epoch=0)
    seed = Seed(origin=origin, founder="a-1", revision=5, seen=5, restored=True)
    held = look(world=replace(WELL, leading=(led, unled), memory=replace(WELL.memory, seed=seed)))
    assert of(held)[ConditionType.CONTROLLERS_LEAD] == "Unknown", "in a new epoch it waits for kubelets"
    unknown = look(world=replace(WELL, leading=(replace(led, led=None),)))
    assert (of(unknown)[ConditionType.READY], of(unknown)[ConditionType.CONTROLLERS_LEAD]) == ("True", "Unknown")
