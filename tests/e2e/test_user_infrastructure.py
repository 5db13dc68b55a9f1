"""Planes on hosts of people who have storage and load balancers of their own: clients come through these, set by a
command and by a person, and a quorum that is lost with two machines comes back from the storage.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.client_view import CLIENTS, watched
from support.conditions import CHANGE, until
from support.hosts_lab import LabHost, why_not
from support.hosts_planes import HostsPlanes, hosts_planes
from support.lab_storage import commands
from support.own_balancer import OwnBalancer, envoy, own_balancer
from support.plane_lab import Done, PlaneLab

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.sites.netns.layout import CLIENT_ADDRESS

#: A soak: the contract suites have each part, test_reattachment the rescue, and test_hosts a plane on hosts.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

NAME = "demo"
PORT = 6443
#: Of the person's load balancer, beside that of the other one, where clients are.
PERSONS = "10.89.0.77"
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {NAME}}}
spec:
  replicas: 3
  placement: {{site: north, storageClass: san}}
  healing: {{budget: 20}}
"""


@dataclass(frozen=True)
class Own:
    """A home with a plane at site north, whose load balancer a command sets; a person sets that of site south."""

    hosts: HostsPlanes
    by_command: OwnBalancer
    by_person: OwnBalancer

    @property
    def planes(self) -> PlaneLab:
        return self.hosts.planes

    def with_a_person(self, *argv: str) -> Done:
        """A command to its end, with somebody who does at south's load balancer what it asks for."""
        command = self.planes.start(*argv)
        end = time.monotonic() + CHANGE
        while command.running and time.monotonic() < end:
            self.by_person.as_a_person(command.output)
            time.sleep(0.2)
        return command.end(1.0)


def machines() -> dict[LabHost, tuple[str, ...]]:
    """Two sites of three zones, one of which has two machines more."""
    found: dict[LabHost, tuple[str, ...]] = {}
    for site in ("north", "south"):
        found |= {LabHost(f"{site}-{zone}", site, zone): ("control",) for zone in "bc"}
        found[LabHost(f"{site}-a", site, "a")] = ("control", "dns")
    return found | {LabHost(f"north-spare-{zone}", "north", zone): ("control",) for zone in "bc"}


@pytest.fixture(scope="module")
def own() -> Iterator[Own]:
    if why := why_not():
        pytest.skip(why)
    program = envoy()
    with hosts_planes(machines()) as hosts:
        device = subprocess.check_output(("ip", "-o", "route", "get", hosts.hosts.address("north-a")), text=True)
        name = device.split(" dev ")[1].split()[0]
        subprocess.run(("ip", "address", "add", f"{PERSONS}/24", "dev", name), check=True)
        lab = hosts.planes
        with (
            own_balancer(program, lab.root / "by-command", CLIENT_ADDRESS, PORT) as by_command,
            own_balancer(program, lab.root / "by-person", PERSONS, PORT) as by_person,
        ):
            storage = commands(hosts.hosts.folder)
            classes = [
                {"name": "standard"},
                {"name": "san", "path": "/srv/san", "attach": [*storage.attach], "detach": [*storage.detach]},
            ]
            external = {"addresses": [by_command.address], "command": by_command.command}
            hosts.add_site("north", edge={"external": external}, storageClasses=classes)
            hosts.add_site("south", edge={"external": {"addresses": [by_person.address]}}, storageClasses=classes)
            lab.run("create", "first", "--site", "north", "--replicas", "1")  # programs are sent to one, and shared
            hosts.share_programs()
            lab.run("delete", "first", "--yes")
            lab.run("apply", "-f", str(lab.file(PLANE)), "--yes")
            yield Own(hosts, by_command, by_person)


def test_a_quorum_that_was_lost_with_two_hosts_comes_back_from_the_storage_with_all_that_it_had(own: Own) -> None:
    lab, machines = own.planes, own.hosts.hosts
    client = lab.client(NAME)
    until(lambda: client.writes("written-before-they-died"), "a write is acknowledged")
    was = lab.plane(NAME).status.memory
    were = {each.name: each.machine for each in was.replicas}
    dead = {name: machine for name, machine in were.items() if machine != "north-a"}
    since = time.monotonic()
    machines.power_off(*dead.values())
    until(lambda: "may still serve others" in str(lab.status(NAME)["waiting"]), "it is said why nothing is done")
    lab.refused(
        "recover", NAME, "--yes", code=5, says=["--even-if-others-live"]
    )  # silence is no death: a person's word is
    done = lab.run("recover", NAME, "--even-if-others-live", "--yes")
    print(f"\n{done}\nas wanted {time.monotonic() - since:.1f} s after two hosts died")
    memory = lab.plane(NAME).status.memory
    are = {each.name: each.machine for each in memory.replicas}
    assert (memory.epoch, memory.condemned, set(are)) == (was.epoch, (), set(were)), "as who they were"
    assert {are[name] for name in dead} == {"north-spare-b", "north-spare-c"}
    until(lambda: client.writes("written-afterwards"), "another write is acknowledged")
    assert {"written-before-they-died", "written-afterwards"} <= client.names("configmaps")
    machines.power_on(*dead.values())
    lab.run("wait", NAME)
    assert lab.plane(NAME).status.memory.left == ()
    for machine in dead.values():
        left = machines.sh(machine, "systemctl list-units --all --plain --no-legend 'quarterdeck-demo-*'")
        assert left == "", f"nothing of it is left on {machine}"


def test_what_a_person_is_asked_for_at_their_load_balancer_is_waited_for_and_clients_come_through(own: Own) -> None:
    lab = own.planes
    with watched(lab, NAME, "own") as clients:
        since = time.time()
        done = own.with_a_person("migrate", NAME, "--to", "south", "--yes")
        assert done.code == 0, str(done)
        # Nobody can have such a load balancer hold its clients while leadership goes over and apiservers end.
        clients.excuse("under way then", since=since, until=time.time(), most=3 * CLIENTS)
        clients.goes_on("through the person's")
    fact = lab.status(NAME, code=0)
    assert fact["site"] == fact["quorumAt"] == fact["nameLeadsTo"] == "south"
    members = {each["replica"] for each in fact["members"]}
    assert (own.by_command.backends(), set(own.by_person.backends())) == ([], members)


def test_the_way_back_is_by_the_command_alone(own: Own) -> None:
    lab = own.planes
    assert lab.plane(NAME).spec.placement.site == "south"
    done = own.with_a_person("migrate", NAME, "--to", "north", "--yes")
    assert done.code == 0, str(done)
    fact = lab.status(NAME, code=0)
    assert (own.by_person.backends(), set(own.by_command.backends())) == (
        [],
        {each["replica"] for each in fact["members"]},
    )
    done = lab.run("delete", NAME, "--yes")
    assert own.by_command.backends() == [], str(done)
    assert lab.read(lambda home: home.store.list(ControlPlane)) == ()
