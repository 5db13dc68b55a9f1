"""The lease is looked at right before each effect: who lost it a moment ago changes nothing more."""

from __future__ import annotations

import pytest
from support.small_plane import SmallPlane, small_plane

from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.members import swap
from quarterdeck.errors import LeaseLost
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.steps.base import Step
from quarterdeck.model.steps.members import AddLearner, Promote, RemoveMember, Swap, TransferLeadership
from quarterdeck.model.steps.placement import ReleaseReplica
from quarterdeck.model.steps.traffic import SetBackends, SetRecord, StopBalancer
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.units import UnitSpec, UnitState


class Losing:
    """A guard that holds for so many looks, then not any more."""

    def __init__(self, good: int) -> None:
        self.left = good
        self.lease = None

    async def check(self) -> None:
        if self.left == 0:
            raise LeaseLost("acting under lease 'plane/alpha'", "it has passed on")
        self.left -= 1


def guard(small: SmallPlane, good: int) -> None:
    small.plane.guard = Losing(good)  # type: ignore[assignment]


@pytest.mark.parametrize("good", range(4))
async def test_each_change_of_a_swap_is_made_under_the_lease(good: int) -> None:
    small = await small_plane(replicas=5)
    members = {fact.replica: fact.id for fact in small.world.membership.members} if small.world.membership else {}
    leaving = [
        RemoveMember(site="east", why="", replica=name, member=members[name]) for name in ("east-3", "east-4", "east-5")
    ]
    guard(small, good)
    if good < len(leaving):
        with pytest.raises(LeaseLost):
            await swap(small.plane, Swap(site="", why="", changes=tuple(leaving)), small.world)
    else:
        await swap(small.plane, Swap(site="", why="", changes=tuple(leaving)), small.world)
    assert len(small.cluster.nodes) == 5 - good


STOP_ETCD = StopUnit(site="east", why="", replica="east-1", component=Component.ETCD)
STEPS: list[Step] = [
    AddLearner(site="east", why="", replica="east-1"),
    Promote(site="east", why="", replica="east-1", member=0x1001),
    RemoveMember(site="east", why="", replica="east-3", member=0x1003),
    TransferLeadership(site="east", why="", to="east-2", member=0x1002),
    STOP_ETCD,
    StopUnit(site="east", why="", replica="east-1", component=Component.APISERVER),
    StopUnit(site="east", why="", replica="east-1", component=Component.CONTROLLER_MANAGER),
    ReleaseReplica(site="east", why="", replica="east-1"),
    SetBackends(site="east", why="", backends=("east-1",)),
    StopBalancer(site="east", why=""),
    SetRecord(site="", why="", to="west"),
]


@pytest.mark.parametrize("good", range(2))
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{type(step).__name__}-{getattr(step, 'component', '')}")
async def test_nothing_is_changed_under_a_lease_that_is_lost_between_the_step_and_its_effect(
    step: Step, good: int
) -> None:
    """``good`` looks pass: none at all, or the one at the beginning of the step, where it has a second."""
    if good and (isinstance(step, AddLearner | RemoveMember | StopBalancer | SetRecord) or step == STOP_ETCD):
        return  # it has but one effect, at once
    small = await small_plane()
    east = small.sites["east"]
    for component in NAMED:
        unit = small.plane.unit(small.record("east-1"), component)
        await east.start_unit("east-a1", UnitSpec(name=unit, argv=("/bin/true",)))
    before = await state(small)
    guard(small, good)
    with pytest.raises(LeaseLost):
        await carry_out(small.plane, step, small.world)
    assert await state(small) == before


async def state(small: SmallPlane) -> object:
    units = await small.sites["east"].units("east-a1")
    return (
        [(node.id, node.learner) for node in small.cluster.nodes],
        small.cluster.leader,
        [(each.name, each.state is UnitState.RUNNING) for each in units],
        {site: (each.running, dict(each.backends)) for site, each in small.balancers.items()},
        dict(small.plane.dns.records),  # type: ignore[attr-defined]
    )
