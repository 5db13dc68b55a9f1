"""The thread that ends a process whose event loop does not stop what may not go on."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import NoReturn

import pytest
from support.golden import Golden

from quarterdeck.leases.watchdog import Watchdog


@dataclass
class Dog:
    now: float = 100.0
    ended: list[str] = field(default_factory=list)

    def watchdog(self) -> Watchdog:
        return Watchdog(clock=lambda: self.now, fatal=self.fatal, stop_within=3.0)

    def fatal(self, why: str) -> NoReturn:
        self.ended.append(why)
        raise SystemExit(1)


def test_it_waits_until_it_is_time_to_stop_and_then_until_somebody_else_may_act(golden: Golden) -> None:
    dog = Dog()
    watchdog = dog.watchdog()
    assert watchdog.look() is None
    watchdog.expect("l", 110.0, 113.0)
    assert watchdog.look() == 10.0
    dog.now = 110.0
    assert watchdog.look() == 3.0
    dog.now = 113.0
    with pytest.raises(SystemExit):
        watchdog.look()
    golden(dog.ended[0])


def test_a_renewal_and_an_end_of_controllers_put_it_off() -> None:
    dog = Dog()
    watchdog = dog.watchdog()
    watchdog.expect("l", 110.0, 113.0)
    dog.now = 111.0
    watchdog.look()
    watchdog.expect("l", 115.0, 118.0)
    dog.now = 114.0
    assert watchdog.look() == 1.0
    watchdog.forget("l")
    dog.now = 200.0
    assert watchdog.look() is None


def test_a_process_that_is_woken_gets_the_time_to_stop_its_controllers() -> None:
    dog = Dog()
    watchdog = dog.watchdog()
    watchdog.expect("l", 110.0, 113.0)
    dog.now = 1000.0
    assert watchdog.look() == 3.0
    dog.now = 1003.0
    with pytest.raises(SystemExit):
        watchdog.look()


BLOCKING = """
import asyncio, time
from quarterdeck.leases import ControllerSet, Manager, MemoryLocks, Timing

async def blocks(held):
    print("begins", flush=True)
    time.sleep(120)

primary = ControllerSet(lock="primary", controllers={"blocks": blocks})
timing = Timing(duration=1, renew=0.2, retry=0.1, stop_within=0.2)
asyncio.run(Manager(MemoryLocks(), primary, timing=timing).run())
"""


def test_a_process_whose_controller_does_not_give_way_ends_before_its_lock_passes_on() -> None:
    child = subprocess.Popen([sys.executable, "-c", BLOCKING], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begins\n"
        since = time.monotonic()
        _, errors = child.communicate(timeout=60)
        assert child.returncode == 1
        assert b"ended: lock 'primary' is not held any more" in errors
        assert time.monotonic() - since < 30, "it did not wait for its controller"


def test_the_thread_goes_with_its_manager() -> None:
    watchdog = Dog().watchdog()
    watchdog.start()
    (thread,) = (each for each in threading.enumerate() if each.name == "watchdog of locks")
    watchdog.end()
    thread.join(20)
    assert not thread.is_alive()
