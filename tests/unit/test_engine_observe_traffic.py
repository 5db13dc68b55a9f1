"""Load balancers are asked what they say of themselves, as far as their machines answer."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from fakes.endpoint import FakeBalancer
from support.fake_plane import FakePlane

from quarterdeck.actions.addresses import backend_address, seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import write_memory
from quarterdeck.engine.observation.assemble import Dated
from quarterdeck.engine.observation.observe_traffic import TrafficObserver
from quarterdeck.model.endpoints import BackendAddress, BalancerStatus, NameFact
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Machine, MachineRole, MachineState, UnitStatus

EDGE = Machine(name="east-edge", site="east", zone="a", address="192.0.2.1", role=MachineRole.EDGE)


class Counted(FakeBalancer):
    asked = 0

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        self.asked += 1
        return await super().observe(site)


def site(state: MachineState, units: tuple[UnitStatus, ...] | None) -> SiteFacts:
    edge = Machine(name=EDGE.name, site="east", zone="a", address=EDGE.address, role=EDGE.role, state=state)
    return SiteFacts(name="east", machines=(MachineFacts(machine=edge, units=units),), storage_classes=())


async def test_a_replica_at_an_address_that_somebody_made_up_is_not_sent_to() -> None:
    plane = await FakePlane().open()
    seated = tuple(replace(each, seat=seat_of(each)) for each in plane.memory.replicas)
    await write_memory(plane, replace(plane.memory, replicas=seated))
    first, second, _ = seated
    right = backend_address(second)
    balancer = FakeBalancer()
    await balancer.apply({first.name: BackendAddress("192.0.2.99", right.port), second.name: right, "stranger": right})
    plane.balancers = {"east": {EDGE.name: balancer}}
    seen = await TrafficObserver(plane=plane).observe(("east",), {"east": Dated(7.0, None)}, NameFact(), 6.0)
    (edge,) = seen["east"].answer or ()
    assert edge.status is not None
    assert edge.status.backends == {second.name, "stranger"} == edge.status.healthy


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        (site(MachineState.UP, ()), 1),
        (None, 1),
        (site(MachineState.UNREACHABLE, None), 0),
        (site(MachineState.DOWN, None), 0),
    ],
    ids=["up", "site not known", "unreachable", "off"],
)
async def test_a_look_waits_for_a_silent_machine_only_once(facts: SiteFacts | None, asked: int) -> None:
    """The site has waited for it: a look that did so again would take twice as long, and so would every diagnosis."""
    balancer = Counted()
    plane = SimpleNamespace(steady=lambda: 7.0, balancers={"east": {EDGE.name: balancer}})
    observer = TrafficObserver(plane=cast("Plane", plane))
    sites = {"east": Dated(7.0, facts), "west": Dated(7.0, None)}
    seen = await observer.observe(("east", "west"), sites, NameFact(), 6.0)
    assert balancer.asked == asked
    (edge,) = seen["east"].answer or ()
    assert (seen["east"].at, edge.status) == (7.0, BalancerStatus(running=False) if asked else None)


class Floating(FakeBalancer):
    """One whose own address is ``at``, and which has those of ``here``; ``sought`` are those that it was asked for."""

    def __init__(self, at: str, *here: str) -> None:
        super().__init__(address=BackendAddress(at, 6443), floats=True)
        self.here, self.sought = here, list[str]()

    async def observe(self, site: SiteFacts | None = None) -> BalancerStatus:
        return BalancerStatus(running=True, at_home=self.address.ip in self.here)

    async def has(self, address: str) -> bool:
        self.sought.append(address)
        return address in self.here


async def test_an_address_that_is_with_no_edge_of_its_own_is_looked_for_at_the_others() -> None:
    one, two = Floating("192.0.2.1"), Floating("192.0.2.2", "192.0.2.1", "192.0.2.2")
    plane = SimpleNamespace(steady=lambda: 7.0, balancers={"east": {"one": one, "two": two}})
    observer, sites = TrafficObserver(plane=cast("Plane", plane)), {"east": Dated(7.0, None)}
    seen = (await observer.observe(("east",), sites, NameFact(), 6.0))["east"].answer or ()
    assert [each.has for each in seen] == [frozenset(), {"192.0.2.1"}]
    one.here, two.here = ("192.0.2.1",), ("192.0.2.2",)
    two.sought.clear()
    seen = (await observer.observe(("east",), sites, NameFact(), 6.0))["east"].answer or ()
    assert [each.has for each in seen] == [frozenset(), frozenset()]
    assert (one.sought, two.sought) == ([], []), "most looks ask for no more than they did"
