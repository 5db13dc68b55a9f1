"""A kubelet gets another certificate for itself before its own ends, and its node is ready all the time."""

from __future__ import annotations

import asyncio

import pytest
from support.conditions import until
from support.hosts_lab import why_not
from support.nodes_lab.continuity import Nodes, used
from support.nodes_lab.nodes import KUBELET, joined
from support.nodes_lab.programs import programs
from support.plane_lab import managed, plane_lab

from quarterdeck.api.site import AddressSpace

NAME = "brief"
#: Kubelets ask for the next certificate 1 to 3 minutes after they got one (70 to 90 % of its time): signers date
#: certificates of such a short time 5 minutes back (kubernetes: PermissiveSigningPolicy).
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {{name: n1}}
spec: {{isolation: netns}}
---
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {NAME}}}
spec:
  replicas: 1
  placement: {{site: n1}}
  extraArgs:
    kubeControllerManager: {{cluster-signing-duration: 4m}}
  nodes:
    kubeletConfiguration: {KUBELET}
"""


@pytest.mark.soak  # it takes as long as two certificates do, about 7 minutes
@pytest.mark.netns
@pytest.mark.timeout(1200)
def test_a_node_does_not_notice_that_its_certificate_is_exchanged_twice() -> None:
    if reason := why_not():
        pytest.skip(reason)
    build = asyncio.run(programs())
    with plane_lab() as lab:
        lab.run("apply", "-f", str(lab.file(PLANE)), "--yes")
        lab.run("wait", NAME)
        space = AddressSpace.NETNS
        with (
            managed(lab),
            joined(lab, NAME, build, space=space, networks=lab.home, by_kubeadm=(), alone="node-1") as nodes,
        ):
            before = rotations(nodes)
            with used(nodes) as calls:
                until(lambda: rotations(nodes) >= before + 2, "it rotates twice", seconds=600.0, pause=2.0)
            print(f"\n{calls}")


def rotations(nodes: Nodes) -> int:
    """How often the kubelet got another certificate for itself as a client."""
    found = nodes.machines.sh(nodes.names[0], "ls /var/lib/kubelet/pki/kubelet-client-2*.pem | wc -l")
    return int(found) - 1
