"""Real worker nodes of a plane on machines that are reached over ssh, while it moves, is scaled and loses a machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from support.conditions import until
from support.hosts_lab import LabHost, why_not
from support.hosts_planes import HostsPlanes, hosts_planes
from support.nodes_lab.continuity import Nodes, used
from support.nodes_lab.nodes import KUBELET, joined
from support.nodes_lab.programs import Programs, programs
from support.nodes_lab.streams import streams
from support.plane_lab import PlaneLab, managed

from quarterdeck.api.site import AddressSpace

#: A soak: nodes are shown by test_nodes, and hosts by test_hosts; both together take many minutes.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

NAME = "crewed"
SITES = ("north", "south")
KUBEADM, ALONE = ("node-1",), "node-2"
#: Seconds until nobody waits any more for a machine that says nothing.
SILENT = 20.0
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {NAME}}}
spec:
  replicas: 3
  placement: {{site: north}}
  healing: {{budget: 9}}
  nodes:
    kubeletConfiguration: {KUBELET}
"""


def machines() -> dict[LabHost, tuple[str, ...]]:
    """Two sites of three zones, each with an edge that is a DNS server as well; the second one has a spare machine."""
    found: dict[LabHost, tuple[str, ...]] = {}
    for site in SITES:
        found |= {LabHost(f"{site}-{zone}", site, zone): ("control",) for zone in "abc"}
        found[LabHost(f"{site}-edge", site, "a")] = ("edge", "dns")
    for zone in "abc":
        found[LabHost(f"south-spare-{zone}", "south", zone)] = ("control",)
    return found


@pytest.fixture(scope="module")
def build() -> Programs:
    """What nodes run, before the test is on a network that leads nowhere else."""
    if reason := why_not():
        pytest.skip(reason)
    return asyncio.run(programs())


@pytest.fixture(scope="module")
def kept(build: Programs) -> Iterator[HostsPlanes]:
    """A plane on them, kept by a manager."""
    del build
    with hosts_planes(machines()) as hosts:
        for site in SITES:
            hosts.add_site(site)
        lab = hosts.planes
        lab.run("create", "first", "--site", "north", "--replicas", "1")  # programs are sent to one, and shared
        hosts.share_programs()
        lab.run("delete", "first", "--yes")
        lab.run("apply", "-f", str(lab.file(PLANE)), "--yes")
        lab.run("wait", NAME)
        with managed(lab):
            yield hosts


@pytest.fixture(scope="module")
def nodes(build: Programs, kept: HostsPlanes) -> Iterator[Nodes]:
    """Nodes that have joined it, on the network that the hosts are on."""
    networks, space = kept.hosts.network.folder, AddressSpace.HOSTS
    with joined(kept.planes, NAME, build, space=space, networks=networks, by_kubeadm=KUBEADM, alone=ALONE) as made:
        yield made


def test_nodes_do_not_notice_that_a_replica_is_exchanged_on_its_own_host(kept: HostsPlanes, nodes: Nodes) -> None:
    """It has other ports than the others then: pods are led to each at its own."""
    replica = kept.planes.status(NAME)["members"][0]["replica"]
    with used(nodes) as calls:
        kept.planes.run("replica", "replace", NAME, replica, "--yes")
    assert len({port for _, port in nodes.led_to()}) == 2, nodes.led_to()
    print(f"\nan exchange on its own host: {calls}")


def test_nodes_do_not_notice_that_their_plane_moves_to_other_hosts(kept: HostsPlanes, nodes: Nodes) -> None:
    with streams(nodes) as opened:
        try:
            with used(nodes) as calls:
                kept.planes.run("migrate", NAME, "--to", "south", "--yes")
            opened.check()
        finally:
            print(f"\nstreams that were open before: {opened}")
    assert kept.planes.status(NAME, code=0)["site"] == "south"
    print(f"a migration: {calls}")


def test_nodes_do_not_notice_that_their_plane_becomes_a_single_one_and_highly_available_again(
    kept: HostsPlanes, nodes: Nodes
) -> None:
    for replicas in ("1", "3"):
        with used(nodes) as calls:
            kept.planes.run("scale", NAME, "--replicas", replicas, "--yes")
        print(f"\nto {replicas}: {calls}")


def test_nodes_do_not_notice_that_a_host_dies_and_its_replica_is_healed(kept: HostsPlanes, nodes: Nodes) -> None:
    planes = kept.planes
    lost = next(each for each in planes.status(NAME)["members"] if each["member"] == "voter")
    with used(nodes) as calls:
        since = time.time()
        kept.hosts.power_off(lost["machine"])
        calls.excuse(since, time.time() + SILENT)
        until(lambda: healed(planes, lost["replica"]), "another one serves", seconds=240.0, pause=1.0)
    print(f"\na host that died: {calls}")


def healed(planes: PlaneLab, lost: str) -> bool:
    """Whether the plane is whole, without that replica."""
    rows = planes.status(NAME)["members"]
    whole = {each["replica"] for each in rows if each["apiserver"] == "ready" and each["member"] in ("leader", "voter")}
    return len(whole) == 3 and lost not in whole
