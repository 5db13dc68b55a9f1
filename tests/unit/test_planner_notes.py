"""What is written down, and when: nothing that is known already, and nothing that was not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from model.stories import serving, until, with_fact, with_member, without_member
from model.worlds import moving

from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import Component
from quarterdeck.model.membership import Health, Membership
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.clusters import NoteCluster, NoteCreated, NoteMembers
from quarterdeck.model.steps.placement import PlaceReplica
from quarterdeck.model.steps.traffic import NoteDraining, NoteRecord, NoteUnsettled
from quarterdeck.model.units import UnitState
from quarterdeck.model.world import World
from quarterdeck.planner.planner import plan
from quarterdeck.planner.rules.notes import note
from quarterdeck.planner.simulated import observe
from quarterdeck.planner.view import view

EAST = ("east-1", "east-2", "east-3")
EVERYONE = frozenset((*EAST, "west-4", "west-5"))
TORN = "DNS server 192.0.2.5 port 53 answers otherwise"


def noted(world: World) -> list[Step]:
    return list(note(view(world)).steps)


def kinds(world: World) -> list[type[Step]]:
    return [type(step) for step in noted(world)]


def remembering(world: World, change: Callable[[Memory], Memory]) -> World:
    return replace(world, memory=change(world.memory))


def read_as(world: World, *, cluster: int, revision: int) -> World:
    membership = world.membership
    assert isinstance(membership, Membership)
    return replace(world, membership=replace(membership, cluster_id=cluster, revision=revision))


# --- the cluster and its members ------------------------------------------------------------------------------------


def uncreated(world: World) -> World:
    return remembering(world, lambda memory: replace(memory, created=False))


def test_that_there_is_a_cluster_is_noted_when_a_quorum_of_its_founders_answers() -> None:
    assert kinds(serving()) == []
    assert kinds(uncreated(serving())) == [NoteCreated]
    nobody_decided = remembering(uncreated(serving()), lambda memory: replace(memory, bootstrap=()))
    assert kinds(nobody_decided) == []


def test_without_a_membership_nothing_of_it_is_noted() -> None:
    world = replace(uncreated(serving()), membership=None)
    assert kinds(world) == []


def forgetful(name: str, *, listed: bool, started: bool) -> World:
    """It is not written down yet that this one is listed, or was healthy."""

    def changed(record: Replica) -> Replica:
        return replace(record, listed=listed, started=started) if record.name == name else record

    return remembering(serving(), lambda memory: replace(memory, replicas=tuple(map(changed, memory.replicas))))


@pytest.mark.parametrize(
    ("listed", "started", "health", "note_of"),
    [
        pytest.param(True, True, Health.HEALTHY, None, id="all is known"),
        pytest.param(True, True, Health.DOWN, None, id="who was healthy once was"),
        pytest.param(False, True, Health.HEALTHY, (("east-2",), ()), id="it is listed"),
        pytest.param(True, False, Health.HEALTHY, ((), ("east-2",)), id="it is healthy"),
        pytest.param(False, False, Health.HEALTHY, (("east-2",), ("east-2",)), id="it is both"),
        pytest.param(True, False, Health.SUSPECT, None, id="it was never healthy"),
        pytest.param(False, False, Health.UNREACHABLE, (("east-2",), ()), id="it is only listed"),
    ],
)
def test_who_is_a_member_is_noted_once(
    listed: bool, started: bool, health: Health, note_of: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> None:
    world = forgetful("east-2", listed=listed, started=started)
    steps = noted(with_member(world, "east-2", lambda member: replace(member, health=health)))
    found = [(step.listed, step.started) for step in steps if isinstance(step, NoteMembers)]
    assert found == ([note_of] if note_of else [])
    assert len(steps) == len(found)


def test_a_member_whose_volume_was_looked_at_before_it_wrote_anything_is_not_taken_for_one_that_lost_its_data() -> None:
    world = with_fact(forgetful("east-2", listed=True, started=False), "east-2", lambda it: replace(it, has_data=False))
    assert noted(world) == []
    assert not any(isinstance(step, PlaceReplica) for step in plan(world).now)
    unknown = with_fact(world, "east-2", lambda it: replace(it, has_data=None))
    assert kinds(unknown) == [NoteMembers]


def test_who_is_no_member_is_not_noted_as_one() -> None:
    world = forgetful("east-2", listed=False, started=False)
    assert kinds(without_member(world, "east-2")) == []


@pytest.mark.parametrize(
    ("known", "read", "notes"),
    [
        pytest.param((0, 0), (0x1F, 7), True, id="it was never read"),
        pytest.param((0, 9), (0x1F, 7), True, id="it was never read, whatever else is written"),
        pytest.param((0x1F, 7), (0x1F, 8), True, id="it has gone on"),
        pytest.param((0x1F, 7), (0x1F, 7), False, id="nothing was written"),
        pytest.param((0x1F, 7), (0x1F, 6), False, id="a revision never falls"),
        pytest.param((0, 0), (0, 7), False, id="which one it is was not said"),
    ],
)
def test_which_cluster_it_is_is_noted_with_what_else_is(
    known: tuple[int, int], read: tuple[int, int], notes: bool
) -> None:
    world = remembering(serving(), lambda memory: replace(memory, cluster_id=known[0], revision=known[1]))
    world = read_as(world, cluster=read[0], revision=read[1])
    assert kinds(world) == []
    steps = noted(uncreated(world))
    assert [type(step) for step in steps] == [NoteCreated, *([NoteCluster] if notes else [])]
    assert [(step.cluster_id, step.revision) for step in steps if isinstance(step, NoteCluster)] == [read] * notes


def test_a_cluster_that_nobody_was_told_to_found_is_not_taken_for_the_planes() -> None:
    strange = forgetful("east-2", listed=False, started=True)
    strange = remembering(read_as(strange, cluster=0x1F, revision=7), lambda memory: replace(memory, bootstrap=()))
    assert kinds(strange) == [NoteMembers]


# --- the name -------------------------------------------------------------------------------------------------------


def served_at(world: World, site: str | None, *unsettled: str) -> World:
    return remembering(world, lambda memory: replace(memory, served_site=site, unsettled=unsettled))


@pytest.mark.parametrize(
    ("world", "to"),
    [
        pytest.param(serving(), None, id="it leads where it did"),
        pytest.param(served_at(serving(), None), "east", id="it leads somewhere for the first time"),
        pytest.param(served_at(serving(), "west"), "east", id="it leads elsewhere"),
        pytest.param(served_at(serving(), "east", "west"), "east", id="all servers have come back"),
        pytest.param(replace(serving(), record=None), None, id="there is none"),
        pytest.param(replace(served_at(serving(), "west"), record=None), None, id="there is none any more"),
        pytest.param(replace(served_at(serving(), "west"), record_known=False), None, id="where it leads is not known"),
    ],
)
def test_where_the_name_leads_is_noted_when_all_servers_say_the_same(world: World, to: str | None) -> None:
    assert [step.to for step in noted(world) if isinstance(step, NoteRecord)] == ([to] if to else [])
    assert len(noted(world)) == bool(to)


@pytest.mark.parametrize(
    ("world", "sites"),
    [
        pytest.param(serving(), (), id="one gives no answer"),
        pytest.param(replace(serving(), also=("west",)), ("west",), id="one leads elsewhere"),
        pytest.param(replace(served_at(serving(), "west"), also=("west",)), ("east",), id="it is about to move"),
        pytest.param(
            replace(served_at(serving(), "north"), also=("west",)), ("east", "west"), id="three servers, three answers"
        ),
        pytest.param(replace(served_at(serving(), "east", "west"), also=("west",)), (), id="that is known"),
    ],
)
def test_what_servers_that_differ_may_have_said_is_noted_and_no_time_begins(
    world: World, sites: tuple[str, ...]
) -> None:
    steps = noted(replace(world, torn=TORN))
    assert [step.sites for step in steps if isinstance(step, NoteUnsettled)] == ([sites] if sites else [])
    assert len(steps) == bool(sites)


def test_a_fixed_address_serves_from_when_its_load_balancer_leads_somewhere() -> None:
    fixed = replace(served_at(serving(), None), front="east", record="east")
    assert kinds(fixed) == [NoteRecord]
    east = replace(fixed.balancer("east"), healthy=frozenset())
    assert kinds(replace(fixed, balancers=(east,))) == []
    named = replace(fixed, front=None, balancers=(east,))
    assert kinds(named) == [NoteRecord], "a name is there from when it was given"


# --- who gets no new connections ------------------------------------------------------------------------------------


def balancers(world: World, **backends: frozenset[str]) -> World:
    """Load balancers that run, and find all of these healthy."""
    return replace(
        world,
        balancers=tuple(
            BalancerFact(site=site, running=True, backends=names, healthy=names) for site, names in backends.items()
        ),
    )


@cache
def left() -> World:
    """The target carries the traffic, and no load balancer sends to the source any more."""
    truth = until(moving(3, 3), lambda now, _: now.memory.served_site == "west")
    return balancers(observe(truth), east=EVERYONE - set(EAST), west=EVERYONE - set(EAST))


def draining(world: World) -> list[tuple[str, ...]]:
    return [step.draining for step in noted(world) if isinstance(step, NoteDraining)]


def known_to_drain(world: World, *names: str) -> World:
    return remembering(world, lambda memory: replace(memory, draining=tuple((name, 0.0) for name in names)))


def test_an_apiserver_drains_from_when_no_load_balancer_sends_to_it() -> None:
    assert draining(left()) == [EAST]
    assert draining(known_to_drain(left(), *EAST)) == []
    assert draining(known_to_drain(left(), "east-1", "east-2")) == [EAST]
    one_still_sends = balancers(left(), east=EVERYONE - {"east-2", "east-3"}, west=EVERYONE - set(EAST))
    assert draining(one_still_sends) == [("east-2", "east-3")]


def test_an_apiserver_that_has_stopped_drains_no_more() -> None:
    stopped = with_fact(left(), "east-2", lambda fact: replace(fact, units=((Component.APISERVER, UnitState.STOPPED),)))
    assert draining(stopped) == [("east-1", "east-3")]
    assert draining(known_to_drain(stopped, "east-1", "east-3")) == []


def test_while_the_target_does_not_carry_the_traffic_only_the_dead_drain() -> None:
    late = with_fact(left(), "west-5", lambda fact: replace(fact, ready=False))
    assert draining(late) == []
    dead = with_member(late, "east-2", lambda member: replace(member, health=Health.DOWN))
    assert draining(dead) == [("east-2",)]
    assert draining(known_to_drain(late, *EAST)) == [()], "those that are wanted again drain no more"


def test_who_drains_is_not_noted_while_it_is_not_known_who_is_a_member() -> None:
    assert draining(replace(known_to_drain(serving(), "east-1"), membership=None)) == []
    assert draining(known_to_drain(serving(), "east-1")) == [()]
