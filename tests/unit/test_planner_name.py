"""Where the plane's name leads, what must be so before anything is taken away, and which addresses are let go."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from model.stories import about_to, planned, step_words, until, whats, with_balancers, with_fact, with_memory
from model.worlds import empty, moving
from support.golden import Golden

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.remember import remember
from quarterdeck.model.steps.base import Note
from quarterdeck.model.steps.traffic import NoteLifetime, SetRecord, StopBalancer
from quarterdeck.model.world import World
from quarterdeck.planner.rules.traffic import let_go, may_drain, record
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

EVERYONE = frozenset({"east-1", "east-2", "east-3", "west-4", "west-5"})
OTHERWISE = "DNS server 192.0.2.5 port 53 answers otherwise"


def balancer(site: str, *names: str, finds: tuple[str, ...] | None = None) -> BalancerFact:
    """A load balancer that finds all of its backends healthy, or just those of ``finds``."""
    return BalancerFact(
        site=site, running=True, backends=frozenset(names), healthy=frozenset(names if finds is None else finds)
    )


def nowhere(world: World, site: str) -> World:
    return with_balancers(world, replace(world.balancer(site), healthy=frozenset()))


@cache
def first() -> World:
    """The name is about to be given for the first time."""
    return observe(until(empty("east", 3), about_to(SetRecord)))


@cache
def about_to_move() -> World:
    """The name is about to go to the target."""
    return observe(until(moving(3, 3), about_to(SetRecord)))


@cache
def moved() -> World:
    """The name leads to the target, and clients have forgotten the source's address; nothing was taken away yet."""
    world = observe(until(moving(3, 3), lambda now, _: now.memory.served_site == "west"))
    world = with_balancers(world, balancer("east", *EVERYONE), balancer("west", *EVERYONE))
    return replace(world, now=world.now + 100)


def goes_to(world: World) -> list[str]:
    return [step.to for step in record(view(world)).steps if isinstance(step, SetRecord)]


# --- where it leads -------------------------------------------------------------------------------------------------


def test_the_first_name_needs_one_apiserver_that_both_it_and_the_load_balancer_call_ready() -> None:
    world = with_balancers(first(), balancer("east", "east-1", "east-2"))
    assert goes_to(world) == ["east"]
    assert goes_to(with_fact(world, "east-1", lambda fact: replace(fact, ready=False))) == ["east"]
    others = with_balancers(world, balancer("east", "east-1", "east-2", finds=("east-2",)))
    assert goes_to(with_fact(others, "east-2", lambda fact: replace(fact, ready=False))) == []


def test_a_plane_that_has_no_name_yet_gets_it_where_it_is_heading(golden: Golden) -> None:
    """The one that it leaves would have to be forgotten again."""
    world = replace(about_to_move(), record=None)
    assert goes_to(world) == ["west"]
    unable = record(view(nowhere(world, "west")))
    assert unable.steps == ()
    golden(whats(unable))


def test_the_name_moves_when_the_targets_load_balancer_sends_to_every_wanted_voter(golden: Golden) -> None:
    assert goes_to(about_to_move()) == ["west"]
    assert goes_to(with_balancers(about_to_move(), balancer("west", "west-4", "west-5"))) == ["west"]
    one_is_left_out = with_balancers(about_to_move(), balancer("west", *(EVERYONE - {"west-5"})))
    assert goes_to(one_is_left_out) == []
    golden(whats(record(view(one_is_left_out))))


def test_the_name_moves_when_every_edge_of_the_target_sends_to_them() -> None:
    west = about_to_move().balancer("west")
    assert goes_to(with_balancers(about_to_move(), west)) == ["west"]
    assert goes_to(with_balancers(about_to_move(), replace(west, alike=False))) == []


def test_the_name_moves_when_every_wanted_voter_is_ready() -> None:
    assert goes_to(with_fact(about_to_move(), "west-5", lambda fact: replace(fact, ready=False))) == []


def test_a_name_that_leads_somewhere_stays_although_others_do_too() -> None:
    assert goes_to(moved()) == []
    assert whats(record(view(moved()))) == ()
    unable = with_balancers(about_to_move(), balancer("west", "west-4", "west-5", finds=()))
    assert goes_to(unable) == []


def test_a_name_leaves_a_load_balancer_that_leads_nowhere_for_one_that_leads_somewhere() -> None:
    world = nowhere(moved(), "west")
    assert goes_to(world) == ["east"]
    assert goes_to(with_balancers(nowhere(world, "east"), balancer("north", "east-1"))) == ["north"]
    stuck = record(view(nowhere(world, "east")))
    assert (stuck.steps, whats(stuck)) == ((), ()), "it leads where it should: there is nothing to wait for"


def test_a_name_that_is_not_known_or_somebody_elses_is_waited_for(golden: Golden) -> None:
    unknown = replace(about_to_move(), record=None, record_known=False)
    golden(whats(record(view(unknown))))
    golden(whats(record(view(replace(unknown, record_trouble="no key")))))
    assert record(view(replace(about_to_move(), foreign="it is claimed by beta/2"))).steps == ()


# --- before anything is taken away ----------------------------------------------------------------------------------


def alone(world: World) -> World:
    """With no load balancer but the one that the name leads to."""
    return replace(world, balancers=tuple(each for each in world.balancers if each.site == world.record))


def with_all_wanted(world: World) -> World:
    """Nothing of the source is left, but its load balancer."""
    records = tuple(each for each in world.memory.replicas if each.site == "west")
    return with_memory(world, replicas=records)


@pytest.mark.parametrize(
    ("world", "stamps"),
    [
        pytest.param(moved(), True, id="apiservers and a load balancer are to go"),
        pytest.param(alone(moved()), True, id="apiservers are to go"),
        pytest.param(with_all_wanted(moved()), True, id="a load balancer is to go"),
        pytest.param(alone(with_all_wanted(moved())), False, id="all is as wanted"),
    ],
)
def test_the_record_gets_this_drivers_token_before_anything_is_taken_away(world: World, stamps: bool) -> None:
    assert goes_to(replace(world, stamped=False)) == (["west"] if stamps else [])
    assert goes_to(world) == []


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(replace(moved(), also=("east",)), id="one leads elsewhere"),
        pytest.param(with_memory(moved(), unsettled=("east",)), id="one may have led elsewhere"),
        pytest.param(with_memory(moved(), served_site="east"), id="one leads nowhere yet"),
    ],
)
def test_all_dns_servers_must_answer_the_same(world: World, golden: Golden) -> None:
    golden(whats(record(view(replace(world, torn=OTHERWISE)))))
    assert whats(record(view(world))) == (), "servers that all answer the same are not waited for"


def test_a_dns_server_that_only_we_can_tell_is_told_once_the_name_leads_where_it_should() -> None:
    away = replace(moved(), torn=OTHERWISE, also=("east",), amiss="it does not know it")
    assert goes_to(away) == ["west"]
    assert goes_to(replace(away, amiss="")) == [], "others tell each other"


# --- which clients lose nothing when apiservers are drained ---------------------------------------------------------


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(
            with_fact(moved(), "west-5", lambda fact: replace(fact, ready=False)), id="a wanted apiserver is not ready"
        ),
        pytest.param(replace(moved(), record="east"), id="the name leads elsewhere"),
        pytest.param(replace(moved(), record=None, record_known=False), id="it is not known where the name leads"),
        pytest.param(with_memory(moved(), served_site="east"), id="nothing says since when"),
        pytest.param(replace(moved(), also=("north",)), id="a DNS server leads where nothing is"),
        pytest.param(with_memory(moved(), unsettled=("north",)), id="a DNS server may have led there"),
        pytest.param(with_balancers(moved(), balancer("west", "east-1", "west-4")), id="a wanted one gets no clients"),
        pytest.param(
            with_balancers(moved(), replace(balancer("west", *EVERYONE), alike=False)), id="an edge sends to others"
        ),
        pytest.param(
            with_balancers(moved(), replace(balancer("west", *EVERYONE), reachable=False)),
            id="one of its edges is silent",
        ),
        pytest.param(nowhere(moved(), "west"), id="the load balancer leads nowhere"),
        pytest.param(
            with_balancers(moved(), balancer("west", *EVERYONE, finds=("east-1", "east-2"))),
            id="it leads to none that stays",
        ),
    ],
)
def test_no_apiserver_is_drained_unless_every_client_is_led_to_one_that_stays(world: World) -> None:
    assert may_drain(view(moved()))
    assert not may_drain(view(world))


def test_a_load_balancer_counts_until_no_client_can_hold_its_address() -> None:
    world = with_balancers(moved(), balancer("east", "east-1"))
    assert may_drain(view(world))
    early = replace(world, now=dict(world.memory.held)["east"] + world.settings.ttl)
    assert not may_drain(view(early))


# --- which addresses are let go -------------------------------------------------------------------------------------


def let_go_of(world: World) -> list[str]:
    return [step.site for step in let_go(view(world)).steps if isinstance(step, StopBalancer)]


NORTH = balancer("north", "east-1")


@pytest.mark.parametrize(
    ("world", "kept"),
    [
        pytest.param(with_balancers(moved(), NORTH), {"west"}, id="where the plane is heading, and the name leads"),
        pytest.param(replace(with_balancers(moved(), NORTH), record="north"), {"west", "north"}, id="the name"),
        pytest.param(
            replace(with_balancers(moved(), NORTH), memory=replace(moved().memory, served_site="north")),
            {"west", "north"},
            id="the name of before",
        ),
        pytest.param(
            replace(with_balancers(moved(), NORTH), memory=replace(moved().memory, unsettled=("north",))),
            {"west", "north"},
            id="what a DNS server may have said",
        ),
        pytest.param(
            replace(with_balancers(moved(), NORTH), also=("north",)), {"west", "north"}, id="what a DNS server says"
        ),
        pytest.param(
            replace(with_balancers(moved(), NORTH), record=None, record_known=False),
            {"west", "north", "east"},
            id="it is not known where the name leads",
        ),
        pytest.param(nowhere(with_balancers(moved(), NORTH), "west"), {"west", "east"}, id="where to go back to"),
        pytest.param(
            with_balancers(moved(), BalancerFact(site="north", running=False)), {"west", "north"}, id="nothing is there"
        ),
    ],
)
def test_an_address_that_a_client_may_be_given_is_not_let_go(world: World, kept: set[str]) -> None:
    assert set(let_go_of(world)) == {"west", "north", "east"} - kept
    assert whats(let_go(view(world))) == ()


def test_an_address_that_clients_may_hold_is_waited_for(golden: Golden) -> None:
    since = dict(moved().memory.held)["east"]
    early = replace(with_balancers(moved(), NORTH), now=since + moved().settings.ttl + moved().settings.drain - 0.1)
    assert let_go_of(early) == ["north"], "nobody ever held that one"
    golden(whats(let_go(view(early))))
    assert set(let_go_of(replace(early, now=early.now + 0.1))) == {"north", "east"}
    assert [step_words(step) for step in let_go(view(moved())).steps] == ["StopBalancer east"]


def test_an_address_that_clients_may_hold_is_let_go_within_its_time_to_live_and_drain(golden: Golden) -> None:
    since = dict(moved().memory.held)["east"]
    world = replace(moved(), settings=replace(moved().settings, ttl=60.0, drain=30.0), now=since + 20.0)
    golden([str(each) for each in let_go(view(world)).waiting])


def test_an_address_is_not_let_go_while_an_edge_of_its_site_that_clients_may_use_does_not_answer(
    golden: Golden,
) -> None:
    world = with_balancers(moved(), replace(moved().balancer("east"), reachable=False), NORTH)
    assert let_go_of(world) == ["north"]
    golden(whats(let_go(view(world))))


# --- for how long addresses are handed out --------------------------------------------------------------------------


def test_a_time_to_live_that_is_not_as_wanted_is_set_again_where_the_name_leads() -> None:
    for ttl in (60.0, 1.0):
        (step,) = record(view(replace(moved(), record_ttl=ttl))).steps
        assert isinstance(step, SetRecord)
        assert (step.to, f"a time to live of {ttl:g} s" in step.why) == ("west", True)


def test_a_time_to_live_is_left_as_it_is_where_servers_differ_or_where_nothing_is_cached() -> None:
    assert record(view(replace(alone(with_all_wanted(moved())), record_ttl=60.0, torn=OTHERWISE))).steps == ()
    assert record(view(replace(moved(), record_ttl=60.0, front="west"))).steps == ()


def remembered(world: World) -> World:
    """The world once it is written down for how long addresses are handed out."""
    memory = world.memory
    for step in planned(world, Note).steps:
        memory = remember(memory, step, world.now)
    return replace(world, memory=memory)


def test_an_address_is_held_for_as_long_as_its_answer_said_also_once_answers_say_less() -> None:
    long = remembered(replace(moved(), record_ttl=60.0))
    assert long.lifetime == 60.0
    short = remembered(replace(long, record_ttl=None, now=long.now + 10))
    for later, ttl in ((0, 60.0), (59, 60.0), (60, short.settings.ttl)):
        assert replace(short, now=short.now + later).lifetime == ttl


def test_it_is_written_down_once() -> None:
    world = replace(moved(), record_ttl=60.0)
    for ttl in (60.0, None):
        world = remembered(replace(world, record_ttl=ttl))
        assert not any(isinstance(step, NoteLifetime) for step in planned(world, NoteLifetime).steps)


def test_a_shorter_time_than_wanted_lets_go_of_nothing_early() -> None:
    world = replace(moved(), record_ttl=0.5)
    assert world.lifetime == world.settings.ttl
    assert not any(isinstance(step, NoteLifetime) for step in planned(world, NoteLifetime).steps)
