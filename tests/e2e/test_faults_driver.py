"""Drivers that stop where it hurts most: while load balancers pass nothing on, and between two changes of the swap."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.client_view import watched
from support.plane_lab import Command, PlaneLab, did, started

#: A soak: tests/loop has drivers that die and freeze at any call, those of a hold and of the swap among them.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

#: Seconds between two looks. A hold lasts some 100 ms, and a swap some 20.
LOOK = 0.0005
#: Migrations until the driver was stopped inside of the swap: it may be over before this process gets to run.
TRIES = 3


def is_stopped(pid: int) -> bool:
    """Whether a process stands still: its load balancer is held."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] == b"T"
    except OSError:
        return False  # it has ended


def frozen_while(driver: Command, holds: Callable[[], bool], what: str) -> bool:
    """Stop the driver as soon as something is so; whether it still is so then. If not, the driver goes on."""
    end = time.monotonic() + 120
    while not holds():
        assert driver.running, f"{what}: never, before this ended: {driver.output}"
        assert time.monotonic() < end, f"{what}: not within two minutes; {driver.output}"
        time.sleep(LOOK)
    driver.freeze()
    if holds():
        return True
    driver.thaw()
    return False


def swap_under_way(demo: PlaneLab, after: int) -> Callable[[], bool]:
    """Whether the journal has a swap that began, and did not end."""
    database = sqlite3.connect(f"file:{demo.home}/quarterdeck.db?mode=ro", uri=True)
    query = "SELECT outcome FROM journal WHERE kind = 'swap-voters' AND id > ? ORDER BY id DESC LIMIT 1"
    return lambda: database.execute(query, (after,)).fetchone() == ("started",)


def moved_with_stops(demo: PlaneLab, label: str, *, kill_in_hold: bool, kill_in_swap: bool) -> bool:
    """A migration whose first driver is stopped in a hold, whose second one in the swap, and which a third one
    completes. Those that are not killed are woken then, and find that they are too late. False if the swap was over too
    soon to be hit.
    """
    source, target = demo.plane("demo").spec.placement.site, demo.other("demo")
    after = demo.last_entry("demo")
    with watched(demo, "demo", label):
        first = demo.start("migrate", "demo", "--to", target, "--yes")
        demo.journal("demo", lambda seen: did(seen, "set-record"), "the name leads there", after=after, during=first)
        envoys = [demo.pid(site, f"{site}-edge", "envoy") for site in (source, target)]
        while not frozen_while(first, lambda: any(map(is_stopped, envoys)), "a hold"):
            pass
        if kill_in_hold:
            first.kill()
        second = demo.start("wait", "demo")
        hit = frozen_while(second, swap_under_way(demo, after), "the swap")
        if hit and kill_in_swap:
            second.kill()
        assert demo.run("wait", "demo").code == 0
        woken = demo.last_entry("demo")
        for late in (each for each in (first, second) if each.running):
            late.thaw()
            assert late.end().code in ((4,) if late is first or hit else (0, 4)), late.output
        assert started(demo.read(lambda home: home.store.journal("demo", after=woken))) == 0, "a late driver acted"
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
    assert {each["site"] for each in fact["members"]} == {target}
    return hit


@pytest.mark.parametrize(
    "kill_in_hold",
    [pytest.param(True, id="killed-then-frozen"), pytest.param(False, id="frozen-then-killed")],
)
def test_no_request_fails_when_drivers_stop_inside_a_hold_and_inside_the_swap(
    demo: PlaneLab, kill_in_hold: bool
) -> None:
    for number in range(TRIES):
        label = f"stops-{number}-{'k' if kill_in_hold else 'f'}"
        if moved_with_stops(demo, label, kill_in_hold=kill_in_hold, kill_in_swap=not kill_in_hold):
            return
    raise AssertionError(f"the swap was over before its driver was stopped, in {TRIES} migrations")
