"""Which failures a plane survives, and why not, as it is told to people: in worlds made by hand. The model's tests
(model/test_survival.py) compare the answers with what is then so in truth.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from model.observations import Seen, dead, seen, voters_at
from model.stories import serving, with_balancers, with_fact, with_member, with_memory
from model.worlds import FORMER, changing, settled
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact, EdgeFact
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import ReplicaChange
from quarterdeck.model.membership import Health
from quarterdeck.model.memory import Memory
from quarterdeck.model.seats import Slot
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.survival import FailureDomain, Loss, Survivability, Survival, outlives, survivals
from quarterdeck.planner.view import view

MACHINE, HOST, ZONE, EDGE, DNS, SITE = FailureDomain
YES, NO, UNKNOWN = Survivability


def served(*replicas: Seen, count: int = 3, servers: int | None = 2) -> World:
    """These at site east, behind its load balancer, with two DNS servers."""
    names = frozenset(each.name for each in replicas)
    world = seen(*replicas, to="east", count=count)
    east = BalancerFact(site="east", running=True, backends=names, healthy=names)
    return replace(world, balancers=(east,), name_servers=servers)


def on(one: Seen, machine: str, zone: str) -> Seen:
    """The same in another zone; machines are called after these."""
    assert machine[-2] == zone
    return replace(one, slot=Slot(site="east", zone=zone))


def answers(world: World) -> dict[FailureDomain, Survivability]:
    return {each.failure: each.answer for each in survivals(view(world))}


def of(world: World, failure: FailureDomain) -> Survival:
    return next(each for each in survivals(view(world)) if each.failure is failure)


def why(world: World, failure: FailureDomain) -> list[str]:
    return list(of(world, failure).why)


THREE = voters_at("east", 3)


def test_three_replicas_in_three_zones_survive_a_machine_a_host_and_a_zone_but_not_what_there_is_one_of(
    golden: Golden,
) -> None:
    world = served(*THREE)
    assert answers(world) == {MACHINE: YES, HOST: YES, ZONE: YES, EDGE: NO, DNS: YES, SITE: NO}
    golden(why(world, EDGE))
    golden(why(world, SITE))


def test_one_replica_survives_nothing_but_a_dns_server(golden: Golden) -> None:
    world = served(Seen("east-1"), count=1)
    assert answers(world) == dict.fromkeys(FailureDomain, NO) | {DNS: YES}
    golden(why(world, MACHINE))
    golden(why(world, ZONE))


def test_two_members_survive_no_machine_since_each_is_needed_for_the_quorum(golden: Golden) -> None:
    world = served(*voters_at("east", 2), count=2)
    golden(why(world, MACHINE))


def test_who_has_a_member_down_has_none_to_lose() -> None:
    world = served(*voters_at("east", 2), dead("east-3"))
    assert of(world, MACHINE) == Survival(
        failure=MACHINE, answer=NO, why=("member east-3 is down, so another one costs the quorum",)
    )
    five = served(*voters_at("east", 4), dead("east-5"), count=5)
    assert of(five, MACHINE).answer is YES


def test_of_five_in_three_zones_one_zone_may_go_but_not_while_a_member_elsewhere_is_down(golden: Golden) -> None:
    five = voters_at("east", 5)  # a, b, c, a, b
    assert of(served(*five, count=5), ZONE).answer is YES
    hurt = served(*five[:2], dead("east-3"), *five[3:], count=5)
    assert of(hurt, MACHINE).answer is YES
    golden(why(hurt, ZONE))


def test_two_of_three_members_in_one_zone_are_lost_with_it(golden: Golden) -> None:
    moved = replace(THREE[1], slot=Slot(site="east", zone="a"))
    golden(why(served(THREE[0], moved, THREE[2]), ZONE))


@pytest.mark.parametrize("lag", [1_001, 5_000_000])
def test_a_member_that_is_far_behind_is_counted_on_for_no_quorum(lag: int, golden: Golden) -> None:
    world = served(*THREE[:2], replace(THREE[2], lag=lag))
    golden(why(world, MACHINE))


def test_a_member_whose_data_is_gone_is_counted_on_for_no_quorum(golden: Golden) -> None:
    world = served(*THREE[:2], replace(THREE[2], has_data=False))
    golden(why(world, MACHINE))


def test_learners_count_for_no_quorum(golden: Golden) -> None:
    world = served(Seen("east-1"), replace(THREE[1], learner=True, ready=False), count=1)
    golden(why(world, MACHINE))


# --- machines that share something ----------------------------------------------------------------------------------


def hosted(world: World, *hosts: str) -> World:
    pairs = zip(world.machines, hosts, strict=True)
    return replace(world, machines=tuple(replace(each, host=host) for each, host in pairs))


def test_machines_of_one_host_are_lost_together(golden: Golden) -> None:
    world = hosted(served(*THREE), "here", "here", "here")
    assert of(world, MACHINE).answer is YES
    golden(why(world, HOST))
    golden(why(hosted(served(*THREE), "one", "one", "two"), HOST))
    assert of(hosted(served(*THREE), "one", "two", "three"), HOST).answer is YES


def test_a_zone_and_a_host_take_the_load_balancer_along_that_stands_there(golden: Golden) -> None:
    world = served(*THREE)
    east = replace(world.balancer("east"), edges=(EdgeFact(name="east-edge", zone="b", host="one"),))
    world = hosted(with_balancers(world, east), "one", "two", "three")
    golden(why(world, ZONE))
    golden(why(world, HOST))
    assert of(world, MACHINE).answer is YES


@pytest.mark.parametrize(
    ("leads", "answer"), [(True, YES), (False, NO), (None, NO)], ids=["leads", "leads nowhere", "does not answer"]
)
def test_of_two_edges_one_may_be_lost_if_the_other_leads_somewhere(
    leads: bool | None, answer: Survivability, golden: Golden
) -> None:
    edges = EdgeFact(name="one", zone="b"), EdgeFact(name="two", zone="c", leads=leads)
    world = served(*THREE)
    world = with_balancers(world, replace(world.balancer("east"), edges=edges))
    assert (of(world, EDGE).answer, of(world, ZONE).answer) == (answer, answer)
    if answer is NO:
        golden(why(world, EDGE))


def test_of_three_edges_one_may_be_lost_if_any_of_the_others_leads_somewhere() -> None:
    edges = (EdgeFact(name="one"), EdgeFact(name="two"), EdgeFact(name="three", leads=False))
    world = with_balancers(served(*THREE), replace(served(*THREE).balancer("east"), edges=edges))
    assert of(world, EDGE).answer is YES


def test_a_replica_of_whose_machine_nothing_is_known_may_be_anywhere(golden: Golden) -> None:
    world = served(*(replace(each, slot=Slot(site="east", zone="")) for each in THREE))
    world = replace(world, machines=world.machines[:2])
    assert of(world, MACHINE).answer is YES
    for failure in (HOST, ZONE):
        assert of(world, failure).answer is UNKNOWN
        golden(why(world, failure))


def test_the_zone_of_a_machine_that_is_not_listed_is_that_of_its_slot() -> None:
    world = served(*THREE)
    world = replace(world, machines=world.machines[:2])
    assert of(world, ZONE).answer is YES
    assert of(world, HOST).answer is UNKNOWN


def test_a_site_without_zones_is_lost_as_one_zone(golden: Golden) -> None:
    world = served(*THREE)
    golden(why(replace(world, machines=tuple(replace(each, zone="") for each in world.machines)), ZONE))


# --- who serves ----------------------------------------------------------------------------------------------------


def test_an_apiserver_that_serves_alone_is_not_to_be_lost(golden: Golden) -> None:
    idle = (replace(each, ready=False) for each in THREE[1:])
    golden(why(served(THREE[0], *idle), MACHINE))


@pytest.mark.parametrize("missing", ["backends", "healthy"])
def test_an_apiserver_counts_only_behind_a_load_balancer_that_finds_it_well(missing: str, golden: Golden) -> None:
    east = replace(served(*THREE).balancer("east"), **{missing: frozenset({"east-2"})})
    world = with_balancers(served(*THREE), east)
    golden(why(world, MACHINE))


def test_an_apiserver_that_may_be_at_the_same_place_is_not_counted_on(golden: Golden) -> None:
    """The quorum does not need the fifth one, and nobody else serves."""
    world = served(*(replace(each, ready=False) for each in voters_at("east", 4)), Seen("east-5"), count=5)
    golden(why(replace(world, machines=world.machines[:4]), HOST))


NOT_COUNTED = {
    "its machine is off": replace(THREE[1], machine=MachineState.DOWN, ready=None),
    "its member only listens": replace(THREE[1], learner=True, ready=None),
    "its member is down": replace(THREE[1], health=Health.DOWN, ready=None),
    "it is no member": replace(THREE[1], member=False, ready=None),
    "it is not ready": replace(THREE[1], ready=False),
}


@pytest.mark.parametrize("why_not", NOT_COUNTED)
def test_a_backend_that_cannot_serve_is_none_although_the_load_balancer_finds_it_well(why_not: str) -> None:
    """Of the others, which are a quorum with one to spare, only the first serves."""
    idle = (replace(each, ready=False) for each in voters_at("east", 5, first=3))
    world = served(THREE[0], NOT_COUNTED[why_not], *idle, count=5)
    assert of(world, MACHINE).answer is NO
    assert "ready apiserver" in why(world, MACHINE)[0]


def test_a_backend_of_a_replica_that_was_released_is_none(golden: Golden) -> None:
    world = served(THREE[0], *(replace(each, ready=False) for each in THREE[1:]))
    both = frozenset({"east-1", "east-9"})
    world = with_balancers(world, replace(world.balancer("east"), backends=both, healthy=both))
    golden(why(world, MACHINE))


def test_a_load_balancer_that_leads_nowhere_survives_nothing_at_all(golden: Golden) -> None:
    world = with_balancers(served(*THREE), BalancerFact(site="east", running=True))
    assert answers(world) == dict.fromkeys(FailureDomain, NO)
    golden(why(world, MACHINE))


def test_every_load_balancer_counts_whose_address_a_client_may_hold(golden: Golden) -> None:
    world = served(*THREE)
    world = with_memory(world, held=(("west", 0.0),))
    golden(why(world, MACHINE))


def test_a_name_that_leads_nowhere_survives_nothing_at_all(golden: Golden) -> None:
    world = replace(served(*THREE), record=None)
    assert answers(world) == dict.fromkeys(FailureDomain, NO)
    golden(why(world, ZONE)[0])


# --- what is not known ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "world",
    [
        replace(served(*THREE), membership=None),
        replace(served(*THREE), record_known=False),
        with_balancers(served(*THREE), BalancerFact(site="east", running=False, reachable=False)),
        served(*THREE[:2], replace(THREE[2], health=Health.SUSPECT)),
        served(*THREE[:2], replace(THREE[2], health=Health.UNREACHABLE)),
        served(*THREE[:2], replace(THREE[2], lag=None)),
        served(THREE[0], *(replace(each, ready=None) for each in THREE[1:])),
    ],
    ids=["membership", "name", "load balancer", "suspect", "unreachable", "lag", "readiness"],
)
def test_unknown_is_not_zero(world: World) -> None:
    found = of(world, MACHINE)
    assert found.answer is UNKNOWN
    assert found.why
    assert all(found.why)


def test_the_reason_of_an_unknown_answer_says_what_is_not_known(golden: Golden) -> None:
    golden(why(replace(served(*THREE), membership=None), MACHINE))
    golden(why(replace(served(*THREE), record_known=False), MACHINE))
    golden(why(replace(served(*THREE), name_servers=None), DNS))
    golden(why(served(THREE[0], *(replace(each, ready=None) for each in THREE[1:])), MACHINE))


def test_what_is_not_known_and_makes_no_difference_is_no_matter() -> None:
    five = (*voters_at("east", 4), replace(Seen("east-5"), health=Health.SUSPECT, ready=None))
    assert of(served(*five, count=5), MACHINE).answer is YES
    alone = served(Seen("east-1"), replace(Seen("east-2"), health=Health.UNREACHABLE), count=2)
    assert of(alone, MACHINE).answer is NO, "whatever the other one is, the quorum takes both"


def test_a_plane_without_etcd_says_so(golden: Golden) -> None:
    world = replace(served(*THREE), membership=None, memory=replace(served(*THREE).memory, created=False))
    golden(why(world, MACHINE))


@pytest.mark.parametrize(("servers", "answer"), [(None, UNKNOWN), (0, YES), (1, NO), (2, YES), (3, YES)])
def test_of_dns_servers_it_is_the_number_that_counts(servers: int | None, answer: Survivability) -> None:
    assert of(served(*THREE, servers=servers), DNS).answer is answer


def test_a_plane_that_is_just_asked_for_survives_nothing() -> None:
    nothing = World(slots=(Slot(site="east", zone="a"),), memory=Memory(), now=0.0)
    assert set(answers(nothing).values()) == {NO}


# --- the events' cluster -------------------------------------------------------------------------------------------


def apart() -> World:
    return observe(settled(replace(changing(3, 3, ReplicaChange(), apart=frozenset({FORMER})), revision=FORMER)))


def test_the_events_cluster_is_to_keep_its_quorum_as_well(golden: Golden) -> None:
    world = apart()
    assert of(world, MACHINE).answer is YES
    hurt = with_member(world, "east-3", lambda member: replace(member, health=Health.DOWN), Cluster.EVENTS)
    golden(why(hurt, MACHINE))
    assert of(replace(world, events_membership=None), MACHINE).answer is UNKNOWN


def test_an_events_cluster_that_was_never_up_is_no_reason() -> None:
    world = apart()
    founding = with_memory(world, events=replace(world.memory.events, created=False))
    assert of(replace(founding, events_membership=None), MACHINE).answer is YES


# --- a failure of several things ------------------------------------------------------------------------------------


def test_what_is_lost_together_is_survived_if_it_leaves_a_quorum_and_an_apiserver() -> None:
    world = view(served(*THREE, servers=1))
    one, two = Loss(where="", replicas=frozenset({"east-1"})), Loss(where="", replicas=frozenset({"east-1", "east-2"}))
    assert outlives(world, one, dns=False) == (YES, ())
    assert outlives(world, two, dns=False)[0] is NO
    assert outlives(world, one, dns=True) == (NO, ("one DNS server",))
    assert outlives(view(served(*THREE)), one, dns=True)[0] is YES


def test_the_worlds_of_the_simulator_say_the_same() -> None:
    world = serving()
    assert answers(world) == {MACHINE: YES, HOST: YES, ZONE: YES, EDGE: NO, DNS: NO, SITE: NO}
    down = with_member(world, "east-3", lambda each: replace(each, health=Health.DOWN, lag=None))
    down = with_fact(down, "east-3", lambda each: replace(each, machine=MachineState.DOWN, ready=None))
    assert of(down, ZONE).answer is NO
