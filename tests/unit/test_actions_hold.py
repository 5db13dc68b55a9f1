"""Load balancers are held for as long as it takes, and let go whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from fakes.endpoint import FakeBalancer
from fakes.etcd import FakeEtcd
from fakes.site import FakeSite
from support.golden import Golden
from support.small_plane import SmallPlane, address, small_plane

from quarterdeck.actions import hold as holding
from quarterdeck.actions import members as changing
from quarterdeck.actions.carry_out import carry_out
from quarterdeck.actions.hold import held, let_go_all
from quarterdeck.actions.members import transfer_leadership
from quarterdeck.actions.units import stop_unit
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.errors import LeaseLost, Unavailable
from quarterdeck.etcd.faults import EtcdFault, Reason, fault
from quarterdeck.kube.port import Address, HealthAnswer
from quarterdeck.model.balancers import BalancerFact
from quarterdeck.model.components import Component
from quarterdeck.model.steps.members import TransferLeadership
from quarterdeck.model.steps.traffic import SetBackends
from quarterdeck.model.steps.units import StopUnit
from quarterdeck.model.world import World


@dataclass(slots=True, kw_only=True)
class Holding(FakeBalancer):
    """A load balancer that knows whether it is held. ``errors`` come before what happens (or after, if ``late``)."""

    is_held: bool = False
    was_held: asyncio.Event = field(default_factory=asyncio.Event)
    holds: int = 0
    asked_to_let_go: int = 0
    slow: float = 0.0
    hold_errors: list[Exception] = field(default_factory=list)
    let_go_errors: list[Exception] = field(default_factory=list)

    async def hold(self, seconds: float) -> None:
        await asyncio.sleep(self.slow)
        self.is_held = True
        self.was_held.set()
        self.holds += 1
        if self.hold_errors:
            raise self.hold_errors.pop()

    async def let_go(self) -> None:
        self.asked_to_let_go += 1
        await asyncio.sleep(self.slow)
        if self.let_go_errors:
            raise self.let_go_errors.pop()
        self.is_held = False


BUSY = Unavailable("asking machine east-edge to let_go", "no answer within 2.0 s")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_BREATH", 0.0)


@asynccontextmanager
async def two_balancers() -> AsyncIterator[tuple[SmallPlane, World, list[Holding]]]:
    """A plane with a load balancer at each site. None may be left held, nor any task left running."""
    small = await small_plane(balancer=Holding)
    names = frozenset(each.name for each in small.plane.memory.replicas)
    west = BalancerFact(site="west", running=True, backends=names, healthy=names)
    world = replace(small.world, balancers=(small.world.balancers[0], west))
    both = [each for each in small.balancers.values() if isinstance(each, Holding)]
    yield small, world, both
    assert [each.is_held for each in both] == [False, False]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_both_are_held_in_the_block_and_let_go_after_it() -> None:
    async with two_balancers() as (small, world, both), held(small.plane, world, small.plane.memory.replicas):
        assert [each.is_held for each in both] == [True, True]


async def test_what_raises_in_a_hold_lets_go_first_and_is_what_is_told() -> None:
    async with two_balancers() as (small, world, both):
        both[0].let_go_errors = [BUSY]
        with pytest.raises(ValueError, match="in the middle"):
            async with held(small.plane, world, ()):
                raise ValueError("in the middle")


async def test_a_hold_whose_answer_was_lost_is_let_go_as_well(golden: Golden) -> None:
    async with two_balancers() as (small, world, both):
        both[1].hold_errors = [Unavailable("asking machine west-edge to hold", "its answer was lost")]
        with golden.raises(Unavailable):
            async with held(small.plane, world, ()):
                pytest.fail("not all are held")


async def test_a_machine_too_busy_to_let_go_is_asked_again() -> None:
    async with two_balancers() as (small, world, both):
        async with held(small.plane, world, ()):
            both[0].let_go_errors = [BUSY, BUSY]
        assert both[0].asked_to_let_go == 3


async def test_who_cannot_be_let_go_before_the_hold_is_over_is_told_of(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(holding, "LONGEST_HOLD", 0.02)
    async with two_balancers() as (small, world, both):
        with golden.raises(Unavailable):
            async with held(small.plane, world, ()):
                both[0].let_go_errors = [BUSY] * 1_000
        both[0].is_held = False  # its machine did, by itself


async def test_what_failed_first_is_told_when_letting_go_fails_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "LONGEST_HOLD", 0.02)
    async with two_balancers() as (small, world, both):
        with pytest.raises(ValueError, match="in the middle") as caught:
            async with held(small.plane, world, ()):
                both[0].let_go_errors = [BUSY] * 1_000
                raise ValueError("in the middle")
        assert caught.value.__notes__ == [str(BUSY)]
        both[0].is_held = False  # its machine did, by itself


@pytest.mark.parametrize("step", range(12))
async def test_a_driver_that_is_cancelled_at_any_moment_lets_go_first(step: int) -> None:
    """Cancelled at the n-th time at which it gives way to others: while it holds, within, and while it lets go."""
    async with two_balancers() as (small, world, both):
        for each in both:
            each.slow = 0.002

        async def hold() -> None:
            async with held(small.plane, world, ()):
                await asyncio.sleep(0.002)

        task = asyncio.create_task(hold())
        for _ in range(step):
            await asyncio.sleep(0.002 if step > 6 else 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if any(each.holds for each in both):
            assert all(each.asked_to_let_go for each in both)


async def test_a_hold_that_is_cut_off_does_not_arrive_after_its_end() -> None:
    async with two_balancers() as (small, world, both):
        both[0].slow = 0.03  # its machine is busy

        async def hold() -> None:
            async with held(small.plane, world, ()):
                pytest.fail("it was cancelled before")

        task = asyncio.create_task(hold())
        await both[1].was_held.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [each.holds for each in both] == [1, 1]


async def test_nothing_is_held_under_a_lease_that_is_lost() -> None:
    async with two_balancers() as (small, world, both):

        class Lost:
            async def check(self) -> None:
                raise LeaseLost("acting", "it has passed on")

        small.plane.guard = Lost()  # type: ignore[assignment]
        with pytest.raises(LeaseLost):
            async with held(small.plane, world, ()):
                pytest.fail("it was lost")
        assert [each.holds for each in both] == [0, 0]


async def test_what_a_former_driver_held_is_let_go_also_when_a_machine_does_not_answer() -> None:
    async with two_balancers() as (small, _, both):
        both[0].is_held = both[1].is_held = True
        both[0].let_go_errors = [BUSY]
        await let_go_all(small.plane)
        assert [each.is_held for each in both] == [True, False]
        await let_go_all(small.plane)


# what runs beside a hold


class SlowSite(FakeSite):
    """Units that take their time to stop."""

    stopping = 0

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        self.stopping += 1
        try:
            await asyncio.sleep(0.05)
        finally:
            self.stopping -= 1


class DeafEtcd(FakeEtcd):
    """Its members cannot be asked once leadership is being handed over, which takes long."""

    moving = 0

    async def move_leader(self, leader_url: str, to_id: int) -> None:
        self.moving += 1
        try:
            await asyncio.sleep(30)
        finally:
            self.moving -= 1

    async def status(self, url: str):  # type: ignore[no-untyped-def]
        if self.moving:
            raise fault("reading the status", Reason.DENIED, "not you")
        return await super().status(url)


def stop(name: str) -> StopUnit:
    return StopUnit(site="east", why="", replica=name, component=Component.APISERVER)


async def test_a_stop_has_ended_when_the_hold_beside_it_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    small = await small_plane(balancer=Holding, site=lambda each, number: SlowSite(each, number=number))

    async def broken(_: Address) -> bool:
        raise ValueError("in the middle")

    monkeypatch.setattr(small.kube, "listens", broken)
    with pytest.raises(ValueError, match="in the middle"):
        await stop_unit(small.plane, stop("east-1"), small.world)
    assert small.sites["east"].stopping == 0  # type: ignore[attr-defined]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_hand_over_has_ended_when_the_hold_beside_it_raises() -> None:
    small = await small_plane(balancer=Holding, etcd=DeafEtcd)
    member = small.cluster.nodes[1].id
    with pytest.raises(EtcdFault, match="not you"):
        await transfer_leadership(
            small.plane, TransferLeadership(site="east", why="", to="east-2", member=member), small.world
        )
    assert small.plane.etcd.moving == 0  # type: ignore[attr-defined]
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Unmeasured(FakeEtcd):
    """Its members do not answer for their metrics: at once, or for as long as they are given."""

    asked: list[float | None]

    async def pending_proposals(self, metrics_url: str, *, within: float | None = None) -> int:
        self.asked = [*getattr(self, "asked", ()), within]
        if metrics_url == self.cluster.nodes[0].address.metrics_url:  # type: ignore[union-attr]
            await asyncio.sleep(within or 30)
        raise fault("reading etcd's metrics", Reason.UNREACHABLE, "no answer")


async def test_a_hand_over_waits_the_bound_out_and_goes_on_when_it_is_not_known_whether_writes_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changing, "_QUIET", 0.2)
    small = await small_plane(balancer=Holding, etcd=Unmeasured)
    member = small.cluster.nodes[1].id
    began = asyncio.get_running_loop().time()
    await transfer_leadership(
        small.plane, TransferLeadership(site="east", why="", to="east-2", member=member), small.world
    )
    assert small.cluster.leader == member
    assert 0.2 <= asyncio.get_running_loop().time() - began < 2.0
    assert all(within is not None and within <= 0.2 for within in small.plane.etcd.asked)  # type: ignore[attr-defined]


async def test_an_apiserver_that_serves_is_stopped_while_clients_are_held() -> None:
    small = await small_plane(balancer=Holding, site=lambda each, number: SlowSite(each, number=number))
    seen: list[bool] = []

    async def refuses(server: Address) -> bool:
        assert server == address(small.plane, "east-1")
        seen.append(small.balancers["east"].is_held)  # type: ignore[attr-defined]
        small.kube.apiservers[server].up = len(seen) < 3
        return len(seen) < 3

    small.kube.listens = refuses  # type: ignore[method-assign]
    await stop_unit(small.plane, stop("east-1"), small.world)
    assert seen == [True, True, True]


async def test_clients_are_held_until_those_who_are_connected_were_told_that_it_ends() -> None:
    """Its listener is closed first. What comes over a connection in between is refused with 503."""
    small = await small_plane(balancer=Holding, site=lambda each, number: SlowSite(each, number=number))
    server = small.kube.apiservers[address(small.plane, "east-1")]
    seen: list[bool] = []

    async def refuses(_: Address) -> bool:
        seen.append(small.balancers["east"].is_held)  # type: ignore[attr-defined]
        return server.up

    async def ends() -> None:
        await small.balancers["east"].was_held.wait()  # type: ignore[attr-defined]
        server.up, server.silent = False, True
        for _ in range(10):
            await asyncio.sleep(0.005)
            seen.append(small.balancers["east"].is_held)  # type: ignore[attr-defined]
        server.silent = False

    small.kube.listens = refuses  # type: ignore[method-assign]
    await asyncio.gather(stop_unit(small.plane, stop("east-1"), small.world), ends())
    assert len(seen) > 10
    assert all(seen)


async def test_nobody_is_held_for_an_apiserver_that_never_had_clients() -> None:
    """One that is just starting answers nobody, and takes long to stop: clients of the others would wait for it."""
    small = await small_plane(balancer=Holding, served=False)
    starting = tuple(replace(each, ready=None) if each.name == "east-3" else each for each in small.world.replicas)
    others = frozenset({"east-1", "east-2"})
    balancers = (BalancerFact(site="east", running=True, backends=others, healthy=others), small.world.balancers[1])
    await stop_unit(small.plane, stop("east-3"), replace(small.world, replicas=starting, balancers=balancers))
    assert small.balancers["east"].holds == 0  # type: ignore[attr-defined]


async def test_who_may_get_clients_is_written_down_before_a_load_balancer_is_told() -> None:
    """A driver that dies in between leaves clients whom the next one must know of, or it holds nobody for them."""
    small = await small_plane(served=False)
    small.balancers["east"].reachable = False
    with pytest.raises(Unavailable):
        await carry_out(small.plane, SetBackends(site="east", why="", backends=("east-1",)), small.world)
    stored = memory_from_status((await small.plane.store.get(ControlPlane, small.plane.name)).status.memory)
    assert [each.name for each in stored.replicas if each.served] == ["east-1"]


async def test_an_apiserver_that_does_not_answer_is_asked_only_before_clients_wait() -> None:
    small = await small_plane(balancer=Holding)
    asked: list[bool] = []

    async def ping(_: Address) -> HealthAnswer:
        asked.append(small.balancers["east"].is_held)  # type: ignore[attr-defined]
        return HealthAnswer(None, "no answer within 1 s")

    small.kube.ping = ping  # type: ignore[method-assign]
    servers: Sequence[object] = small.plane.memory.replicas
    async with held(small.plane, small.world, small.plane.memory.replicas):
        pass
    assert asked == [False] * len(servers)
