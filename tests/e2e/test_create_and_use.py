"""A plane is created by one command, and is a Kubernetes control plane."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.clients import Client
from support.conditions import until
from support.plane_lab import PlaneLab

from quarterdeck.actions.addresses import client_urls
from quarterdeck.actions.plane import Plane
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.kv import Get

pytestmark = [pytest.mark.smoke, pytest.mark.timeout(600)]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: web, image: registry.invalid/web}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: fake}
"""
CAPACITY = {"cpu": "8", "memory": "16Gi", "pods": "110"}


@pytest.fixture
def client(demo: PlaneLab) -> Client:
    return demo.client("demo")


def pods(demo: PlaneLab, client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(demo.kubectl(client, "get", "pods", "-l", "app=web", "-o", "json"))[
        "items"
    ]
    return found


def test_one_command_makes_three_healthy_replicas_in_three_zones(demo: PlaneLab) -> None:
    fact = demo.status("demo", code=0)
    assert fact["healthy"]
    assert (fact["voters"], fact["mayFail"], fact["quorumAt"]) == (3, 1, fact["site"])
    assert {member["zone"] for member in fact["members"]} == {"a", "b", "c"}
    assert {member["apiserver"] for member in fact["members"]} == {"ready"}
    assert fact["operation"] is fact["driver"] is None


def test_the_replicas_that_lead_controllers_and_scheduler_are_named(demo: PlaneLab) -> None:
    def leaders() -> dict[str, str]:
        seen: dict[str, str] = demo.status("demo")["leaders"]
        return seen if all(seen.values()) else {}

    leading = until(leaders, "both have a leader")
    fact = demo.status("demo")
    assert set(leading) == {"kube-controller-manager", "kube-scheduler"} == set(fact["leaderIdentities"])
    assert set(leading.values()) <= {member["replica"] for member in fact["members"]}
    shown = demo.run("status", "demo").out
    assert f"kube-scheduler led by {leading['kube-scheduler']}" in shown
    assert fact["leaderIdentities"]["kube-scheduler"] not in shown


def test_a_deployment_gets_its_pods_and_the_scheduler_binds_them(demo: PlaneLab, client: Client) -> None:
    demo.kubectl(client, "apply", "-f", "-", stdin=NODE)
    patch = {"status": {"capacity": CAPACITY, "allocatable": CAPACITY}}
    demo.kubectl(client, "patch", "node", "fake", "--subresource=status", "-p", json.dumps(patch))
    demo.kubectl(client, "apply", "-f", "-", stdin=DEPLOYMENT)

    def all_bound() -> list[dict[str, Any]]:
        seen = pods(demo, client)
        return seen if len(seen) == 3 and all("nodeName" in pod["spec"] for pod in seen) else []

    bound = until(all_bound, "three pods are made and bound")
    assert {pod["spec"]["nodeName"] for pod in bound} == {"fake"}
    assert all(pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet" for pod in bound)


def test_a_secret_is_encrypted_in_etcd(demo: PlaneLab, client: Client) -> None:
    demo.kubectl(client, "create", "secret", "generic", "hidden", "--from-literal=word=plaintext-word")

    async def stored(plane: Plane) -> bytes:
        tls = ClientTls(ca=plane.secrets.etcd_ca.bundle, client=plane.secrets.etcd_manager)
        async with EtcdMember(client_urls(plane)[0], tls) as member:
            return (await member.kv.get(Get(key=b"/registry/secrets/default/hidden"))).items[0].value

    value = demo.opened("demo", stored)
    assert value.startswith(b"k8s:enc:")
    assert b"plaintext-word" not in value
    assert "cGxhaW50ZXh0LXdvcmQ=" in demo.kubectl(client, "get", "secret", "hidden", "-o", "yaml")


def test_nobody_gets_in_without_a_certificate_but_to_ask_for_health(client: Client) -> None:
    with client.http(anonymous=True) as http:
        assert http.get("/readyz").text == "ok"
        assert http.get("/api/v1/namespaces").status_code == 401


def test_a_plane_that_is_as_wanted_has_nothing_to_do(demo: PlaneLab) -> None:
    assert "nothing to do" in demo.run("plan", "demo").out
    assert "as wanted" in demo.run("wait", "demo").out
