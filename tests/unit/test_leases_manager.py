"""Managers on a clock that jumps: who runs what, when one is asked, frozen, cut off or killed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import NoReturn

import pytest
from loop.clock import Clock, lived
from prometheus_client import CollectorRegistry
from support.golden import Golden

from quarterdeck.errors import InvalidInput, LeaseLost, Unavailable
from quarterdeck.leases import ControllerSet, Held, LockMetrics, Manager, MemoryLocks, Record, Timing

TIMING = Timing()


class Killed(Exception):
    """The process has ended itself."""


@dataclass
class Net:
    """Between one process and the store: it takes a moment each way, and can be cut."""

    locks: MemoryLocks
    takes: float = 0.002
    cut: bool = False
    #: Writes that are stored, and whose answers are lost.
    deaf: int = 0

    async def read(self, name: str) -> Record | None:
        await self._way()
        found = await self.locks.read(name)
        await self._way()
        return found

    async def create(self, name: str, record: Record) -> Record:
        await self._way()
        return await self._back(await self.locks.create(name, record))

    async def update(self, name: str, record: Record) -> Record:
        await self._way()
        return await self._back(await self.locks.update(name, record))

    async def changed(self, name: str, version: str) -> Record | None:
        await self._way()
        found = await self.locks.changed(name, version)
        await self._way()
        return found

    async def _way(self) -> None:
        await asyncio.sleep(self.takes)
        if self.cut:
            raise Unavailable("asking for a lock", "the network is cut")

    async def _back(self, record: Record) -> Record:
        await self._way()
        if self.deaf:
            self.deaf -= 1
            raise Unavailable("asking for a lock", "the answer was lost")
        return record


@dataclass
class Seen:
    """What controllers did: when each did something, who, and with which token."""

    clock: Clock
    acts: dict[str, list[tuple[float, str, int]]] = field(default_factory=dict)

    def longest_gap(self, name: str, since: float) -> float:
        times = [since, *(at for at, _, _ in self.acts[name] if at >= since)]
        return max(after - before for before, after in zip(times, times[1:], strict=False))

    def check(self) -> None:
        """No act with an older token after a newer one, and one holder a token."""
        for acts in self.acts.values():
            tokens = [token for _, _, token in acts]
            assert tokens == sorted(tokens)
            assert len({(process, token) for _, process, token in acts}) == len(set(tokens))


@dataclass
class Process:
    """A process with a manager. ``frozen``: its controllers and its manager do not get to run."""

    lab: Lab
    name: str
    manager: Manager
    net: Net
    task: asyncio.Task[None] | None = None

    def start(self) -> Process:
        self.task = asyncio.create_task(self.manager.run())
        return self

    async def stop(self) -> None:
        assert self.task is not None
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    def kill(self) -> None:
        """It does nothing any more, and says nothing to anybody."""
        self.net.cut = True
        self.lab.dead.add(self.name)


@dataclass
class Lab:
    clock: Clock = field(default_factory=Clock)
    locks: MemoryLocks = field(default_factory=MemoryLocks)
    seen: Seen = field(init=False)
    messages: list[str] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    stubborn: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    processes: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen = Seen(self.clock)

    def controller(self, process: str, name: str) -> Callable[[Held], Awaitable[None]]:
        async def run(held: Held) -> None:
            while process not in self.dead:
                held.check()
                if name in self.failing:
                    raise RuntimeError(f"{name} has a defect")
                self.seen.acts.setdefault(name, []).append((self.clock.now, process, held.token))
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    if process not in self.stubborn:
                        raise

        return run

    def set(self, process: str, lock: str, *names: str) -> ControllerSet:
        return ControllerSet(lock=lock, controllers={name: self.controller(process, name) for name in names})

    def process(
        self, name: str, primary: str, *migration: str, precedence: int = 0, timing: Timing = TIMING
    ) -> Process:
        net = Net(self.locks)

        def fatal(why: str) -> NoReturn:
            self.dead.add(name)
            raise Killed(f"{name}: {why}")

        manager = Manager(
            net,
            self.set(name, primary),
            [self.set(name, lock, f"{lock}-controller") for lock in migration],
            precedence=precedence,
            timing=timing,
            name=name,
            clock=self.clock.monotonic,
            wall=self.clock.wall,
            fatal=fatal,
            tell=self.messages.append,
            watchdog=False,
        )
        self.processes.append(Process(self, name, manager, net))
        return self.processes[-1]

    async def until(self, condition: Callable[[], bool], within: float) -> float:
        """Seconds that it took."""
        since = self.clock.now
        while not condition():
            assert self.clock.now < since + within, f"not within {within} s"
            await asyncio.sleep(0.005)
        return self.clock.now - since

    def holders(self, lock: str) -> list[str]:
        return [
            each.name
            for each in self.processes
            if each.name not in self.dead and lock in each.manager.locks and each.manager.holds(lock)
        ]


@contextlib.asynccontextmanager
async def living(lab: Lab) -> AsyncIterator[None]:
    """A life, and the end of all that it has started."""
    try:
        yield
        lab.seen.check()
    finally:
        lab.stubborn.clear()
        for task in (tasks := [each.task for each in lab.processes if each.task is not None]):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(1)  # for controllers that were told to end


life = lived(Lab, living)


@life
async def test_a_manager_runs_its_sets_and_lets_all_go_when_it_ends(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: "cloud-controller" in lab.seen.acts, 1)
    assert (lab.holders("kcm"), lab.holders("cloud")) == (["a"], ["a"])
    await asyncio.sleep(120)
    assert lab.seen.longest_gap("cloud-controller", 1001) < 0.02, "it is renewed, and never stops"
    await one.stop()
    for lock in ("kcm", "cloud"):
        record = await lab.locks.read(lock)
        assert record is not None
        assert (record.holder, record.transitions) == ("", 0)
    assert not lab.messages


@life
async def test_a_newer_manager_takes_over_three_sets_with_hardly_a_gap_and_the_older_never_takes_them_back(
    lab: Lab,
) -> None:
    lab.process("old", "kcm", "service", "route", "nodeipam").start()
    await lab.until(lambda: all(lab.holders(each) for each in ("service", "route", "nodeipam")), 1)
    since = lab.clock.now
    lab.process("new", "ccm", "service", "route", "nodeipam", precedence=1).start()
    for each in ("service", "route", "nodeipam"):
        await lab.until(lambda each=each: lab.holders(each) == ["new"], 1)
        assert lab.seen.longest_gap(f"{each}-controller", since) < 0.1
    assert lab.holders("kcm") == ["old"], "what does not move stays"
    await asyncio.sleep(60)
    assert lab.holders("service") == ["new"]


@life
async def test_all_of_a_manager_goes_to_its_next_version(lab: Lab) -> None:
    lab.process("old", "kcm", "service", "route").start()
    await lab.until(lambda: all(lab.holders(each) for each in ("kcm", "service", "route")), 1)
    since = lab.clock.now
    lab.process("new", "kcm", "service", "route", precedence=1).start()
    await lab.until(lambda: all(lab.holders(each) == ["new"] for each in ("kcm", "service", "route")), 1)
    assert max(lab.seen.longest_gap(f"{each}-controller", since) for each in ("service", "route")) < 0.1


@pytest.mark.parametrize("seconds_of_renewal", [0.1, 1.0, 1.9])
@life
async def test_the_locks_of_a_manager_that_is_killed_pass_on_after_their_duration(
    lab: Lab, seconds_of_renewal: float
) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.process("b", "kcm", "cloud").start()
    await asyncio.sleep(4 + seconds_of_renewal)
    one.kill()
    took = await lab.until(lambda: lab.holders("cloud") == ["b"], 20)
    assert took < TIMING.duration + 0.3, "its two locks run out side by side"


@life
async def test_who_is_cut_off_stops_before_the_next_one_begins(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.process("b", "kcm", "cloud").start()
    await asyncio.sleep(5)
    one.net.cut = True
    await lab.until(lambda: lab.holders("cloud") == ["b"], 20)
    acts = lab.seen.acts["cloud-controller"]
    last = max(at for at, process, _ in acts if process == "a")
    first = min(at for at, process, _ in acts if process == "b")
    assert first - last > TIMING.stop_within
    one.net.cut = False
    await asyncio.sleep(60)
    assert lab.holders("cloud") == ["b"]
    assert any("the network is cut" in each for each in lab.messages)


@life
async def test_who_was_frozen_does_nothing_when_it_is_woken(lab: Lab, golden: Golden) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    held = Held("cloud", 0, "a", lambda: one.manager.locks["cloud"].left)
    held.check()
    lab.clock.now += 60  # nothing here has run meanwhile
    with golden.raises(LeaseLost):
        held.check()
    acts = len(lab.seen.acts["cloud-controller"])
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    assert lab.seen.acts["cloud-controller"][acts][0] >= 1060, "nobody took it: it goes on after a renewal"


@life
async def test_who_does_not_stop_in_time_is_ended(lab: Lab, golden: Golden) -> None:
    lab.stubborn.add("a")
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.process("b", "kcm", "cloud").start()
    await asyncio.sleep(5)
    one.net.cut = True
    await lab.until(lambda: "a" in lab.dead, 16)
    await lab.until(lambda: lab.holders("cloud") == ["b"], 5)
    assert one.task is not None
    with golden.raises(Killed):
        await one.task


@life
async def test_a_renewal_whose_answer_is_lost_costs_nothing(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    for _ in range(5):
        one.net.deaf = 2
        await asyncio.sleep(6)
    assert lab.seen.longest_gap("cloud-controller", 1001) < 0.02


@life
async def test_a_holder_that_does_not_let_go_is_told_of(lab: Lab) -> None:
    lab.stubborn.add("a")
    lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.process("b", "ccm", "cloud", precedence=1).start()
    await asyncio.sleep(40)
    assert lab.holders("cloud") == ["a"]
    (message,) = (each for each in lab.messages if "asked to release" in each)
    assert "lock 'cloud' is held by a_" in message


@life
async def test_a_lock_of_client_go_is_waited_for_and_told_of(lab: Lab, golden: Golden) -> None:
    await lab.locks.create("cloud", Record(holder="node-1_3f2a", duration=15.0, transitions=4))
    lab.process("b", "ccm", "cloud", precedence=1).start()
    took = await lab.until(lambda: lab.holders("cloud") == ["b"], 20)
    assert took >= 15
    assert lab.seen.acts["cloud-controller"][0][2] == 5
    (message,) = lab.messages
    assert "node-1_3f2a" in message
    golden(message)


@life
async def test_a_lock_that_was_used_with_other_controllers_is_not_taken(lab: Lab, golden: Golden) -> None:
    await lab.locks.create("cloud", Record(holder="", duration=15.0, controllers=("another",)))
    lab.process("a", "kcm", "cloud").start()
    await asyncio.sleep(30)
    assert lab.holders("kcm") == ["a"]
    assert lab.holders("cloud") == []
    golden(lab.messages)


@life
async def test_a_lock_that_somebody_deletes_is_taken_again_with_a_newer_token_when_its_holder_has_stopped(
    lab: Lab,
) -> None:
    lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.process("b", "ccm", "cloud").start()
    await asyncio.sleep(5)
    await lab.locks.delete("cloud")
    await asyncio.sleep(20)
    assert len(lab.holders("cloud")) == 1
    assert lab.seen.acts["cloud-controller"][-1][2] == 1


@life
async def test_a_controller_that_fails_ends_the_manager_after_all_was_let_go(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud", "other").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.failing.add("cloud-controller")
    assert one.task is not None
    with pytest.raises(RuntimeError, match="cloud-controller has a defect"):
        await one.task
    for lock in ("kcm", "cloud", "other"):
        record = await lab.locks.read(lock)
        assert record is not None
        assert record.holder == "", lock


@life
async def test_sets_come_and_go_without_a_restart_and_the_others_go_on(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    since = lab.clock.now
    await one.manager.reconfigure([lab.set("a", "cloud", "cloud-controller"), lab.set("a", "new", "new-controller")])
    await lab.until(lambda: lab.holders("new") == ["a"], 1)
    await one.manager.reconfigure([lab.set("a", "cloud", "cloud-controller")], precedence=3)
    assert list(one.manager.locks) == ["kcm", "cloud"]
    record = await lab.locks.read("new")
    assert record is not None
    assert record.holder == ""
    await asyncio.sleep(5)
    record = await lab.locks.read("cloud")
    assert record is not None
    assert record.precedence == 3
    assert lab.seen.longest_gap("cloud-controller", since) < 0.02
    for bad in (
        [lab.set("a", "cloud", "cloud-controller", "more")],
        [lab.set("a", "kcm", "x")],
        [lab.set("a", "fresh", "cloud-controller")],
    ):
        with pytest.raises(InvalidInput):
            await one.manager.reconfigure(bad)
    assert lab.holders("cloud") == ["a"]


@life
async def test_a_shorter_duration_counts_at_once(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    lab.process("b", "kcm", "cloud").start()
    await one.manager.reconfigure(timing=Timing(duration=8, stop_within=1))
    await asyncio.sleep(5)
    one.kill()
    assert await lab.until(lambda: lab.holders("cloud") == ["b"], 20) < 8.3


@life
async def test_more_than_two_migration_locks_are_warned_of_and_impossible_sets_are_refused(
    lab: Lab, golden: Golden
) -> None:
    lab.process("a", "kcm", "one", "two", "three")
    golden(lab.messages)
    for sets in (("kcm",), ("one", "one")):
        with golden.raises(InvalidInput):
            lab.process("b", "kcm", *sets)
    with golden.raises(InvalidInput):
        Manager(lab.locks, lab.set("b", "kcm"), [lab.set("b", "one", "x"), lab.set("b", "two", "x", "y")])
    with golden.raises(InvalidInput):
        Manager(lab.locks, lab.set("b", "kcm"), [lab.set("b", "one")])


@life
async def test_locks_are_told_in_numbers(lab: Lab) -> None:
    one = lab.process("a", "kcm", "cloud").start()
    other = lab.process("b", "ccm", "cloud", precedence=1)
    await lab.until(lambda: lab.holders("cloud") == ["a"], 1)
    await lab.locks.create("held", Record(holder="node-1_3f2a", duration=15.0, transitions=4))
    await other.manager.reconfigure([lab.set("b", "held", "held-controller")])
    other.start()
    await asyncio.sleep(3)
    registry = CollectorRegistry()
    registry.register(LockMetrics(one.manager, other.manager))

    def number(metric: str, **labels: str) -> float | None:
        return registry.get_sample_value(metric, labels)

    assert number("quarterdeck_lock_held", lock="cloud") == 1.0
    assert number("leader_election_master_status", name="kcm") == 1.0
    assert number("quarterdeck_lock_held", lock="held") == 0.0
    assert number("quarterdeck_lock_token", lock="held") == 4.0
    assert number("quarterdeck_lock_token", lock="cloud") == 0.0
    assert number("quarterdeck_lock_in_the_way", lock="held") == 1.0
    assert number("quarterdeck_lock_in_the_way", lock="ccm") == 0.0
    left = number("quarterdeck_lock_left_seconds", lock="cloud")
    assert left is not None
    assert 12 < left < 15
    assert number("quarterdeck_lock_writes_total", lock="cloud", kind="create", outcome="done") == 1.0
    assert number("quarterdeck_lock_writes_total", lock="cloud", kind="renew", outcome="done") == 1.0


@pytest.mark.parametrize("seed", range(12))
@life
async def test_whatever_happens_nobody_acts_beside_another_and_all_is_run_again_in_the_end(lab: Lab, seed: int) -> None:
    random = Random(seed)
    for number in range(3):
        lab.process(f"p{number}", random.choice(("kcm", "ccm")), "cloud", precedence=random.randrange(3)).start()
    for _ in range(25):
        one = random.choice(lab.processes)
        match random.randrange(5):
            case 0:
                one.net.cut = not one.net.cut
            case 1:
                one.net.deaf = random.randrange(4)
            case 2:
                one.net.takes = random.choice((0.001, 0.3, 4.0))
            case 3:
                lab.clock.now += random.choice((1.0, 12.0, 30.0))
            case 4 if one.task is not None:
                await one.stop()
                one.task = None
            case _:
                one.task = one.task or asyncio.create_task(one.manager.run())
        await asyncio.sleep(random.uniform(0, 8))
        assert len(lab.holders("cloud")) <= 1
    for one in lab.processes:
        one.net.cut, one.net.deaf, one.net.takes = False, 0, 0.001
        one.task = one.task or asyncio.create_task(one.manager.run())
    await lab.until(lambda: len(lab.holders("cloud")) == 1, 40)
