"""Load balancers are asked what they say of themselves, as far as their machines answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from quarterdeck.actions.plane import Plane
from quarterdeck.endpoint.fakes import FakeBalancer
from quarterdeck.engine.assemble import Dated
from quarterdeck.engine.observe_traffic import TrafficObserver
from quarterdeck.model.endpoints import BalancerStatus
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


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (site(MachineState.UP, ()), 1),
        (None, 1),
        (site(MachineState.UNREACHABLE, None), 0),
        (site(MachineState.DOWN, None), 0),
    ],
    ids=["up", "site not known", "unreachable", "off"],
)
async def test_a_look_waits_for_a_silent_machine_only_once(said: SiteFacts | None, asked: int) -> None:
    """The site has waited for it: a look that did so again would take twice as long, and so would every diagnosis."""
    balancer = Counted()
    plane = SimpleNamespace(steady=lambda: 7.0, balancers={"east": balancer}, edge=lambda _: EDGE)
    observer = TrafficObserver(plane=cast("Plane", plane))
    seen = await observer.observe(("east", "west"), {"east": Dated(7.0, said), "west": Dated(7.0, None)})
    assert balancer.asked == asked
    assert seen == {"east": Dated(7.0, BalancerStatus(running=False) if asked else None)}
