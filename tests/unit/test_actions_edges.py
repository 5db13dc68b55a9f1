"""A load balancer on several edges: all that answer are told, held and taken down, and the name has who is well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fakes.endpoint import FakeBalancer, FakeDns
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.hold import held
from quarterdeck.model.balancers import BalancerFact, EdgeFact
from quarterdeck.model.endpoints import BackendAddress, BackendsMust
from quarterdeck.model.steps.traffic import LeadTo, SetBackends, SetRecord, StopBalancer
from quarterdeck.model.world import World

SET = SetBackends(site="east", why="", backends=("east-1",))


async def two_edges() -> tuple[SmallPlane, FakeBalancer, FakeBalancer]:
    small = await small_plane()
    one, two = (FakeBalancer(address=BackendAddress(f"192.0.2.{each}", 6443)) for each in (1, 2))
    small.plane.balancers = {"east": {"east-edge": one, "east-edge-2": two}}
    return small, one, two


def seen(small: SmallPlane, *edges: EdgeFact) -> World:
    return replace(small.world, balancers=(BalancerFact(site="east", running=True, edges=edges),))


async def test_every_edge_that_answers_is_told_and_taken_down() -> None:
    small, one, two = await two_edges()
    await carry_out(small.plane, SET, small.world)
    assert [[*each.backends] for each in (one, two)] == [["east-1"]] * 2
    await carry_out(small.plane, StopBalancer(site="east", why=""), small.world)
    assert (one.running, two.running) == (False, False)


async def test_an_edge_that_does_not_answer_keeps_nobody_from_telling_the_others() -> None:
    small, one, two = await two_edges()
    two.reachable = False
    world = seen(small, EdgeFact(name="east-edge"), EdgeFact(name="east-edge-2", leads=None))
    await carry_out(small.plane, SET, world)
    assert (one.running, two.running) == (True, False)
    await carry_out(small.plane, StopBalancer(site="east", why=""), world)
    assert not one.running


class Holding(FakeBalancer):
    is_held = False

    async def hold(self, seconds: float) -> None:
        self.is_held = True

    async def let_go(self) -> None:
        self.is_held = False


async def test_a_hold_holds_every_edge_that_answers() -> None:
    small, *_ = await two_edges()
    edges = [Holding(), Holding(), Holding()]
    names = ("east-edge", "east-edge-2", "east-edge-3")
    small.plane.balancers = {"east": dict(zip(names, edges, strict=True))}
    facts = (EdgeFact(name=names[0]), EdgeFact(name=names[1], leads=False), EdgeFact(name=names[2], leads=None))
    async with held(small.plane, seen(small, *facts), ()):
        assert [each.is_held for each in edges] == [True, True, False]
    assert not any(each.is_held for each in edges)


async def test_the_name_has_the_addresses_of_those_edges_that_are_to_be_in_it() -> None:
    small, *_ = await two_edges()
    to_east = SetRecord(site="", why="", to="east")
    assert isinstance(small.plane.dns, FakeDns)
    for named, addresses in (((True, True), ("192.0.2.1", "192.0.2.2")), ((True, False), ("192.0.2.1",))):
        edges = (EdgeFact(name=name, named=it) for name, it in zip(("east-edge", "east-edge-2"), named, strict=True))
        await carry_out(small.plane, to_east, seen(small, *edges))
        (record,) = small.plane.dns.records.values()
        assert record.addresses == addresses


async def test_the_name_has_the_own_addresses_of_the_apiservers_that_it_is_to_lead_to() -> None:
    small, *_ = await two_edges()
    assert isinstance(small.plane.dns, FakeDns)
    await carry_out(small.plane, LeadTo(site="", why="", backends=("east-1",)), small.world)
    (record,) = small.plane.dns.records.values()
    assert record.addresses == (apiserver_address(small.record("east-1")).host,)
    assert small.plane.dns.owners, "in the plane's name, so that no older driver can change it"


async def test_edges_that_share_an_address_are_in_the_name_once() -> None:
    small, *_ = await two_edges()
    both = ("east-edge", "east-edge-2")
    small.plane.balancers = {"east": {name: FakeBalancer(address=BackendAddress("192.0.2.9", 6443)) for name in both}}
    assert isinstance(small.plane.dns, FakeDns)
    await carry_out(small.plane, SetRecord(site="", why="", to="east"), seen(small, *(EdgeFact(name=e) for e in both)))
    (record,) = small.plane.dns.records.values()
    assert record.addresses == ("192.0.2.9",)


class Asking(FakeBalancer):
    """The user's own, with nobody at it."""

    async def apply(self, backends: Mapping[str, BackendAddress]) -> BackendsMust | None:
        return BackendsMust(name="demo", at=(self.address,), wanted=tuple(backends.items()), check="", seen="nobody")

    async def remove(self) -> BackendsMust | None:
        return await self.apply({})

    async def hold(self, seconds: float) -> None:
        raise AssertionError("it cannot be held")


async def test_what_a_person_must_do_at_a_load_balancer_is_asked_for_and_not_taken_for_done() -> None:
    small, *_ = await two_edges()
    small.plane.balancers = {"east": {"192.0.2.7": Asking(can_hold=False)}}
    asked = await carry_out(small.plane, SET, small.world)
    assert isinstance(asked, BackendsMust)
    assert [name for name, _ in asked.wanted] == ["east-1"]
    asked = await carry_out(small.plane, StopBalancer(site="east", why=""), small.world)
    assert isinstance(asked, BackendsMust)
    assert not asked.wanted


async def test_one_that_cannot_be_held_is_not() -> None:
    small, *_ = await two_edges()
    holds = Holding()
    small.plane.balancers = {"east": {"192.0.2.7": Asking(can_hold=False), "east-edge": holds}}
    async with held(small.plane, seen(small, EdgeFact(name="192.0.2.7"), EdgeFact(name="east-edge")), ()):
        assert holds.is_held
