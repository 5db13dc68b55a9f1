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
from support.client_view import CLIENTS, probed, watched
from support.clients import Writer
from support.conditions import freeze, until
from support.plane_lab import Command, PlaneLab, did

pytestmark = pytest.mark.timeout(900)

#: Seconds until etcd gives up on a write that it had passed on to a leader that died: 5 s + 2 x election timeout.
LOST_WRITE = 8.0
#: Seconds until a load balancer cuts those who wait for an apiserver that cannot serve: three checks, and their pauses.
#: Where that takes it longer, on a busy host, a client that waits from the first moment on ends by itself after 10 s.
CHECKS = 10.0 + 1.0


def moved_until(demo: PlaneLab, step: str) -> tuple[Command, str]:
    """A migration that has just taken its first step of that kind, and where it goes."""
    target, after = demo.other("demo"), demo.last_entry("demo")
    moving = demo.start("migrate", "demo", "--to", target, "--yes")
    demo.journal("demo", lambda seen: did(seen, step), f"a step {step}", after=after, during=moving)
    return moving, target


@pytest.mark.soak  # one that falls silent is worse: test_migrate_netns.py; tests/loop has it at any call
@pytest.mark.parametrize("step", ["promote-learner", "set-record"])
def test_a_migration_completes_though_a_source_machine_dies(demo: PlaneLab, step: str) -> None:
    source = demo.plane("demo").spec.placement.site
    leader = next(each["machine"] for each in demo.status("demo")["members"] if each["member"] == "leader")
    with watched(demo, "demo", f"source-dies-{step.lower()}") as clients:
        moving, target = moved_until(demo, step)
        since = time.time()
        demo.kill_machine(source, leader)
        # its apiserver's connections are cut, and what was on its way to the leader of etcd is lost (see LOST_WRITE)
        clients.excuse("the leader's machine died", since=since, until=time.time() + LOST_WRITE, most=CLIENTS)
        clients.goes_on("after the machine died")
        done = moving.end()
        assert done.code == 0, str(done)
        clients.goes_on("at the target")
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == target
    assert {member["site"] for member in fact["members"] if member["member"] != "none"} == {target}
    demo.boot_machine(source, leader)
    demo.run("wait", "demo")
    assert demo.machines(source) == (), "what was left on the dead machine is tidied up"


@pytest.mark.soak  # tests/loop and tests/model have it at any moment
def test_a_plane_stays_up_at_the_source_when_the_target_dies(demo: PlaneLab) -> None:
    source = demo.plane("demo").spec.placement.site
    with watched(demo, "demo", "target-dies") as clients:
        moving, target = moved_until(demo, "promote-learner")
        for machine in demo.machines(target):
            demo.kill_machine(target, machine)
        clients.goes_on("after the target died", writes=40)
        done = demo.run("abort", "demo", "--yes")
        assert "plane demo is back" in done.out
        assert moving.end().code == 0
        clients.goes_on("after the abort")
    fact = demo.status("demo", code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == source
    assert fact["voters"] == 3
    demo.boot_all()
    demo.run("wait", "demo")
    assert demo.machines(target) == ()


def test_requests_wait_while_no_member_answers_and_none_fails(demo: PlaneLab) -> None:
    """As long as elections take, split votes included: load balancers must not cut who only waits."""
    site = demo.plane("demo").spec.placement.site
    pids = [demo.pid(site, machine, "etcd") for machine in demo.machines(site)]
    client = demo.client("demo")
    with Writer(client, "nobody-answers") as writer:
        probe = demo.start("probe", "demo", "--for", "10", "-o", "json")
        numbers = ("get", "configmaps", "-A", "-l", "quarterdeck.dev/probe", "-o", "jsonpath={.items[*].data.number}")
        until(lambda: set(demo.kubectl(client, *numbers).split()) - {"0"}, "the probe's clients write")
        try:
            for pid in pids:
                freeze(pid)
            time.sleep(3.5)  # the fault itself
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
        writer.goes_on("after the pause")
        done = probe.end()
    assert done.code == 0, str(done)
    assert writer.failures == []
    assert probed(done.out).periods[0].overall.stall_ms > 3000, "clients ran while it lasted"


def test_a_member_whose_data_was_deleted_under_it_is_replaced(demo: PlaneLab) -> None:
    site = demo.plane("demo").spec.placement.site
    with watched(demo, "demo", "data-deleted") as clients:
        lost = next(each for each in demo.status("demo")["members"] if each["member"] == "voter")
        machine, name = lost["machine"], lost["replica"]
        volumes = demo.on_site(site, lambda driver: driver.volumes(machine))
        volume = next(each for each in volumes if each.name == f"demo-{name}")
        pid = demo.pid(site, machine, "etcd")
        shutil.rmtree(Path(volume.path) / "etcd")
        os.kill(pid, signal.SIGKILL)
        # who has a request under way in its apiserver waits there until the load balancer cuts it
        since = time.time()
        clients.excuse("a member is gone", since=since, until=since + CHECKS, most=CLIENTS)
        demo.run("wait", "demo")
        clients.goes_on("after the member was replaced")
    assert "DataLost" in {each["reason"] for each in demo.run("events", "demo", "-o", "json").json}
    fact = demo.status("demo", code=0)
    assert fact["voters"] == 3
    assert {each["health"] for each in fact["members"]} == {"healthy"}
    assert name not in {each["replica"] for each in fact["members"]}, "it has a new name, and a new member's id"
