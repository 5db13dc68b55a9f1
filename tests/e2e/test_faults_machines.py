"""Machines that die, members that stand still, data that is deleted, under a plane in use: it stays up, and nothing
acknowledged is lost.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from support.clients import Writer
from support.conditions import until
from support.plane_lab import Command, PlaneLab, did

from quarterdeck.model.units import UnitState

pytestmark = pytest.mark.timeout(900)


def moved_until(demo: PlaneLab, step: str) -> tuple[Command, str]:
    """A migration that has just taken its first step of that kind, and where it goes."""
    target, after = demo.other("demo"), demo.last_entry("demo")
    moving = demo.start("migrate", "demo", "--to", target, "--yes")
    demo.journal("demo", lambda seen: did(seen, step), f"a step {step}", after=after, during=moving)
    return moving, target


@pytest.mark.parametrize("step", ["Promote", "SetRecord"])
def test_a_migration_completes_though_a_source_machine_dies(demo: PlaneLab, step: str) -> None:
    source = demo.plane("demo").spec.placement.site
    leader = next(each["machine"] for each in demo.status("demo")["members"] if each["member"] == "leader")
    with Writer(demo.client("demo"), f"source-dies-{step.lower()}") as writer:
        moving, target = moved_until(demo, step)
        demo.kill_machine(source, leader)
        writer.goes_on("after the machine died")
        done = moving.end()
        assert done.code == 0, str(done)
        writer.goes_on("at the target")
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
    assert {member["site"] for member in fact["members"] if member["member"] != "none"} == {target}
    demo.boot_machine(source, leader)
    demo.run("wait", "demo")
    assert demo.machines(source) == (), "what was left on the dead machine is tidied up"


def test_a_plane_stays_up_at_the_source_when_the_target_dies(demo: PlaneLab) -> None:
    source = demo.plane("demo").spec.placement.site
    with Writer(demo.client("demo"), "target-dies") as writer:
        moving, target = moved_until(demo, "Promote")
        for machine in demo.machines(target):
            demo.kill_machine(target, machine)
        writer.goes_on("after the target died", writes=40)
        done = demo.run("abort", "demo", "--yes")
        assert "plane demo is back" in done.out
        assert moving.end().code == 0
        writer.goes_on("after the abort")
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == source
    assert fact["voters"] == 3
    demo.boot_all()
    demo.run("wait", "demo")
    assert demo.machines(target) == ()


def etcd_pid(demo: PlaneLab, site: str, machine: str) -> int:
    """The process of the member that runs on a machine."""
    units = demo.on_site(site, lambda driver: driver.units(machine))
    pid = next(unit.pid for unit in units if unit.name.endswith("etcd") and unit.state is UnitState.RUNNING)
    assert pid is not None
    return pid


def test_requests_wait_while_no_member_answers_and_none_fails(demo: PlaneLab) -> None:
    """As long as elections take, split votes included: load balancers must not cut who only waits."""
    site = demo.plane("demo").spec.placement.site
    pids = [etcd_pid(demo, site, machine) for machine in demo.machines(site)]
    client = demo.client("demo")
    with Writer(client, "nobody-answers") as writer:
        probe = demo.start("probe", "demo", "--for", "10", "-o", "json")
        numbers = ("get", "configmaps", "-A", "-l", "quarterdeck.dev/probe", "-o", "jsonpath={.items[*].data.number}")
        until(lambda: set(demo.kubectl(client, *numbers).split()) - {"0"}, "the probe's clients write")
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(3.5)  # the fault itself
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        writer.goes_on("after the pause")
        done = probe.end()
    assert done.code == 0, str(done)
    assert writer.failures == []
    assert done.json["periods"][0]["overall"]["stall_ms"] > 3000, "clients ran while it lasted"


def test_a_member_whose_data_was_deleted_under_it_is_replaced(demo: PlaneLab) -> None:
    site = demo.plane("demo").spec.placement.site
    with Writer(demo.client("demo"), "data-deleted") as writer:
        lost = next(each for each in demo.status("demo")["members"] if each["member"] == "voter")
        machine, name = lost["machine"], lost["replica"]
        volumes = demo.on_site(site, lambda driver: driver.volumes(machine))
        volume = next(each for each in volumes if each.name == f"demo-{name}")
        pid = etcd_pid(demo, site, machine)
        shutil.rmtree(Path(volume.path) / "etcd")
        os.kill(pid, signal.SIGKILL)
        demo.run("wait", "demo")
        writer.goes_on("after the member was replaced")
    assert "DataLost" in {each["reason"] for each in demo.run("events", "demo", "-o", "json").json}
    fact = demo.status("demo", code=0)
    assert fact["voters"] == 3
    assert {each["health"] for each in fact["members"]} == {"healthy"}
    assert name not in {each["replica"] for each in fact["members"]}, "it has a new name, and a new member's id"
