"""A plane whose site is lost continues from its standby, whatever becomes of the process that drives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

import pytest
from support.tiers import in_each_tier, sized

from loop.faults import Faults, Kind, NoFaults, OneFault, Recorded
from loop.lives import EAST3, EAST3_BESIDE, Story, many, spread
from loop.session import Books, Session
from loop.test_manager import Kept, ready_apiservers, struck
from loop.units import PLANE
from quarterdeck.api.base import find_condition
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.app.etcd import failover
from quarterdeck.app.etcd.failover import LostSite
from quarterdeck.model.units import MachineState

STANDBY = "north"
#: Calls of a failover before and after which its driver is killed.
MOST = sized(smoke=2, full=8, soak=200)


@pytest.fixture(autouse=True, scope="module")
def cheap() -> Iterator[None]:
    with many():
        yield


@dataclass(kw_only=True)
class Failing(Kept):
    """A plane whose standby has all data, under managers of which another one starts where one is dead. ``faults`` are
    those of the failover: they begin once it was asked for.
    """

    story: Story = field(default_factory=lambda: Story("failover", EAST3_BESIDE, EAST3))
    faults: Faults = field(default_factory=NoFaults)
    standby_back: bool = False

    async def loses_its_site(self) -> list[str]:
        """All machines of the plane's site are off. Returns them."""
        machines = [each for each in self.world.machines if each.startswith("east-")]
        for each in machines:
            await self.world.sites["east"].kill_machine(each)
        struck(self)
        return machines

    async def fails_over(self) -> None:
        """The user fails over, and then the faults begin."""
        plane = await self.plane()
        (standby,) = (each for each in plane.status.memory.replicas if each.standby)
        lost = LostSite(
            name=PLANE,
            epoch=plane.status.memory.epoch + 1,
            to=STANDBY,
            replica=standby.name,
            machine=standby.machine,
            revision=1,
            seen=plane.status.memory.revision,
            loss="",
            dead=(),
            cut_off=(),
            others_may_live=False,
        )
        user = Session(name="the user", world=self.world, truths=self.truths, books=Books(), happens=self._happens)
        engine = user.engine()
        await failover.start(
            engine.home, lost, engine.requester, even_if_others_live=False, standby_back=self.standby_back
        )
        self.books.calls, self.books.faults = 0, self.faults

    async def until_it_is_settled(self) -> None:
        """Managers drive until the operation is over and the plane is ready."""

        async def settled() -> bool:
            if self.sessions[-1].dead:
                self.start(f"manager {len(self.sessions) + 1}")
            ready = find_condition((await self.plane()).status.conditions, ConditionType.READY)
            over = self.operations()[-1].status.phase is OperationPhase.SUCCEEDED
            return over and ready is not None and ready.status == "True"

        await self.until(settled, 400)

    def running(self, replicas: set[str]) -> list[str]:
        """The units of these replicas that run."""
        self.world.settle()
        return sorted(each.seen.spec.name for each in self.world.processes.values() if each.replica in replicas)


def failing(lived: Callable[[Failing], Awaitable[None]], **changes: object) -> Failing:
    async def whole(life: Kept) -> None:
        assert isinstance(life, Failing)
        await asyncio.sleep(20)
        await lived(life)
        if len(life.sessions) > 1:
            life.sessions[-1].stop()

    life = Failing(lived=whole, **changes)  # type: ignore[arg-type]
    life.run()
    return life


async def lost_and_settled(life: Failing) -> None:
    """The site is lost, the plane continues at the standby's, and what comes back stays off."""
    old = {each.name for each in (await life.plane()).status.memory.replicas}
    machines = await life.loses_its_site()
    await asyncio.sleep(20)
    await life.fails_over()
    await life.until_it_is_settled()
    memory = (await life.plane()).status.memory
    assert (memory.epoch, memory.served_site) == (1, STANDBY)
    there = [each for each in memory.replicas if not each.standby and each.name not in old]
    assert {each.slot.site for each in there} == {STANDBY}
    assert len(ready_apiservers(life)) == 3
    for each in machines:
        await life.world.sites["east"].boot_machine(each)
    struck(life)

    async def whole() -> bool:
        if life.sessions[-1].dead:
            life.start(f"manager {len(life.sessions) + 1}")
        replicas = (await life.plane()).status.memory.replicas
        return not old.intersection(each.name for each in replicas)

    await life.until(whole, 400)
    kept = (await life.plane()).status.memory.kept
    assert {each.replica for each in kept} == old
    assert life.running(old) == [], "nothing of the former epoch runs"
    assert all(life.world.sites["east"].power(each) is MachineState.UP for each in machines)


@pytest.mark.smoke
def test_a_plane_that_lost_its_site_continues_from_its_standby_and_what_comes_back_stays_off() -> None:
    life = failing(lost_and_settled)
    assert life.operations()[-1].spec.type is OperationType.FAILOVER


@cache
def calls() -> tuple[int, ...]:
    """The calls of a failover at which its driver may be killed."""
    recorded = Recorded()
    failing(lost_and_settled, faults=recorded)
    return tuple(sorted({*recorded.effects, *recorded.points.values()}))


@in_each_tier
@pytest.mark.parametrize("kind", [Kind.DIES, Kind.DIES_AFTER], ids=lambda kind: kind.name.lower())
def test_a_manager_that_is_killed_at_any_call_of_a_failover_is_followed_by_one_that_goes_on(kind: Kind) -> None:
    killed = 0
    for number in spread(calls(), MOST, kind.name):
        life = failing(lost_and_settled, faults=OneFault(number, kind))
        killed += life.sessions[0].dead  # (a call that fails has no moment after it)
    assert killed


def test_a_site_that_comes_back_before_the_epoch_begins_needs_no_failover() -> None:
    """Then the plane moves to the standby's site as it would in any migration, with all data."""

    async def lived(life: Failing) -> None:
        machines = await life.loses_its_site()
        standby = next(each for each in (await life.plane()).status.memory.replicas if each.standby)
        await life.world.sites[STANDBY].kill_machine(standby.machine)
        await asyncio.sleep(20)
        await life.fails_over()
        await asyncio.sleep(20)
        assert (await life.plane()).status.memory.epoch == 0, "the standby has to report first"
        for each in (*machines, standby.machine):
            await life.world.site_of(each).boot_machine(each)
        struck(life)
        await life.until_it_is_settled()
        plane = await life.plane()
        assert (plane.status.memory.epoch, plane.status.memory.served_site) == (0, STANDBY)
        assert plane.spec.new_epoch is None

    failing(lived)


def test_the_former_site_gets_a_standby_where_that_is_asked_for() -> None:
    async def lived(life: Failing) -> None:
        await lost_and_settled(life)

        async def follows() -> bool:
            members = (each for each in life.world.cluster.nodes if each.learner and each.up and not each.behind)
            return any(life.world.at(urlsplit(each.peer_url).hostname or "") == "east" for each in members)

        await life.until(follows, 400)

    failing(lived, standby_back=True)
