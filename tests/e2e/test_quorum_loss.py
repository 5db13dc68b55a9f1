"""Two of three machines die for good: on a person's word the plane goes on from what the third has, clients that watch
are told to list again, and the dead take no writes when they come back.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from support.clients import CONFIGMAPS, Client
from support.conditions import until
from support.plane_lab import PlaneLab

from quarterdeck.components.etcd import BUMP
from quarterdeck.model.units import UnitState
from quarterdeck.planner.survivors import survivors

pytestmark = pytest.mark.smoke

#: How many seconds after the word the API must serve again: twice as many as on a machine that does nothing else.
SERVES = 60.0


def revision(client: Client) -> int:
    with client.http() as http:
        listed: dict[str, Any] = http.get(CONFIGMAPS).raise_for_status().json()
        return int(listed["metadata"]["resourceVersion"])


def watched_from(client: Client, since: int) -> int:
    """The code with which a watch that is resumed from a revision ends, or is refused."""
    params = {"watch": "true", "resourceVersion": str(since), "timeoutSeconds": "5"}
    with client.http(timeout=20.0) as http:
        answer = http.get(CONFIGMAPS, params=params)
        events = [json.loads(line) for line in answer.text.splitlines() if line]
        errors = [int(each["object"]["code"]) for each in events if each.get("type") == "ERROR"]
        return errors[0] if errors else answer.status_code


def test_a_plane_that_lost_two_of_three_machines_goes_on_from_what_the_third_has(demo: PlaneLab) -> None:
    site = demo.plane("demo").spec.placement.site
    client = demo.client("demo")
    demo.refused("recover", "demo", "--yes", code=5, says=("there is nothing to recover",))
    assert client.writes("written-before-the-quorum-was-lost")
    before = revision(client)
    members = {each["machine"]: each for each in demo.status("demo", code=0)["members"]}
    dead = sorted(members, key=lambda each: members[each]["member"] == "leader")[1:]
    for machine in dead:
        demo.kill_machine(site, machine)

    def is_lost() -> bool:
        left = survivors(demo.look("demo").world)
        return left is not None and left.lost

    until(is_lost, "the quorum is lost")
    assert not client.writes("lost")

    recovering = demo.start("recover", "demo", "--yes")
    until(lambda: demo.plane("demo").spec.new_epoch is not None, "the word is given")
    began = time.monotonic()
    until(lambda: client.writes("written-afterwards"), "the API serves again")
    seconds = time.monotonic() - began
    print(f"the API served {seconds:.1f} s after the word")
    assert seconds <= SERVES
    done = recovering.end()
    assert done.code == 0, str(done)
    assert "lost: nothing that was ever observed" in done.err
    assert {"written-before-the-quorum-was-lost", "written-afterwards"} <= client.names("configmaps")
    assert revision(client) >= before + BUMP
    assert watched_from(client, before) == 410, "who resumes a watch is told to list again"

    old = {each["replica"] for each in members.values()}
    for machine in dead:
        demo.boot_machine(site, machine)
    demo.run("wait", "demo")
    fact = demo.status("demo", code=0)
    assert fact["voters"] == 3
    assert old.isdisjoint(each["replica"] for each in fact["members"])
    assert _running(demo, site, old) == [], "nothing of the epoch before runs"
    memory = demo.plane("demo").status.memory
    assert {each.replica for each in memory.kept} == old
    for each in memory.kept:
        volumes = demo.on_site(each.site, lambda driver, machine=each.machine: driver.volumes(machine))
        (volume,) = (one for one in volumes if one.name == f"demo-{each.replica}")
        assert volume.used_bytes > 0, "its data is kept"
    assert {"written-before-the-quorum-was-lost", "written-afterwards"} <= client.names("configmaps")


def _running(demo: PlaneLab, site: str, replicas: set[str]) -> list[str]:
    return [
        unit.name
        for machine in demo.machines(site)
        for unit in demo.on_site(site, lambda driver, machine=machine: driver.units(machine))
        if unit.state is UnitState.RUNNING and any(unit.name.startswith(f"demo-{each}-") for each in replicas)
    ]
