"""Real worker nodes join, by stock kubeadm or by themselves, and never notice what becomes of their plane."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator

import pytest
from support.conditions import until
from support.hosts_lab import why_not
from support.nodes_lab.continuity import Nodes, used
from support.nodes_lab.nodes import KUBELET, joined
from support.nodes_lab.programs import programs
from support.plane_lab import PlaneLab, managed, plane_lab

from quarterdeck.api.site import AddressSpace
from quarterdeck.upstream.catalog import Versions

pytestmark = [pytest.mark.netns, pytest.mark.timeout(600)]

NAME = "crewed"
KUBEADM, ALONE = ("node-1",), "node-2"
#: Seconds until nobody waits any more for a machine that says nothing: failed checks of a load balancer, then clients'
#: own deadlines.
SILENT = 20.0
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {{name: n1}}
spec: {{isolation: netns}}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {{name: n2}}
spec: {{isolation: netns}}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {NAME}}}
spec:
  replicas: 1
  placement: {{site: n1}}
  healing: {{budget: 9}}
  nodes:
    kubeletConfiguration: {KUBELET}
"""


@pytest.fixture(scope="module")
def kept() -> Iterator[PlaneLab]:
    """A plane of one replica, kept by a manager."""
    if reason := why_not():
        pytest.skip(reason)
    with plane_lab() as lab:
        lab.run("apply", "-f", str(lab.file(PLANE)), "--yes")
        lab.run("wait", NAME)
        with managed(lab):
            yield lab


@pytest.fixture(scope="module")
def nodes(kept: PlaneLab) -> Iterator[Nodes]:
    """Nodes that have joined it."""
    build = asyncio.run(programs())
    space = AddressSpace.NETNS
    with joined(kept, NAME, build, space=space, networks=kept.home, by_kubeadm=KUBEADM, alone=ALONE) as made:
        yield made


def test_nodes_join_by_kubeadm_and_by_themselves_and_run_pods(kept: PlaneLab, nodes: Nodes) -> None:
    found = kept.run("node", "list", NAME, "-o", "json").json
    assert [each["name"] for each in found] == [*KUBEADM, ALONE]
    assert {each["version"] for each in found} == {str(Versions().kubernetes.tag)}
    with used(nodes):
        pass
    requests = json.loads(kept.kubectl(nodes.client, "get", "csr", "-o", "json"))["items"]
    kinds = sorted(each["spec"]["signerName"].rpartition("/")[2] for each in requests)
    assert kinds == ["kube-apiserver-client-kubelet"] * 2 + ["kubelet-serving"] * 2
    assert all(each["status"]["certificate"] for each in requests)
    assert kept.run("node", "token", "list", NAME, "-o", "json").json == []


def test_nodes_do_not_notice_that_their_plane_becomes_highly_available_and_moves_to_another_site(
    kept: PlaneLab, nodes: Nodes
) -> None:
    with used(nodes) as calls:
        kept.run("scale", NAME, "--replicas", "3", "--yes")
        kept.run("migrate", NAME, "--to", "n2", "--yes")
    assert kept.status(NAME, code=0)["site"] == "n2"
    tell("1 -> 3, and a migration", calls.calls, calls.slowest, nodes)


@pytest.mark.soak  # what a dead machine costs clients is shown by test_healing, and this takes minutes more
def test_nodes_do_not_notice_that_a_machine_of_the_plane_dies_and_its_replica_is_healed(
    kept: PlaneLab, nodes: Nodes
) -> None:
    kept.run("scale", NAME, "--replicas", "3", "--yes")
    lost = next(each for each in kept.status(NAME)["members"] if each["member"] == "voter")
    with used(nodes) as calls:
        since = time.time()
        kept.kill_machine(lost["site"], lost["machine"])
        calls.excuse(since, time.time() + SILENT)
        until(lambda: len(serving(kept) - {lost["replica"]}) == 3, "another one serves", seconds=120.0, pause=0.5)
    tell("a machine that died", calls.calls, calls.slowest, nodes)
    print(f"failed of those that were under way: {[str(each) for each in calls.failures]}")


def serving(lab: PlaneLab) -> set[str]:
    """The replicas that vote, and whose apiserver is ready."""
    rows = lab.status(NAME)["members"]
    return {each["replica"] for each in rows if each["apiserver"] == "ready" and each["member"] in ("leader", "voter")}


def tell(what: str, calls: dict[str, int], slowest: float, nodes: Nodes) -> None:
    ends = {name: len(nodes.ends(name)) for name in nodes.names}
    print(f"\n{what}: calls {calls}, the slowest took {slowest:.1f} s; watches of pods that ended so far: {ends}")
