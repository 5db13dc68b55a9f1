"""Nodes of a plane: machines that join it in one of the ways that there are, with a pod on each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from quarterdeck.api.plane.endpoint import DEFAULT_ZONE
from quarterdeck.api.site import AddressSpace
from quarterdeck.drivers.endpoints import name_servers
from quarterdeck.engine.workspace.home import Home
from support.conditions import until
from support.nodes_lab.continuity import Nodes
from support.nodes_lab.machines import NodeMachines
from support.nodes_lab.programs import Programs
from support.plane_lab import PlaneLab

#: ``spec.nodes.kubeletConfiguration`` of planes whose nodes are machines of this lab, as a flow of YAML. They have
#: cgroups of version 1, and their disk is the host's: a kubelet that counted the other files of the host would evict
#: pods where less than 15 % is free (kubernetes: pkg/kubelet/apis/config/v1beta1/defaults.go, DefaultEvictionHard).
KUBELET = json.dumps(
    {
        "failCgroupV1": False,
        "evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
    }
)


@contextmanager
def joined(
    lab: PlaneLab,
    plane: str,
    programs: Programs,
    *,
    space: AddressSpace,
    networks: Path,
    by_kubeadm: Sequence[str],
    alone: str,
) -> Iterator[Nodes]:
    """Nodes by these names while the block lasts: some by stock kubeadm, one by its kubelet ``alone``. ``networks``:
    the folder of the lab of networks that the plane of that address space is on.
    """
    names = (*by_kubeadm, alone)
    servers = _resolvers(lab, space)
    with NodeMachines(networks, names, programs, zone=DEFAULT_ZONE, resolvers=servers) as machines:
        _join(lab, plane, machines, by_kubeadm, alone)
        made = Nodes(lab, plane, machines)
        try:
            all_ready = dict.fromkeys(names, True)
            until(lambda: ready(lab, plane) == all_ready, "all nodes are ready", seconds=90.0, pause=0.3)
            made.start_pods(f"https://{plane}.{DEFAULT_ZONE}:6443")
        except AssertionError as error:
            for name in names:
                error.add_note(f"{name}:\n{machines.logs(name, 'kubelet')}\n{machines.logs(name, 'containerd', 10)}")
            raise
        yield made


def ready(lab: PlaneLab, plane: str) -> dict[str, bool | None]:
    """Which nodes the plane has, and whether each is ready."""
    return {each["name"]: each["ready"] for each in lab.run("node", "list", plane, "-o", "json").json}


def _resolvers(lab: PlaneLab, space: AddressSpace) -> tuple[str, ...]:
    """Quarterdeck's own DNS servers there (host:port)."""

    async def ask(home: Home) -> tuple[str, ...]:
        return tuple(f"{each.ip}:{each.port}" for each in await name_servers(await home.hub(space), space))

    return lab.read(ask)


def _join(lab: PlaneLab, plane: str, machines: NodeMachines, by_kubeadm: Sequence[str], alone: str) -> None:
    """Two tokens: one for all that join by kubeadm, one for the kubelet that does so by itself."""
    command = lab.run("node", "token", plane, "--ttl", "10m", "--print-join-command").out.strip()
    config, kubeconfig = lab.scratch(), lab.scratch()
    lab.run("node", "token", plane, "--ttl", "10m", "--kubeconfig", str(kubeconfig))
    config.write_text(lab.kubectl(lab.client(plane), "-n", "kube-system", "get", "configmap", "kubelet-config",
                                  "-o", "jsonpath={.data.kubelet}"))  # fmt: skip
    with ThreadPoolExecutor() as pool:
        by_itself = pool.submit(machines.bootstrap, alone, kubeconfig.read_text(), config.read_text())
        for output in pool.map(lambda name: machines.join(name, command), by_kubeadm):
            assert "This node has joined the cluster" in output
        by_itself.result()
    for each in lab.run("node", "token", "list", plane, "-o", "json").json:
        lab.run("node", "token", "delete", plane, each["name"])
