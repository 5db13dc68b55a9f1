"""A plane whose node-ipam-controller goes from one manager to another, and Nodes that are created all the while."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import yaml

from quarterdeck.actions.addresses import client_urls, server_address
from quarterdeck.actions.plane import Plane
from quarterdeck.api.values import DEFAULT_KUBERNETES_VERSION
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.model.components import Component
from support.clients import Client
from support.cloud import fake_ccm
from support.conditions import freeze, until
from support.plane_lab import PlaneLab

NAME, SET, LOCK = "handed", "ipam", "ipam-migration"
KUBE, CLOUD = "kube-controller-manager", "cloud-controller-manager"
#: Enough for as many Nodes as any test makes.
_RANGE = {"allocate-node-cidrs": True, "cluster-cidr": "10.128.0.0/9"}
_NODES = "/api/v1/nodes"


def declared(
    lab: PlaneLab, *, owner: str, replicas: int, site: str = "east", kubernetes: str = DEFAULT_KUBERNETES_VERSION
) -> str:
    """A file that declares the plane with the set in that manager's hands ("": nothing is said of it)."""
    spec: dict[str, Any] = {
        "kubernetesVersion": kubernetes,
        "replicas": replicas,
        "placement": {"site": site},
        "extraArgs": {"kubeControllerManager": _RANGE},
        "cloudControllerManager": {"program": str(asyncio.run(fake_ccm())), "provider": "fake", "flags": _RANGE},
    }
    if owner:
        one = {"name": SET, "lock": LOCK, "controllers": ["node-ipam-controller"], "owner": owner}
        spec["controllerSets"] = [one]
    plane = {"apiVersion": "quarterdeck.dev/v1alpha1", "kind": "ControlPlane", "metadata": {"name": NAME}, "spec": spec}
    return str(lab.file(yaml.safe_dump(plane)))


def move(owner: str) -> tuple[str, ...]:
    """The command that hands the set to a manager."""
    other = CLOUD if owner == KUBE else KUBE
    return ("controllers", "move", NAME, "--set", SET, "--from", other, "--to", owner, "--yes")


@dataclass
class NodeMaker:
    """Creates Nodes, one after another, until it is told to stop."""

    client: Client
    created: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Create them until told to stop."""
        with self.client.http() as http:
            while not self._stop.wait(0.1):
                self._create(http)

    def create(self, count: int) -> None:
        """Create so many."""
        wanted = len(self.created) + count
        with self.client.http() as http:
            while len(self.created) < wanted:
                self._create(http)

    def _create(self, http: httpx2.Client) -> None:
        """One more. A create whose answer is lost counts as done when it is told that there is one."""
        name = f"node-{len(self.created) + 1}"
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        try:
            answer = http.post(_NODES, json=body)
        except httpx2.HTTPError as error:
            self.failures.append(f"{time.time():.3f} {name}: {error!r}")
            return
        if answer.status_code in (201, 409):
            self.created.add(name)
        else:
            self.failures.append(f"{time.time():.3f} {name}: {answer.status_code} {answer.text[:200]}")

    def stop(self) -> None:
        """No more of them."""
        self._stop.set()

    def check(self) -> None:
        """Every Node that was created is there, with a pod CIDR that no other has."""
        created = set(self.created)
        until(lambda: not self.lacking(created), "every Node has a pod CIDR", seconds=60)
        found = self._cidrs()
        assert created <= found.keys(), f"lost: {created - found.keys()}"
        twice = {cidr: count for cidr, count in Counter(filter(None, found.values())).items() if count > 1}
        assert not twice, f"Nodes share {twice}"

    def _cidrs(self) -> Mapping[str, str]:
        with self.client.http(timeout=60.0) as http:
            answer = http.get(_NODES)
            answer.raise_for_status()
            return {each["metadata"]["name"]: each["spec"].get("podCIDR", "") for each in answer.json()["items"]}

    def lacking(self, created: set[str] | None = None) -> list[str]:
        """Which Nodes have no pod CIDR yet: of all, or of these."""
        wanted = self.created if created is None else created
        return [name for name, cidr in self._cidrs().items() if name in wanted and not cidr]


@contextmanager
def nodes_come(lab: PlaneLab) -> Iterator[NodeMaker]:
    """Nodes are created for as long as the block lasts; if it ends well, every one of them has its pod CIDR."""
    maker = NodeMaker(lab.client(NAME))
    thread = threading.Thread(target=maker.run, name="nodes")
    thread.start()
    try:
        until(lambda: len(maker.created) >= 3, "Nodes are created")
        yield maker
        before = len(maker.created)
        until(lambda: len(maker.created) >= before + 3, "Nodes are created still")
    finally:
        maker.stop()
        thread.join()
    maker.check()


# who holds what, and what may befall him


def held_by(lab: PlaneLab, lock: str) -> tuple[str, Component] | None:
    """The replica and the program of it that says that it holds a lock."""
    asked = [(each, Component(manager)) for each in lab.plane(NAME).status.memory.replicas for manager in (KUBE, CLOUD)]
    for replica, component in asked:
        if _leads(lab, replica.name, component, lock):
            return replica.name, component
    return None


def _leads(lab: PlaneLab, replica: str, component: Component, lock: str) -> bool:
    async def ask(plane: Plane) -> bool:
        (port,) = CATALOGUE[component].ports
        return bool(await plane.kube.leads(server_address(plane.memory.replica(replica), port.name), lock))

    return lab.opened(NAME, ask)


def pid_of(lab: PlaneLab, replica: str, component: Component) -> int:
    """The process of a replica's program."""
    found = next(each for each in lab.plane(NAME).status.memory.replicas if each.name == replica)
    return lab.pid(found.slot.site, found.machine, f"{replica}-{component}")


def owner_now(lab: PlaneLab) -> str:
    """Which manager is to run the set."""
    (found,) = lab.plane(NAME).spec.controller_sets
    return found.owner.value


def guarding(lab: PlaneLab) -> tuple[str, Component] | None:
    """Who holds the lock under which the set runs, or ran last: its own, or that of all controllers of KCM."""
    return held_by(lab, LOCK) or held_by(lab, KUBE)


@contextmanager
def frozen(pid: int, seconds: float) -> Iterator[None]:
    """A process stands still for so long, and for the block."""
    began = time.monotonic()
    freeze(pid)
    try:
        yield
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))  # it is time itself that is to pass
    finally:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, signal.SIGCONT)


def kill_holder(lab: PlaneLab) -> None:
    """kill -9 of whoever runs the set."""
    holder = guarding(lab)
    if holder is not None:
        os.kill(pid_of(lab, *holder), signal.SIGKILL)


def kill_apiserver(lab: PlaneLab) -> None:
    """kill -9 of the apiserver that whoever runs the set asks."""
    holder = guarding(lab)
    if holder is not None:
        os.kill(pid_of(lab, holder[0], Component.APISERVER), signal.SIGKILL)


def move_leader(lab: PlaneLab) -> None:
    """Another member of etcd leads."""

    async def moved(plane: Plane) -> None:
        urls = client_urls(plane)
        statuses = [await plane.etcd.status(each) for each in urls]
        leader = next(url for url, each in zip(urls, statuses, strict=True) if each.leader_id == each.member_id)
        others = [each.member_id for each in statuses if each.member_id != each.leader_id]
        await plane.etcd.move_leader(leader, random.Random(len(others)).choice(others))

    lab.opened(NAME, moved)


STRIKES: Mapping[str, Callable[[PlaneLab], None]] = {
    "the holder is killed": kill_holder,
    "the holder's apiserver is killed": kill_apiserver,
    "etcd's leader changes": move_leader,
}


def shown(lab: PlaneLab, *argv: str, code: int = 0) -> Any:
    """What a command of sets prints as JSON."""
    return json.loads(lab.run("controllers", *argv, "-o", "json", code=code).out)
