"""A plane loses its site: on a person's word it continues from its standby at another site, and what comes back of the
former site stays off.
"""

from __future__ import annotations

import time

from support.clients import Client
from support.conditions import until
from support.plane_lab import PlaneLab

from quarterdeck.model.units import UnitState

#: How many seconds after the word the API must serve again: three times as many as on a machine that does nothing else.
SERVES = 60.0
PLANE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: north}
spec: {}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: south}
spec: {}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {name: two}
spec:
  replicas: 3
  placement: {site: north}
  standby: {site: south}
"""


def _members(lab: PlaneLab) -> dict[str, str]:
    return {each["replica"]: each["member"] for each in lab.status("two")["members"]}


def test_a_plane_whose_site_is_lost_continues_from_its_standby(lab: PlaneLab) -> None:
    lab.run("apply", "-f", str(lab.file(PLANE)))
    lab.run("wait", "two")
    (standby,) = (each for each in lab.plane("two").status.memory.replicas if each.standby)
    assert (standby.slot.site, _members(lab)[standby.name]) == ("south", "standby")
    assert sorted(_members(lab).values()) == ["leader", "standby", "voter", "voter"]
    client = lab.client("two")
    assert client.writes("written-before-the-site-was-lost")
    lab.refused("failover", "two", "--to", "south", "--yes", code=5, says=("a quorum of its etcd answers",))

    old = set(_members(lab))
    machines = lab.machines("north")
    for machine in machines:
        lab.kill_machine("north", machine)
    until(lambda: lab.look("two").world.words != (), "no quorum answers, and the standby reports its last entry")
    began = time.monotonic()
    failing = lab.start("failover", "two", "--to", "south", "--yes")
    until(lambda: client.writes("written-afterwards"), "the API serves again")
    seconds = time.monotonic() - began
    print(f"the API served {seconds:.1f} s after the command")
    assert seconds <= SERVES
    done = failing.end()
    assert done.code == 0, str(done)
    assert "lost: nothing that was ever observed" in done.err
    assert {"written-before-the-site-was-lost", "written-afterwards"} <= client.names("configmaps")

    for machine in machines:
        lab.boot_machine("north", machine)
    lab.run("wait", "two")
    assert lab.status("two", code=0)["voters"] == 3
    assert old.isdisjoint(_members(lab))
    running = [
        unit.name
        for machine in machines
        for unit in lab.on_site("north", lambda driver, machine=machine: driver.units(machine))
        if unit.state is UnitState.RUNNING
    ]
    assert running == [], "nothing of the former epoch runs"
    assert {each.replica for each in lab.plane("two").status.memory.kept} == old
    assert {"written-before-the-site-was-lost", "written-afterwards"} <= _names(client)


def _names(client: Client) -> set[str]:
    return set(client.names("configmaps"))
