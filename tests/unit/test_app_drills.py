"""The course of a drill on a site in memory: what was made to fail is made well again, however the drill ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fakes.site import FakeSite
from support.fake_plane import FakePlane
from support.golden import Golden
from support.resources import with_spec
from support.site_harness import runs, settings

from quarterdeck.api.base import Metadata, find_condition
from quarterdeck.api.belongings import Drill, DrillPhase, DrillSpec, DrillStatus
from quarterdeck.api.conditions import ConditionType
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.drills import DrillSchedule
from quarterdeck.app import Quarterdeck, Requester, Wish
from quarterdeck.app.drill import drill_course, drills
from quarterdeck.app.drill.drill_course import Course, Drilling
from quarterdeck.app.drill.drills import LEASE
from quarterdeck.app.drill.task import MakeDrills, TellProven
from quarterdeck.drills.judgement import Sight
from quarterdeck.engine.workspace import operations
from quarterdeck.errors import Conflict, NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.faults import Fail, Fault, FaultKind
from quarterdeck.model.units import MachineState
from quarterdeck.model.world import World
from quarterdeck.probe.result import ProbeResult
from quarterdeck.probe.schema import Samples, Watches, Writes
from quarterdeck.stores.lease import hold_lease

A, B = "east-a1", "east-b1"
OFF = Fault(kind=FaultKind.POWER_OFF, machine=A)
KILLED = Fault(kind=FaultKind.KILL_UNIT, machine=A, unit="runs")
WELL = frozenset({"machine"})
NOTHING = ProbeResult(
    id="x",
    host="x",
    rate=1.0,
    periods=(),
    compared=("quiet", "quiet"),
    writes=Writes(acknowledged=1, unknown=0, lost=0, stale_reads=0, audited=True, examples=()),
    watches=Watches(events=0, missed=0, duplicated=0, out_of_order=0, relists=0, ended=0, cut=0, examples=()),
    failures=(),
    connections={},
    samples=Samples(kinds=(), addresses=(), at=(), ms=(), kind=(), address=(), ok=()),
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill_course, "_PACE", 0.005)
    monkeypatch.setattr(drill_course, "_CALM", 0.02)


@dataclass
class Drilled:
    """A drill of a plane that is well while machine A is, or once somebody has mended it. ``dies`` is called with each
    thing that the drill is about to do.
    """

    site: FakeSite = field(default_factory=lambda: FakeSite(settings()))
    faults: tuple[Fault, ...] = (OFF,)
    hold: float = 0.1
    mended: bool = False
    dies: Callable[[str], None] = lambda _: None
    did: list[str] = field(default_factory=list)

    def comes_to(self, what: str) -> None:
        self.did.append(what)
        self.dies(what)

    async def look(self) -> Sight:
        self.comes_to("look")
        await asyncio.sleep(0)
        well = self.mended or self.site.power(A) is MachineState.UP
        now = asyncio.get_running_loop().time()
        return Sight(at=now, done=well, survives=WELL if well else frozenset())

    async def mark(self, label: str) -> float:
        self.comes_to("mark")
        return 0.0

    async def stop(self) -> ProbeResult:
        self.comes_to("stop")
        return NOTHING

    async def run(self) -> Course:
        await self.site.start_unit(A, runs())
        loop = asyncio.get_running_loop()
        drill = Drilling(
            look=self.look,
            faults=[(self.site, each) for each in self.faults],
            hold=self.hold,
            patience=0.3,
            quiet=0.0,
            tell=lambda words: self.comes_to(f"told {words}"),
            clock=loop.time,
        )
        return await drill.run(Sight(at=loop.time(), done=True, survives=WELL), self)


async def test_what_fails_is_watched_undone_and_watched_until_all_is_as_before(golden: Golden) -> None:
    drill = Drilled()
    course = await drill.run()
    golden([each for each in drill.did if each != "look"])
    assert course.undone is not None
    assert course.undone - course.struck >= 0.1
    assert not course.sights[0].done
    assert course.sights[-1].done
    assert drill.site.power(A) is MachineState.UP


async def test_a_failure_that_others_have_mended_ends_early() -> None:
    drill = Drilled(hold=30.0)

    def mend(what: str) -> None:
        drill.mended = drill.did.count("look") > 3

    drill.dies = mend
    course = await asyncio.wait_for(drill.run(), 5.0)
    assert course.undone is not None
    assert course.undone - course.struck < 5.0


async def test_a_failure_that_no_look_has_seen_yet_lasts_for_its_time() -> None:
    """Nothing is said to be mended that was not seen to be broken."""
    drill = Drilled(mended=True)
    course = await drill.run()
    assert course.undone is not None
    assert course.undone - course.struck >= 0.1


async def test_what_is_over_at_once_is_not_undone() -> None:
    drill = Drilled(faults=(KILLED,))
    assert (await drill.run()).undone is None


async def test_a_plane_that_does_not_get_well_is_waited_for_and_no_longer(golden: Golden) -> None:
    drill = Drilled()

    def never(what: str) -> None:
        if what == "look":
            raise Unavailable("looking", "no answer")

    drill.dies = never
    course = await asyncio.wait_for(drill.run(), 5.0)
    assert not course.sights[-1].done
    golden(sorted(course.sights[-1].troubles))
    assert drill.site.power(A) is MachineState.UP


@pytest.mark.parametrize("moment", ["mark", f"told machine {A} is off", "look", "told the fault is", "stop"])
@pytest.mark.parametrize("how", [RuntimeError("it broke"), asyncio.CancelledError()])
async def test_what_was_made_to_fail_is_well_again_whenever_the_drill_ends(moment: str, how: BaseException) -> None:
    drill = Drilled()

    def die(what: str) -> None:
        if what.startswith(moment):
            raise how

    drill.dies = die
    with pytest.raises(type(how)):
        await drill.run()
    assert drill.site.power(A) is MachineState.UP
    assert await drill.site.faults_made() == ()


async def test_of_several_failures_none_is_left_when_one_cannot_be_made() -> None:
    drill = Drilled(
        faults=(OFF, Fault(kind=FaultKind.POWER_OFF, machine="nowhere"), Fault(kind=FaultKind.FREEZE, machine=B))
    )
    with pytest.raises(NotFound, match="nowhere"):
        await drill.run()
    assert await drill.site.faults_made() == ()
    assert (drill.site.power(A), drill.site.power(B)) == (MachineState.UP, MachineState.UP)


# The face, on a home of which nothing runs


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Quarterdeck]:
    async with Quarterdeck.open(tmp_path / "home", requester=Requester(name="a test")) as made:
        await operations.create(made._home, new_control_plane("demo", site="east"), Requester(name="a test"))
        yield made


async def kept(face: Quarterdeck, number: int, phase: DrillPhase = DrillPhase.RUNNING) -> Drill:
    return await face._home.store.create(
        Drill(
            metadata=Metadata(name=f"demo-drill-{number}"),
            spec=DrillSpec(plane="demo", number=number, fail=Fail.UNIT, hold=1.0),
            status=DrillStatus(phase=phase, started_at=datetime.now(UTC)),
        )
    )


async def test_a_plane_that_is_not_as_wanted_is_not_drilled_also_when_that_is_wanted(
    face: Quarterdeck, golden: Golden
) -> None:
    with golden.raises(PreconditionFailed):
        await face.drill("demo", Wish(fail=Fail.EDGE), dangerous=True)
    assert await face.drills("demo") == ()


async def test_one_drill_is_made_at_a_time(face: Quarterdeck, monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    monkeypatch.setattr(drills, "_STANDING_BY", 0.1)
    at = time.time()  # the store's clock stands still, and so does what is left of the lease
    monkeypatch.setattr(vars(face._home.store)["_leases"], "_clock", lambda: at)
    async with hold_lease(face._home.store, LEASE, "somebody"):
        with golden.raises(Conflict):
            await face.drill("demo", Wish(fail=Fail.EDGE))


async def test_a_drill_whose_process_died_says_so_and_goes_with_its_plane(face: Quarterdeck, golden: Golden) -> None:
    store = face._home.store
    await kept(face, 1)
    async with hold_lease(store, LEASE, "somebody"):
        assert [each.status.phase for each in await face.drills("demo")] == [DrillPhase.RUNNING]
    (died,) = await face.drills("demo")
    assert died.status.phase == DrillPhase.INTERRUPTED
    golden(died.status.message)
    await face._home.forget(await face.plane("demo"))
    assert await store.list(Drill) == ()


# The background task


@dataclass
class Kept:
    """A plane with the background tasks of drills, on a clock of its own."""

    fake: FakePlane
    now: datetime
    made: list[Fail] = field(default_factory=list)
    refuses: bool = False
    proving: TellProven = field(init=False)
    making: MakeDrills = field(init=False)

    def __post_init__(self) -> None:
        self.proving = TellProven(now=lambda: self.now)
        self.making = MakeDrills(drill=self.drill, now=lambda: self.now)

    async def turned(self) -> str:
        """Have a turn of each taken, and what is begun come to its end: what the condition says then ("": there is
        none).
        """
        plane = await self.fake.open()
        world = World(slots=(), memory=plane.memory, now=0.0)
        await self.proving.turn(plane, world)
        work = await self.making.due(plane, world)
        if work is not None:
            await work(plane.check)
        condition = find_condition((await self.fake.open()).resource.status.conditions, ConditionType.DRILLED)
        return "" if condition is None else f"{condition.status} {condition.reason}"

    async def drill(self, name: str, fail: Fail) -> Drill:
        self.made.append(fail)
        if self.refuses:
            raise PreconditionFailed(f"drilling plane {name}", "not now")
        number = len(self.made)
        return await self.fake.store.create(
            Drill(
                metadata=Metadata(name=f"{name}-drill-{number}"),
                spec=DrillSpec(plane=name, number=number, fail=fail, hold=30.0),
                status=DrillStatus(phase=DrillPhase.PASSED, started_at=self.now),
            )
        )

    async def wants(self, *schedules: DrillSchedule) -> None:
        plane = (await self.fake.open()).resource
        await self.fake.store.update(with_spec(plane, drills=schedules))


@pytest.fixture
async def plane() -> Kept:
    made = Kept(fake=FakePlane(), now=datetime.now(UTC) + timedelta(days=1))
    await made.wants(DrillSchedule(fail=Fail.UNIT, every=86_400.0))
    return made


async def test_what_is_scheduled_is_made_when_it_is_due_and_told_of(plane: Kept) -> None:
    assert await plane.turned() == "Unknown NotProven"
    assert plane.made == [Fail.UNIT]
    assert await plane.turned() == "True Proven"
    assert plane.made == [Fail.UNIT], "not again"
    plane.now += timedelta(days=1, seconds=1)
    await plane.turned()
    assert plane.made == [Fail.UNIT, Fail.UNIT]
    await plane.wants()
    assert await plane.turned() == "", "nothing is to be proven any more"


async def test_a_drill_that_is_refused_is_told_of_and_tried_again_after_a_while(plane: Kept, golden: Golden) -> None:
    plane.refuses = True
    for _ in range(2):
        assert await plane.turned() == "Unknown NotProven"
    assert plane.made == [Fail.UNIT]
    (event,) = await plane.fake.store.events("demo")
    assert event.reason == "DrillRefused"
    golden(event.message)
    plane.now += timedelta(hours=1)
    await plane.turned()
    assert len(plane.made) == 2


async def test_a_drill_that_breaks_is_not_made_again_at_once(plane: Kept) -> None:
    async def breaks(name: str, fail: Fail) -> Drill:
        raise RuntimeError("it broke")

    plane.making.drill = breaks
    with pytest.raises(RuntimeError, match="it broke"):
        await plane.turned()
    assert await plane.turned() == "Unknown NotProven"


async def test_a_plane_without_drills_is_left_alone(plane: Kept) -> None:
    await plane.wants()
    before = await plane.fake.store.get(ControlPlane, "demo")
    assert await plane.turned() == ""
    assert await plane.fake.store.get(ControlPlane, "demo") == before
