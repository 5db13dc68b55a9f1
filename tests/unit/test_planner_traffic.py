"""How clients are led from one site to another: backends, the record, load balancers, and when apiservers stop."""

from __future__ import annotations

from dataclasses import replace

from model.faulty_truth import FaultyTruth
from model.stories import (
    about_to,
    after_round,
    doing,
    planned,
    step_words,
    until,
    whats,
    with_balancers,
    with_fact,
)
from model.worlds import empty, moving, settled, wanted
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.steps.plan import Plan
from quarterdeck.model.steps.traffic import NoteDraining, NoteRecord, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.traffic import let_go, may_drain
from quarterdeck.planner.simulated import apply, observe, tick
from quarterdeck.planner.simulated.parts import DNS, edge, second
from quarterdeck.planner.view import view


def steps_of(now: Plan) -> list[str]:
    return [step_words(step) for step in now.now]


def serving_at_west(replicas: int = 3, to: int = 3) -> FaultyTruth:
    """The first moment at which the target's apiservers are ready, and no load balancer knows."""
    return until(moving(replicas, to), lambda truth, _: any("west" in name for name in truth.serving))


def test_a_backend_is_added_only_when_its_apiserver_said_that_it_is_ready() -> None:
    world = observe(serving_at_west())
    starting = with_fact(world, "west-4", lambda fact: replace(fact, ready=False))
    unknown = with_fact(world, "west-4", lambda fact: replace(fact, ready=None))
    assert {len(step.backends) for step in plan(world).now if isinstance(step, SetBackends)} == {5}
    for unready in (starting, unknown):
        for step in plan(unready).now:
            assert not isinstance(step, SetBackends) or "west-4" not in step.backends


def test_both_load_balancers_send_to_all_ready_apiservers_before_the_name_moves() -> None:
    truth = until(moving(3, 3), about_to(SetRecord))
    everyone = frozenset({"east-1", "east-2", "east-3", "west-4", "west-5"})
    assert dict(truth.balancers) == {"east": everyone, "west": everyone}
    assert doing(truth)[-1] == "SetRecord west"


def test_source_backends_leave_only_after_the_name_has_moved_and_that_is_written_down() -> None:
    truth = moving(3, 3)
    while True:
        now = plan(observe(truth))
        leaving = [step for step in now.now if isinstance(step, SetBackends) and "east-1" not in step.backends]
        if leaving:
            break
        truth = after_round(truth, now)
    assert (truth.record, truth.memory.served_site) == ("west", "west")
    assert truth.memory.held[0][0] == "east"
    assert sorted(step.site for step in leaving) == ["east", "west"]


def test_nothing_is_decided_about_a_name_while_the_dns_server_does_not_answer() -> None:
    truth = moving(3, 3)
    while not (now := plan(observe(truth))).done:
        blind = plan(observe(replace(truth, mute=frozenset({DNS}))))
        assert not any(isinstance(step, SetRecord | StopBalancer) for step in blind.now)
        assert not blind.done
        truth = after_round(truth, now)


def test_a_plane_with_a_fixed_address_has_one_load_balancer_and_keeps_it() -> None:
    truth = tick(until(moving(3, 3), about_to(SetRecord)))
    world = replace(observe(truth), front="east", record="east")
    world = replace(world, balancers=tuple(each for each in world.balancers if each.site == "east"))
    steps = steps_of(plan(world))
    assert not any("SetRecord" in step or ("west" in step and "SetBackends" in step) for step in steps)
    assert "SetBackends east" in steps  # the source's leave it at once: no address has to be forgotten


def torn(world: World, *also: str, why: str = "DNS server 192.0.2.5 port 53 answers otherwise") -> World:
    return replace(world, torn=why, also=also)


def test_the_time_to_live_begins_when_every_dns_server_has_forgotten_the_address() -> None:
    truth = apply(until(moving(3, 3), about_to(SetRecord)), SetRecord(site="", why="", to="west"))
    seen = torn(observe(truth), "east")
    assert steps_of(plan(seen)) == ["NoteUnsettled"]
    truth = apply(truth, plan(seen).now[0])
    assert (truth.memory.served_site, truth.memory.held, truth.memory.unsettled) == ("east", (), ("west",))
    for _ in range(20):
        now = plan(torn(observe(truth), "east"))
        assert not any(isinstance(step, StopBalancer | StopUnit | NoteDraining | NoteRecord) for step in now.now)
        truth = after_round(truth, now)
    assert any("all DNS servers to answer the same" in why for why in whats(now))
    settled_at = truth.now
    truth = until(truth, lambda seen, _: seen.memory.served_site == "west")
    assert truth.memory.held == (("east", settled_at),)
    assert truth.memory.unsettled == ()


def test_who_goes_back_while_the_servers_differ_keeps_both_addresses_alive() -> None:
    truth = apply(until(moving(3, 3), about_to(SetRecord)), SetRecord(site="", why="", to="west"))
    truth = apply(truth, plan(torn(observe(truth), "east")).now[0])
    back = replace(truth, slots=wanted("east", 3))
    for _ in range(20):
        now = plan(torn(observe(back), "east"))
        assert not any(isinstance(step, StopBalancer | NoteRecord) for step in now.now)
        if "SetRecord east" in steps_of(now):
            break
        back = after_round(back, now)
    else:
        raise AssertionError("the name does not go back")
    back = until(
        back, lambda seen, _: (seen.record, seen.memory.served_site, seen.memory.unsettled) == ("east", "east", ())
    )
    assert [site for site, _ in back.memory.held] == ["west"], "clients that got it may hold it for its time to live"


def test_a_second_dns_server_that_does_not_answer_holds_up_nothing_that_is_settled() -> None:
    world = torn(observe(settled(empty("east", 3))), why="DNS server 192.0.2.5 port 53 gives no answer")
    assert plan(world).done


def test_a_name_that_is_somebody_elses_is_never_set_and_the_plan_says_what_to_do(golden: Golden) -> None:
    truth = until(empty("east", 1), about_to(SetRecord))
    taken = replace(observe(truth), foreign="it leads to 198.51.100.7; say spec.endpoint.takeOver: true")
    now = plan(taken)
    assert not any(isinstance(step, SetRecord) for step in now.now)
    golden(whats(now))


def about_to_drain() -> FaultyTruth:
    """The first moment at which apiservers of the source may lose their new connections."""
    return until(moving(3, 3), lambda truth, _: may_drain(view(observe(truth))))


def leaving(now: Plan, name: str) -> list[str]:
    return [step.site for step in now.now if isinstance(step, SetBackends) and name not in step.backends]


def test_backends_are_added_before_others_are_taken_away() -> None:
    """One that was only just added has not been found healthy from there yet."""
    world = observe(about_to_drain())
    east = world.balancer("east")
    late = with_balancers(world, replace(east, backends=east.backends - {"west-5"}))
    assert not leaving(plan(late), "east-1")
    steps = {step.site: step for step in plan(late).now if isinstance(step, SetBackends)}
    assert {"east-1", "west-5"} <= set(steps["east"].backends)


def name_has_moved() -> World:
    """Clients have forgotten the source's address, and the source still holds the quorum."""
    truth = until(moving(3, 3), lambda now, _: now.memory.served_site == "west")
    world = observe(truth)
    assert view(world).quorum_site == "east"
    return replace(world, now=world.now + 100)


def test_where_the_quorum_is_there_is_a_load_balancer_to_go_back_to_while_the_one_in_use_leads_nowhere() -> None:
    world = name_has_moved()
    nowhere = with_balancers(world, replace(world.balancer("west"), healthy=frozenset()))
    assert let_go(view(nowhere)).steps == ()
    assert [step.site for step in let_go(view(world)).steps] == ["east"]
    without = with_balancers(nowhere, BalancerFact(site="east", running=False))
    assert "east" in [step.site for step in planned(without, SetBackends).steps]
    fixed = replace(without, front="west")
    assert "east" not in [step.site for step in planned(fixed, SetBackends).steps], "a fixed address goes nowhere"


def test_what_counts_is_the_load_balancer_that_the_name_leads_to() -> None:
    world = name_has_moved()
    north = BalancerFact(site="north", running=True, backends=frozenset({"east-1"}), healthy=frozenset({"east-1"}))
    led = with_balancers(world, replace(world.balancer("west"), healthy=frozenset()))
    led = replace(with_balancers(led, north), record="north", memory=replace(world.memory, served_site="north"))
    assert [step.site for step in let_go(view(led)).steps] == ["east"]


def test_while_there_is_no_name_the_load_balancer_that_it_will_lead_to_is_enough() -> None:
    world = replace(name_has_moved(), record=None)
    world = with_balancers(world, BalancerFact(site="east", running=False))
    assert "east" not in [step.site for step in planned(world, SetBackends).steps]


def floating(**changed: frozenset[str]) -> FaultyTruth:
    """A plane at a site whose two edges share an address."""
    east = frozenset({"east"})
    return replace(settled(empty("east", 3, twins=east, floating=east, shared=east)), **changed)


def test_an_edge_to_which_no_address_can_come_any_more_is_told_once_more(golden: Golden) -> None:
    for name in (edge("east"), second("east")):
        alone = floating(unrouted=frozenset({name}))
        now = plan(observe(alone))
        assert steps_of(now) == ["SetBackends east"]
        golden(now.now[0].why)
        again = apply(alone, now.now[0])
        assert plan(observe(again)).done
        assert (again.unrouted, again.balancers, again.seconds) == (frozenset(), alone.balancers, alone.seconds)


def test_as_long_as_an_edge_that_clients_may_use_is_silent_the_other_one_is_not_told_either(golden: Golden) -> None:
    alone = floating(unrouted=frozenset({edge("east")}), mute=frozenset({second("east")}))
    now = plan(observe(alone))
    assert now.now == ()
    golden(whats(now)[:1])


def test_an_address_goes_where_it_can_and_is_nowhere_if_it_can_go_nowhere() -> None:
    both = frozenset({edge("east"), second("east")})
    holders = {
        frozenset[str](): edge("east"),
        frozenset({edge("east")}): second("east"),
        frozenset({second("east")}): edge("east"),
        both: "",
    }
    for unrouted, holder in holders.items():
        truth = floating(unrouted=unrouted)
        assert truth.holder(edge("east")) == holder
        assert bool(truth.reached_by(edge("east"))) is bool(holder)
    assert plan(observe(floating(unrouted=both))).now[0].why.endswith(f"{edge('east')} and {second('east')} again")
