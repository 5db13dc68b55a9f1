"""Round robin: the name leads to apiservers themselves, follows who is ready, and can be changed while it is used."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from model.stories import steps_until_done, until, with_balancers, with_fact, with_member
from model.worlds import FORMER, NEW, changing, empty, settled
from support.golden import Golden

from quarterdeck.model.components import Component, ReplicaChange
from quarterdeck.model.endpoints import APISERVERS
from quarterdeck.model.membership import Health
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import LeadTo, SetRecord, StopBalancer
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.planner.rules.traffic import backends, follow, record, relight
from quarterdeck.planner.rules.traffic import drains as drains_of
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.simulated.truth import Truth
from quarterdeck.planner.survival import Survivability, survivals
from quarterdeck.planner.view import view

ALL = ("east-1", "east-2", "east-3")


@cache
def serves() -> Truth:
    return settled(empty("east", 3, direct=True))


def led(world: World, *leaving: str) -> list[tuple[str, ...]]:
    return [step.backends for step in follow(view(world), leaving).steps if isinstance(step, LeadTo)]


def unready(world: World, *names: str) -> World:
    for name in names:
        world = with_fact(world, name, lambda fact: replace(fact, ready=False))
    return as_seen(world)


def unseen(world: World, name: str) -> World:
    return with_fact(world, name, lambda fact: replace(fact, machine=MachineState.UNREACHABLE, ready=None))


def as_seen(world: World) -> World:
    ready = {each.name for each in world.replicas if each.ready}
    return replace(world, apiservers=replace(world.apiservers, healthy=world.apiservers.backends & ready))


# --- who is in the name ---------------------------------------------------------------------------------------------


def test_the_name_loses_who_is_not_ready_and_gets_it_back() -> None:
    world = observe(serves())
    assert led(world) == []
    assert led(unready(world, "east-2")) == [("east-1", "east-3")]
    back = replace(world, apiservers=replace(world.apiservers, backends=frozenset({"east-1", "east-3"})))
    assert led(back) == [ALL]


def test_where_nobody_is_ready_the_name_stays_as_it_is() -> None:
    assert led(unready(observe(serves()), *ALL)) == []
    assert led(unseen(unseen(unready(observe(serves()), "east-1"), "east-2"), "east-3")) == []


def test_who_only_we_do_not_see_stays_in_the_name_until_the_cluster_does_not_hear_it_either() -> None:
    world = unseen(observe(serves()), "east-2")
    assert led(world) == []
    dead = with_member(world, "east-2", lambda member: replace(member, health=Health.DOWN))
    assert led(dead) == [("east-1", "east-3")]


def test_who_only_we_do_not_see_does_not_come_into_the_name() -> None:
    others = frozenset({"east-1", "east-3"})
    world = unseen(observe(serves()), "east-2")
    assert led(replace(world, apiservers=replace(world.apiservers, backends=others, healthy=others))) == []


def test_the_name_goes_to_apiservers_once_all_are_ready_or_where_it_leads_nowhere() -> None:
    world = observe(replace(settled(empty("east", 3)), direct=True))
    assert led(world) == [ALL]
    late = with_fact(world, "east-3", lambda fact: replace(fact, ready=False))
    assert led(late) == [], "the load balancer leads to the others meanwhile"
    assert led(replace(late, record=None)) == [("east-1", "east-2")]
    dark = replace(late.balancer("east"), healthy=frozenset())
    assert led(with_balancers(late, dark)) == [("east-1", "east-2")]


def test_an_apiserver_at_another_port_is_never_in_the_name_and_keeps_nobody_from_resting() -> None:
    world = replace(observe(serves()), elsewhere=frozenset({"east-3"}))
    assert led(world) == [("east-1", "east-2")]
    left = replace(world.apiservers, backends=frozenset({"east-1", "east-2"}), healthy=frozenset({"east-1", "east-2"}))
    assert view(replace(world, apiservers=left)).led_to({*ALL})


def test_a_name_that_is_not_known_or_somebody_elses_is_not_touched() -> None:
    world = unready(observe(serves()), "east-2")
    assert led(replace(world, record=None, record_known=False)) == []
    assert led(replace(world, foreign="it is claimed by other/1")) == []


def test_the_loss_of_a_machine_is_survived_by_a_name_that_leads_to_others_and_there_is_no_edge_to_lose() -> None:
    found = {str(each.failure): each.answer for each in survivals(view(observe(serves())))}
    assert (found["machine"], found["edge"]) == (Survivability.YES, Survivability.YES)
    alone = settled(empty("east", 1, direct=True))
    assert {str(each.failure): each.answer for each in survivals(view(observe(alone)))}["machine"] is Survivability.NO


def test_a_name_that_leads_to_none_that_is_ready_is_led_to_others_before_anything_else() -> None:
    world = unready(observe(serves()), "east-1")
    only = replace(world, apiservers=replace(world.apiservers, backends=frozenset({"east-1"}), healthy=frozenset()))
    assert [step.backends for step in relight(view(only)).steps if isinstance(step, LeadTo)] == [("east-2", "east-3")]
    assert relight(view(world)).steps == (), "it leads to others, too"


def test_there_is_no_load_balancer_to_go_back_to() -> None:
    """That the name leads nowhere is a moment old: all of them are ready."""
    world = observe(serves())
    blind = replace(world, apiservers=replace(world.apiservers, healthy=frozenset()))
    assert backends(view(blind)).steps == ()


def test_the_name_is_never_set_to_apiservers_as_to_a_load_balancer() -> None:
    """Some DNS servers lead to a load balancer still, and others to apiservers already."""
    world = replace(observe(serves()), record="east", also=(APISERVERS,), torn="another one leads elsewhere")
    assert record(view(world)).steps == ()


def test_an_apiserver_drains_from_when_the_name_stops_leading_to_it(golden: Golden) -> None:
    golden(str(drains_of(view(observe(serves())), serves().memory.replica("east-1"))))


def test_after_the_name_has_left_the_apiservers_only_the_load_balancer_counts() -> None:
    """Clients may still hold addresses of apiservers: each is one to which the load balancer leads as well."""
    back = replace(settled(empty("east", 3, direct=True)), direct=False)
    world = observe(until(back, lambda now, _: now.memory.served_site == "east"))
    assert APISERVERS in view(world).held
    assert not world.apiservers.running
    found = {str(each.failure): each.answer for each in survivals(view(world))}
    assert found["machine"] is Survivability.YES


def test_a_name_that_leads_to_one_apiserver_of_three_does_not_survive_its_machine(golden: Golden) -> None:
    world = observe(serves())
    only = frozenset({"east-1"})
    world = replace(world, apiservers=replace(world.apiservers, backends=only, healthy=only))
    found = {str(each.failure): each for each in survivals(view(world))}
    assert found["machine"].answer is Survivability.NO
    golden(found["machine"].why)


# --- who may go -----------------------------------------------------------------------------------------------------


def test_an_apiserver_stops_only_when_nobody_can_hold_its_address_any_more() -> None:
    restart = ReplicaChange(restart=frozenset({Component.APISERVER}))
    done = steps_until_done(changing(3, 3, restart, direct=True))
    for name in ALL:
        stopped = next(
            at
            for at, step in done
            if isinstance(step, StopUnit) and (step.replica, step.component) == (name, Component.APISERVER)
        )
        left = max(at for at, step in done if isinstance(step, LeadTo) and name not in step.backends and at <= stopped)
        settings = serves().settings
        assert stopped - left >= settings.ttl + settings.drain


def test_nobody_drains_while_some_dns_server_may_still_lead_there() -> None:
    world = observe(until(changing(3, 3, ReplicaChange(restart=frozenset({Component.APISERVER})), direct=True), drains))
    assert view(world).named == world.apiservers.backends != frozenset(ALL)
    torn = replace(world, torn="it answers otherwise", apiservers=replace(world.apiservers, alike=False))
    unsettled = replace(world, memory=replace(world.memory, unsettled=("west",)))
    for other in (torn, unsettled, replace(world, stamped=False), replace(world, record=None, record_known=False)):
        assert view(other).named == frozenset(ALL)


def test_before_anybody_rests_no_change_of_an_older_driver_can_reach_the_record() -> None:
    world = observe(until(changing(3, 3, ReplicaChange(restart=frozenset({Component.APISERVER})), direct=True), drains))
    assert not [step for step in record(view(world)).steps if isinstance(step, LeadTo)]
    (again,) = record(view(replace(world, stamped=False))).steps
    assert isinstance(again, LeadTo)
    assert {*again.backends} == world.apiservers.backends


def test_where_nobody_leaves_the_record_need_not_have_this_drivers_token() -> None:
    assert record(view(replace(observe(serves()), stamped=False))).steps == ()


def drains(truth: Truth, _: Plan) -> bool:
    return bool(truth.memory.draining)


# --- changed while clients use it -----------------------------------------------------------------------------------


def test_the_load_balancer_goes_when_nobody_can_hold_its_address_any_more() -> None:
    done = steps_until_done(replace(settled(empty("east", 3)), direct=True))
    (changed,) = (at for at, step in done if isinstance(step, LeadTo))
    (gone,) = (at for at, step in done if isinstance(step, StopBalancer))
    settings = serves().settings
    assert gone - changed >= settings.ttl + settings.drain


def test_the_name_goes_to_a_load_balancer_when_that_leads_to_all() -> None:
    done = [step for _, step in steps_until_done(replace(serves(), direct=False))]
    assert [step.to for step in done if isinstance(step, SetRecord)] == ["east"]
    assert not any(isinstance(step, LeadTo) for step in done)


def test_apiservers_that_clients_may_still_hold_the_address_of_rest_only_afterwards() -> None:
    restart = ReplicaChange(restart=frozenset({Component.APISERVER}))
    start = replace(settled(replace(changing(3, 3, restart, direct=True), revision=FORMER)), direct=False)
    back = until(start, lambda now, _: now.memory.served_site == "east")
    assert APISERVERS in view(observe(back)).held
    done = steps_until_done(replace(back, revision=NEW))
    stopped = min(at for at, step in done if isinstance(step, StopUnit) and step.component == Component.APISERVER)
    since = dict(back.memory.held)[APISERVERS]
    assert stopped - since >= start.settings.ttl + start.settings.drain
