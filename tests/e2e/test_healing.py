"""What breaks for good under a plane in use is mended by a manager, without a command: a machine that dies, a program
that hangs, a file that somebody changed. And a person drains a machine.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.client_view import CLIENTS, Watched, watched
from support.conditions import freeze, until
from support.plane_lab import PlaneLab, did
from support.planes import KeptPlane

from quarterdeck.model.components import Component
from quarterdeck.planner.members import serves

pytestmark = pytest.mark.timeout(600)

NAME = "demo"
#: Seconds after which no request may fail any more that a machine's death cost nobody but who had it there. Some times
#: what bench/drills.py measures, for a busy host.
IN_FLIGHT = 5.0
#: Seconds until a load balancer cuts those who wait for an apiserver that stands still: three checks and their pauses.
CHECKS = 10.0 + 1.0
#: A machine dead -> known to be, and from then to full redundancy: many times what must be reached, for a host that
#: does other things as well.
DETECTED, MENDED = 60.0, 240.0


@pytest.fixture(scope="module")
def kept(shared: KeptPlane) -> Iterator[PlaneLab]:
    """The plane demo, kept by a manager and healed quickly; as it was afterwards."""
    demo = shared.ready()
    document = yaml.safe_load(demo.run("get", NAME, "-o", "yaml").out)
    was = {**document, "metadata": {"name": NAME}}
    del was["status"]
    spec = {**was["spec"], "healing": {"budget": 9, "afterSeconds": 1, "hungAfterSeconds": 5}}
    demo.run("apply", "-f", str(demo.file(yaml.safe_dump({**was, "spec": spec}))))
    manager = demo.start("serve", "--log-format", "json")
    until(lambda: '"serving"' in manager.output, "it serves")
    try:
        yield demo
    finally:
        manager.process.send_signal(signal.SIGTERM)
        manager.end(30)
        demo.boot_all()
        demo.run("apply", "-f", str(demo.file(yaml.safe_dump(was))))
        demo.run("wait", NAME)


@pytest.fixture
def clients(kept: PlaneLab, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """Clients of the plane while the test runs."""
    until(lambda: whole(kept), "nothing is left to do", pause=0.2)
    with watched(kept, NAME, request.function.__name__[:30].replace("_", "-").strip("-")) as clients:
        yield clients


def test_a_machine_that_dies_is_replaced(kept: PlaneLab, clients: Watched) -> None:
    lab = kept
    lost = member(lab, "voter")
    after, since = lab.last_entry(NAME), time.time()
    lab.kill_machine(lost["site"], lost["machine"])
    clients.excuse("its machine died", since=since, until=since + IN_FLIGHT, most=CLIENTS)
    down = "note-down-replicas"
    seen = lab.journal(NAME, lambda seen: down in {each.kind for each in seen}, "it is known", after=after)
    detected = next(each.time for each in seen if each.kind == down) - since
    until(lambda: lost["replica"] not in serving(lab) and whole(lab), "another one serves", seconds=MENDED, pause=0.5)
    mended = time.time() - since - detected
    print(f"\na machine died: known after {detected:.1f} s, as wanted {mended:.1f} s later")
    assert detected <= DETECTED
    assert mended <= MENDED
    clients.goes_on("after the machine was replaced")
    reasons = {each["reason"] for each in lab.run("events", NAME, "-o", "json").json}
    assert {"MemberDown", "ReplicaMarkedForReplacement"} <= reasons


def test_a_program_that_hangs_is_started_again(kept: PlaneLab, clients: Watched) -> None:
    lab = kept
    hangs = member(lab, "voter")
    after, since = lab.last_entry(NAME), time.time()
    pid = lab.pid(hangs["site"], hangs["machine"], Component.APISERVER)
    freeze(pid)
    clients.excuse("an apiserver stood still", since=since, until=since + CHECKS, most=CLIENTS)
    lab.journal(NAME, lambda seen: did(seen, "force-restart-unit"), "it is restarted", after=after)
    print(f"an apiserver hung: restarted after {time.time() - since:.1f} s")
    until(lambda: whole(lab), "it is well", pause=0.2)
    assert lab.pid(hangs["site"], hangs["machine"], Component.APISERVER) != pid
    assert hangs["replica"] in serving(lab), "its replica is the same"
    clients.goes_on("after it was restarted")


def test_what_somebody_changed_is_put_back(kept: PlaneLab, clients: Watched) -> None:
    """A flag in the record that a machine starts a unit by; it is what the unit would have after a boot."""
    lab = kept
    changed = member(lab, "voter")
    (record,) = lab.home.glob(f"**/{changed['machine']}/units/*-{Component.CONTROLLER_MANAGER}/unit.json")
    before, after = record.read_text(), lab.last_entry(NAME)
    found = json.loads(before)
    record.write_text(json.dumps({**found, "argv": [*found["argv"], "--v=9"]}))
    program = str(Component.CONTROLLER_MANAGER)
    lab.journal(NAME, lambda seen: did(seen, "start-unit", text=program), "it is restarted", after=after)
    until(lambda: whole(lab), "it is well", pause=0.2)
    assert json.loads(record.read_text())["argv"] == found["argv"]
    pid = lab.pid(changed["site"], changed["machine"], Component.CONTROLLER_MANAGER)
    assert "--v=9" not in Path(f"/proc/{pid}/cmdline").read_text()
    clients.goes_on("after it was put back")


def test_a_machine_is_drained(kept: PlaneLab, clients: Watched) -> None:
    lab = kept
    leaves = member(lab, "voter")
    lab.boot_all()  # the one that died has room again
    try:
        lab.run("site", "drain", leaves["site"], leaves["machine"], "--yes")
        assert leaves["machine"] not in lab.machines(leaves["site"])
        assert leaves["replica"] not in serving(lab)
        clients.goes_on("after the machine was drained")
    finally:
        lab.run("site", "uncordon", leaves["site"], leaves["machine"])


def member(lab: PlaneLab, kind: str) -> dict[str, Any]:
    """The first member of that kind: what its machine had costs those alone who used it."""
    found: dict[str, Any] = next(each for each in lab.status(NAME)["members"] if each["member"] == kind)
    return found


def serving(lab: PlaneLab) -> set[str]:
    """The replicas that vote, and serve clients."""
    world = lab.look(NAME).world
    return {each.name for each in world.memory.replicas if serves(world, each)}


def whole(lab: PlaneLab) -> bool:
    """Whether nothing is left to do but on machines that are off."""
    return lab.look(NAME).plan.done and len(serving(lab)) == 3
