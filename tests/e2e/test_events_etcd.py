"""Events in an etcd of their own: switched on, moved with the plane and switched off while clients use it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.client_view import watched
from support.clients import Client
from support.conditions import until
from support.plane_lab import PlaneLab, did, started

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.kv import Get
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.units import MachineRole

pytestmark = pytest.mark.timeout(900)

NAME = "separate"
SITES = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: here}
spec: {machinesPerZone: 1, storageClasses: [{name: standard}, {name: quick}]}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: there}
spec: {machinesPerZone: 1, storageClasses: [{name: standard}, {name: quick}]}
"""
#: What is read back as the client wrote it.
EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "type": "Normal",
    "reason": "Tested",
    "message": "a test wrote it",
    "involvedObject": {"kind": "Namespace", "name": "default", "namespace": "default"},
}


def declared(lab: PlaneLab, **events: Any) -> Path:
    """A file that declares the plane with its events so."""
    document = yaml.safe_load(lab.run("get", NAME, "-o", "yaml").out)
    document.pop("status", None)
    document["metadata"] = {"name": NAME}
    document["spec"]["etcd"]["events"] = events
    return lab.file(yaml.safe_dump(document))


def write(lab: PlaneLab, client: Client, name: str) -> None:
    event = {**EVENT, "metadata": {"name": name, "namespace": "default"}}
    lab.kubectl(client, "create", "-f", "-", stdin=json.dumps(event))


def events(lab: PlaneLab, client: Client) -> set[str]:
    """Those that a test wrote, as clients see them."""
    found = json.loads(lab.kubectl(client, "get", "events", "-n", "default", "-o", "json"))
    return {each["metadata"]["name"] for each in found["items"] if each["reason"] == EVENT["reason"]}


def holds(lab: PlaneLab, name: str) -> set[Cluster]:
    """The clusters in which an event is stored."""

    async def asked(plane: Plane) -> set[Cluster]:
        tls = ClientTls(ca=plane.secrets.etcd_ca.bundle, client=plane.secrets.etcd_manager)
        found: set[Cluster] = set()
        for cluster in Cluster:
            for url in client_urls(plane, cluster)[:1]:
                async with EtcdMember(url, tls) as member:
                    if (await member.kv.get(Get(key=f"/registry/events/default/{name}".encode()))).items:
                        found.add(cluster)
        return found

    return lab.opened(NAME, asked)


def left(lab: PlaneLab, site: str) -> list[str]:
    """What there is of the events' etcd on the machines of a site: units, volumes, and ports that something uses."""

    async def looked(driver: Any) -> list[str]:
        found: list[str] = []
        for machine in await driver.machines():
            if machine.role is MachineRole.CONTROL:
                found += [each.name for each in await driver.units(machine.name) if each.name.endswith("-etcd-events")]
                found += [each.name for each in await driver.volumes(machine.name) if "-events-" in each.name]
                found += map(str, await driver.ports_in_use(machine.name, (2382, 2383, 2384)))
        return found

    return lab.on_site(site, looked)


def switched(lab: PlaneLab, label: str, path: Path, kill_after: int) -> None:
    """Apply a file while clients use the plane; the driver is killed when so many steps have begun."""
    after = lab.last_entry(NAME)
    with watched(lab, NAME, label):
        driver = lab.start("apply", "-f", str(path))
        lab.journal(NAME, lambda seen: started(seen) >= kill_after, "it is under way", after=after, during=driver)
        driver.kill()
        lab.run("wait", NAME)
    lab.status(NAME, code=0)


def created(lab: PlaneLab, replicas: int, **events: Any) -> Client:
    """The plane at the first of two sites, with its events so; and a client of it."""
    lab.run("apply", "-f", str(lab.file(SITES)))
    spec = {"replicas": replicas, "placement": {"site": "here"}, "etcd": {"events": events}}
    document = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane", "metadata": {"name": NAME}}
    lab.run("apply", "-f", str(lab.file(yaml.safe_dump({**document, "spec": spec}))))
    return lab.client(NAME)


@pytest.mark.soak  # tests/loop has it at any call; with real programs they move in the next one
def test_events_get_an_etcd_of_their_own_and_go_back_while_clients_go_on(lab: PlaneLab) -> None:
    client = created(lab, 3, separate=False)
    write(lab, client, "before")
    assert holds(lab, "before") == {Cluster.MAIN}

    path = declared(lab, separate=True, storageClass="quick", quotaBytes="1Gi")
    shown = lab.run("plan", NAME, "-f", str(path)).out
    assert "spec.etcd.events.separate: false" in shown
    assert "events are not copied" in shown
    assert "start etcd-events of here-1" in shown, "its steps are shown"
    replicas = [each.name for each in lab.plane(NAME).status.memory.replicas]
    switched(lab, "on", path, kill_after=7)
    assert [each.name for each in lab.plane(NAME).status.memory.replicas] == replicas, "nobody was exchanged"
    assert sorted(each["events"]["member"] for each in lab.status(NAME)["members"]) == ["leader", "voter", "voter"]
    write(lab, client, "separate")
    assert holds(lab, "separate") == {Cluster.EVENTS}
    assert "separate" in events(lab, client)

    switched(lab, "off", declared(lab, separate=False), kill_after=7)
    write(lab, client, "after")
    assert holds(lab, "after") == {Cluster.MAIN}
    assert until(lambda: not left(lab, "here"), "nothing is left of the events' etcd")
    assert all(each["events"] is None for each in lab.status(NAME)["members"])


def test_events_in_an_etcd_of_their_own_move_with_the_plane_that_becomes_highly_available(lab: PlaneLab) -> None:
    client = created(lab, 1, separate=True, storageClass="quick", quotaBytes="1Gi")
    memory = lab.plane(NAME).status.memory
    assert {each.events.storage_class for each in memory.replicas if each.events is not None} == {"quick"}
    write(lab, client, "separate")
    assert holds(lab, "separate") == {Cluster.EVENTS}

    after = lab.last_entry(NAME)
    with watched(lab, NAME, "moves"):
        lab.run("migrate", NAME, "--to", "there", "--replicas", "3", "--yes")
    entries = lab.read(lambda home: home.store.journal(NAME, after=after))
    assert did(entries, "swap-voters", text="of the events' etcd"), "it has a quorum of its own to keep"
    fact = lab.status(NAME, code=0)
    assert fact["site"] == fact["quorumAt"] == "there"
    assert {each["events"]["health"] for each in fact["members"]} == {"healthy"}
    for members in (
        [each["member"] for each in fact["members"]],
        [each["events"]["member"] for each in fact["members"]],
    ):
        assert sorted(members) == ["leader", "voter", "voter"], "nothing that was lent is left"
    assert "separate" in events(lab, client), "its data came along"
    write(lab, client, "moved")
    assert holds(lab, "moved") == {Cluster.EVENTS}
    assert left(lab, "here") == []
