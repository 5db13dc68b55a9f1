"""Drills of a real plane: what fails is noticed, measured and made well again, also when the drill is killed."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

import psutil
import pytest
from support.conditions import CALL, until
from support.leftovers import processes_of
from support.plane_lab import CHANGE, PlaneLab

from quarterdeck.api.site import Isolation
from quarterdeck.engine.workspace.leases import next_manager_lease
from quarterdeck.model.units import MachineState
from quarterdeck.sites.local.fault.strace import cannot_trace

pytestmark = pytest.mark.timeout(240)

#: Seconds within which a machine is on again after whoever had it off was killed.
BACK = 20.0
#: Whoever is there for a drill alone.
HELPERS = {"drill", "quarterdeck.sites.local.fault.guard", "quarterdeck.probe.worker", "strace"}


def require_strace() -> None:
    """Leave a test out unless programs can be traced here."""
    if why := cannot_trace():
        pytest.skip(why)


def leader(lab: PlaneLab) -> str:
    (name,) = [str(each["replica"]) for each in lab.status("demo")["members"] if each["member"] == "leader"]
    return name


def drilled(lab: PlaneLab, *argv: str, deadline: float = 120) -> dict[str, Any]:
    """A drill that is passed, without anything lost."""
    drill: dict[str, Any] = lab.run("drill", "demo", *argv, "--yes", "-o", "json", deadline=deadline).json
    assert (drill["phase"], drill["lost"], drill["missed"]) == ("Passed", 0, 0), drill
    assert drill["acknowledged"] > 0
    assert drill["requests"] > 0
    return drill


def off(lab: PlaneLab, site: str) -> list[str]:
    machines = lab.on_site(site, lambda driver: driver.machines())
    return [each.name for each in machines if each.state is MachineState.DOWN]


def helpers(lab: PlaneLab) -> list[str]:
    found = []
    for process in processes_of(lab.root):
        with suppress(psutil.NoSuchProcess):
            found += HELPERS.intersection(process.cmdline())
    return found


def test_a_plane_is_drilled_and_nothing_of_it_stays_behind(demo: PlaneLab) -> None:
    site = demo.plane("demo").spec.placement.site
    demo.refused("drill", "demo", "--fail", "clock", "--yes", code=5, says=["this host's wall clock"])
    demo.refused("drill", "demo", "--fail", "quorum", "--yes", code=5, says=["would not survive it", "--dangerous"])

    killed = drilled(demo, "--fail", "unit")
    assert killed["undoneSeconds"] is None
    assert killed["redundantSeconds"] is not None

    # Its process is killed in the middle: the machine is on again all the same, and the drill says what became of it.
    cut_short = demo.start("drill", "demo", "--fail", "machine", "--hold", "10m", "--yes")
    until(lambda: off(demo, site), "a machine is off", seconds=40)
    cut_short.kill()
    until(lambda: not off(demo, site), "it is on again", seconds=BACK)
    demo.run("wait", "demo", deadline=60)

    drills = demo.run("drill", "list", "demo", "-o", "json").json
    phases = [(each["fail"], each["phase"]) for each in drills[-2:]]
    assert phases == [("unit", "Passed"), ("machine", "Interrupted")]
    assert off(demo, site) == []
    until(lambda: not helpers(demo), "nobody is left of the drills")
    demo.status("demo", code=0)


@pytest.mark.soak  # tests/contract/test_site_faults.py has the fault
def test_a_member_whose_disk_is_full_ends_until_there_is_room_and_what_was_written_is_there(demo: PlaneLab) -> None:
    require_strace()
    full = drilled(demo, "--fail", "disk-full", "--hold", "8s")  # it is found with the next write after a look
    assert 0 < full["detectedSeconds"] < full["undoneSeconds"] < full["redundantSeconds"], full
    assert full["left"] == []
    until(lambda: not helpers(demo), "nobody is left of the drill")
    assert {each["same"] for each in demo.run("etcd", "check", "demo", "-o", "json").json} == {True}
    demo.status("demo", code=0)


@pytest.mark.soak  # tests/contract has the fault, and unit tests who leads instead; here it is two minutes and more
@pytest.mark.timeout(480)
def test_a_leader_whose_disk_is_slow_is_found_and_a_member_with_a_fast_one_leads(demo: PlaneLab) -> None:
    require_strace()
    manager = demo.start("serve")
    until(lambda: demo.status("demo")["driver"], "it keeps the plane")
    before = leader(demo)
    slow = drilled(demo, "--fail", "slow-disk", deadline=CHANGE)
    assert 0 < slow["detectedSeconds"] < slow["undoneSeconds"] < slow["redundantSeconds"], slow
    assert leader(demo) != before
    assert manager.running
    manager.interrupt()
    assert manager.end(CALL).code == 0
    until(lambda: not helpers(demo), "nobody is left of the drill")


def test_a_member_with_other_data_is_found_and_exchanged(demo: PlaneLab) -> None:
    for each in ("manager", "corrupt"):
        demo.refused("drill", "demo", "--fail", each, "--yes", code=5, says=["it has no manager"])
    manager = demo.start("serve")
    until(lambda: demo.status("demo")["driver"], "it keeps the plane")
    demo.refused(
        "drill", "demo", "--fail", "manager", "--yes", code=5, says=["no process is known to manage the plane then"]
    )
    before = {each["replica"] for each in demo.status("demo")["members"]}
    altered = drilled(demo, "--fail", "corrupt")
    assert 0 < altered["detectedSeconds"] < altered["redundantSeconds"], altered
    assert altered["left"] == []
    after = {each["replica"] for each in demo.status("demo")["members"]}
    assert (len(after), len(after & before)) == (3, 2), "one was exchanged, and no other"
    assert {each["same"] for each in demo.run("etcd", "check", "demo", "-o", "json").json} == {True}

    manager.interrupt()
    assert manager.end(CALL).code == 0


@pytest.mark.soak  # test_serve has a manager that dies
def test_a_manager_that_is_killed_is_followed_by_the_one_that_stands_by(demo: PlaneLab) -> None:
    first = demo.start("serve")
    until(lambda: demo.status("demo")["driver"], "it keeps the plane")
    second = demo.start("serve")
    following = next_manager_lease(Isolation.LOOPBACK)
    until(lambda: demo.read(lambda home: home.store.lease(following)), "another one stands by")

    killed = drilled(demo, "--fail", "manager")
    assert (first.end(CALL).code, second.running) == (-signal.SIGKILL, True)
    assert (killed["undoneSeconds"], killed["failed"]) == (None, 0), killed
    assert 0 < killed["detectedSeconds"] < killed["redundantSeconds"], killed
    second.interrupt()
    assert second.end(CALL).code == 0
