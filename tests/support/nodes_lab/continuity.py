"""What must not change on nodes, and must go on working for whoever uses them, while their plane is changed."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.model.seats import PortName
from support.clients import CONFIGMAPS, Client, Failed
from support.conditions import until
from support.nodes_lab.images import IMAGE
from support.nodes_lab.machines import NodeMachines
from support.plane_lab import PlaneLab, kubectl_program

COUNTER = "counter"
_PAUSE = 0.3
_WRITES = 0.2
_OK = 200
#: Seconds that a call of kubectl may take: longer than a load balancer takes to find out that an apiserver is gone.
_CALL = 30.0
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
#: Seconds after a change until the Service ``kubernetes`` leads to all apiservers, and to no other: what one that died
#: has left is gone after 15 (kubernetes: DefaultEndpointReconcilerTTL), and others look every 10.
_LED = 20.0


@dataclass
class Nodes:
    """The nodes of a plane, and a pod on each, as somebody sees them who has the plane's kubeconfig alone."""

    lab: PlaneLab
    plane: str
    machines: NodeMachines
    _wrote: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    written: list[int] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        return self.machines.names

    @property
    def client(self) -> Client:
        return self.lab.client(self.plane)

    def start_pods(self, server: str) -> None:
        """A pod on each node: one of its containers writes a line each second, the other one watches an object."""
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
        account = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
        rbac = "rbac.authorization.k8s.io"
        objects: list[dict[str, Any]] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": COUNTER}, "data": {"number": "0"}},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "follows"}, "rules": rules},
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": {"name": "follows"},
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "follows"},
                "subjects": account,
            },
            *(_pod(name, server) for name in self.names),
        ]
        text = "\n---\n".join(json.dumps(each) for each in objects)
        until(self._has_account, "pods have an account")
        self.lab.kubectl(self.client, "apply", "-f", "-", stdin=text)
        until(self._answer, "each kubelet answers", seconds=90.0, pause=0.3)
        until(self._runs, "a pod runs on each node", seconds=90.0, pause=0.3)

    def state(self) -> dict[str, Any]:
        """What must stay: who each node is and since when its conditions are so; each container, and how often it was
        started.
        """
        nodes = {
            each["metadata"]["name"]: (
                each["metadata"]["uid"],
                sorted((one["type"], one["status"], one["lastTransitionTime"]) for one in each["status"]["conditions"]),
                each["spec"].get("taints"),
            )
            for each in self._items("nodes")
        }
        pods = {
            (each["metadata"]["name"], one["name"]): (
                each["metadata"]["uid"],
                one["containerID"],
                one["restartCount"],
                one["state"],
            )
            for each in self._items("pods")
            for one in each["status"]["containerStatuses"]
        }
        return {"nodes": nodes, "pods": pods}

    def log_lines(self, name: str, container: str, *options: str) -> list[str]:
        """The lines that a container wrote."""
        return self.lab.kubectl(self.client, "logs", name, "-c", container, *options).splitlines()

    def write(self) -> None:
        """The next number, which all pods are to see."""
        number = next(self._wrote)
        with self.client.http() as http:
            patched = http.patch(
                f"{CONFIGMAPS}/{COUNTER}",
                json={"data": {"number": str(number)}},
                headers={"Content-Type": "application/merge-patch+json"},
            )
            patched.raise_for_status()
        self.written.append(number)

    def check_watches(self) -> None:
        """Every pod's own watch has seen every number whose write was acknowledged, in order and once. (What became of
        a write that failed nobody knows.)
        """
        last = self.written[-1]
        for name in self.names:
            until(lambda name=name: last in self._seen(name), f"{name} has seen {last}", seconds=30.0)
            seen = [each for each in self._seen(name) if each in self.written]
            assert seen == self.written, f"the pod on {name} has not seen {self.written}, but {seen}"

    def led_to(self) -> set[tuple[str, int]]:
        """The addresses and ports that the Service ``kubernetes`` leads pods to; never none."""
        with self.client.http() as http:
            answer = http.get(_SLICES, params={"labelSelector": "kubernetes.io/service-name=kubernetes"})
            answer.raise_for_status()
        found = answer.json()["items"]
        made = {
            (address, port["port"])
            for one in found
            for port in one["ports"] or ()
            for each in one["endpoints"] or ()
            for address in each["addresses"]
        }
        assert made, f"the Service kubernetes leads nowhere: {found}"
        return made

    def check_service(self) -> None:
        """The Service ``kubernetes`` leads to each apiserver of the plane that serves, and nowhere else."""
        rows = self.lab.status(self.plane)["members"]
        serving = {each["replica"] for each in rows if each["apiserver"] == "ready"}
        replicas = memory_from_status(self.lab.plane(self.plane).status.memory).replicas
        seats = [each.seat for each in replicas if each.seat is not None and each.name in serving]
        wanted = {(end.host, end.port) for end in (each.advertised(PortName.APISERVER) for each in seats)}
        until(lambda: self.led_to() == wanted, f"the Service kubernetes leads to {wanted}", seconds=_LED, pause=0.3)

    def ends(self, name: str) -> list[str]:
        """How the watches of a pod ended that did, in its own words."""
        return [each for each in self.log_lines(name, "follow") if each.startswith("ended")]

    def _seen(self, name: str) -> list[int]:
        return [int(each.removeprefix("seen ")) for each in self.log_lines(name, "follow") if each.startswith("seen ")]

    def _has_account(self) -> bool:
        return "default" in self.client.names("serviceaccounts")

    def _answer(self) -> bool:
        """Whether each kubelet can be asked for logs: one that is Ready may still wait for its serving certificate."""
        with self.client.http() as http:
            return all(http.get(f"/api/v1/nodes/{each}/proxy/healthz").status_code == _OK for each in self.names)

    def _runs(self) -> bool:
        pods = self._items("pods")
        running = [all("running" in one["state"] for one in each["status"].get("containerStatuses", [{"state": {}}]))
                   for each in pods]  # fmt: skip
        return len(running) == len(self.names) and all(running) and all(self._seen(name) for name in self.names)

    def _items(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.lab.kubectl(self.client, "get", kind, "-o", "json"))["items"]
        return found


def _pod(node: str, server: str) -> dict[str, Any]:
    image = {"image": IMAGE, "imagePullPolicy": "Never"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": node},
        "spec": {
            "nodeName": node,
            "dnsPolicy": "Default",  # the node's resolver, which knows the plane's name
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {"name": "tick", "args": ["tick"], **image},
                {"name": "follow", "args": ["follow", server, COUNTER], **image},
            ],
        },
    }


@dataclass
class Used:
    """Calls that are made again and again while the block of ``used`` lasts, and those that failed."""

    calls: dict[str, int] = field(default_factory=dict)
    failures: list[Failed] = field(default_factory=list)
    slowest: float = 0.0
    _excuses: list[tuple[float, float]] = field(default_factory=list)

    def excuse(self, since: float, until: float) -> None:
        """Calls that were under way between those times (Unix seconds) may have failed."""
        self._excuses.append((since, until))

    def check(self) -> None:
        """No other call failed."""
        bad = [each for each in self.failures if not any(each.began < end and each.at > since
                                                         for since, end in self._excuses)]  # fmt: skip
        assert not bad, f"of {self.calls}, excused {self._excuses}: {[(each.began, str(each)) for each in bad]}"
        assert all(self.calls[each] > 3 for each in ("exec", "logs", "write", "service")), self.calls


@contextmanager
def used(nodes: Nodes) -> Iterator[Used]:
    """Have somebody run programs in pods, read their logs, change what pods watch and ask where the Service
    ``kubernetes`` leads, all through the block; at its end nodes and pods are as they were before, no pod has missed
    anything, and that leads to the plane's apiservers.
    """
    before, seen, stop = nodes.state(), Used(), threading.Event()
    assert all(any(each[:2] == ("Ready", "True") for each in one[1]) for one in before["nodes"].values()), before
    turns = itertools.cycle(nodes.names)
    calls: dict[str, tuple[Callable[[], None], float]] = {
        "exec": (lambda: _exec(nodes, next(turns)), _PAUSE),
        "logs": (lambda: _logs(nodes, next(turns)), _PAUSE),
        "write": (nodes.write, _WRITES),
        "service": (lambda: _service(nodes), _PAUSE),
    }
    threads = [
        threading.Thread(target=_again, args=(name, call, pause, seen, stop), name=name, daemon=True)
        for name, (call, pause) in calls.items()
    ]
    for each in threads:
        each.start()
    try:
        until(lambda: all(seen.calls.get(name, 0) >= 2 for name in calls), "calls are made", seconds=60.0)
        yield seen
        calls_before = dict(seen.calls)
        until(lambda: all(seen.calls[name] >= calls_before[name] + 2 for name in calls), "calls go on", seconds=60.0)
    finally:
        stop.set()
        for each in threads:
            each.join(_CALL)
    assert nodes.state() == before, "nodes or pods are not as they were"
    seen.check()
    nodes.check_watches()
    nodes.check_service()


def _again(name: str, call: Callable[[], None], pause: float, seen: Used, stop: threading.Event) -> None:
    while not stop.is_set():
        began = time.time()
        try:
            call()
        except (AssertionError, httpx2.HTTPError, subprocess.TimeoutExpired) as error:
            seen.failures.append(Failed(name, str(error), began, time.time()))
        seen.slowest = max(seen.slowest, time.time() - began)
        seen.calls[name] = seen.calls.get(name, 0) + 1
        stop.wait(pause)


def _exec(nodes: Nodes, name: str) -> None:
    word = f"{time.time():.3f}"
    output = _kubectl(nodes, "exec", name, "-c", "tick", "--", "/work", "say", word)
    assert output.strip() == word, output


def _logs(nodes: Nodes, name: str) -> None:
    output = _kubectl(nodes, "logs", name, "-c", "tick", "--tail=1")
    assert re.fullmatch(r"tick \d+", output.strip()), output


def _service(nodes: Nodes) -> None:
    nodes.led_to()


def _kubectl(nodes: Nodes, *argv: str) -> str:
    done = subprocess.run(
        [kubectl_program(), "--kubeconfig", nodes.client.kubeconfig, *argv],
        capture_output=True,
        text=True,
        timeout=_CALL,
        check=False,
        env={"HOME": str(nodes.lab.root)},
    )
    assert done.returncode == 0, f"kubectl {argv[0]} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
    return done.stdout
