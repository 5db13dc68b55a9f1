"""A cloud controller manager comes to a plane that serves, does its work, and goes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.client_view import watched
from support.clients import Client
from support.cloud import BALANCER, NODE, fake_ccm
from support.conditions import until
from support.plane_lab import PlaneLab

from quarterdeck.api.operation import OperationPhase
from quarterdeck.model.components import Component

#: A soak: tests/loop has lives in which one comes and goes, test_change_in_place flags that roll and are given up.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

NAME, CLOUD = "demo", Component.CLOUD_CONTROLLER_MANAGER
#: A node as a kubelet registers it that was told of an external cloud provider, and a Service that wants an address.
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
OBJECTS = f"""
apiVersion: v1
kind: Node
metadata: {{name: in-a-cloud}}
spec: {{taints: [{{key: {TAINT}, value: "true", effect: NoSchedule}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: balanced, namespace: default}}
spec: {{type: LoadBalancer, selector: {{app: none}}, ports: [{{port: 80}}]}}
"""


def declared(lab: PlaneLab, cloud: dict[str, Any] | None) -> str:
    """A file that declares the plane with this cloud controller manager."""
    plane = lab.plane(NAME)
    spec = {**plane.spec.model_dump(mode="json", exclude_none=True), "cloudControllerManager": cloud}
    document = {"apiVersion": plane.api_version, "kind": plane.kind, "metadata": {"name": NAME}, "spec": spec}
    return str(lab.file(yaml.safe_dump(document)))


def there(lab: PlaneLab, client: Client, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.kubectl(client, "get", *what, "-o", "json"))
    return found


def units(lab: PlaneLab) -> dict[str, Path]:
    """The folders of units of cloud controller managers on machines of the plane's site."""
    return {each.name: each for each in lab.home.glob(f"sites/*/machines/*/units/*-{CLOUD}")}


@pytest.mark.soak  # test_controller_migration.py starts one on three replicas, and hands it a controller
def test_a_cloud_controller_manager_comes_acts_and_goes_while_clients_see_nothing(demo: PlaneLab) -> None:
    client, program = demo.client(NAME), asyncio.run(fake_ccm())
    cloud: dict[str, Any] = {"program": str(program), "provider": "fake", "config": "[Global]\npassword=secret\n"}
    with watched(demo, NAME, "cloud"):
        _comes(demo, client, cloud)
        _is_given_up(demo, cloud)
        # A Service that has an address is let go by its controller alone.
        demo.kubectl(client, "delete", "-f", "-", stdin=OBJECTS)
        demo.run("apply", "-f", declared(demo, None))
    assert units(demo) == {}, "with their files"
    fact = demo.status(NAME, code=0)
    assert CLOUD not in fact["leaders"]
    assert {each["components"][CLOUD] for each in fact["members"]} == {"absent"}
    demo.kubectl(client, "get", "clusterrole", "system:cloud-controller-manager", code=1)


def _comes(lab: PlaneLab, client: Client, cloud: dict[str, Any]) -> None:
    path = declared(lab, cloud)
    shown = lab.run("plan", NAME, "-f", path).out
    assert f"start {CLOUD} of" in shown
    assert "secret" not in shown
    lab.run("apply", "-f", path)
    assert len(units(lab)) == 3
    files = [each for folder in units(lab).values() for each in folder.rglob("cloud.conf")]
    assert [each.stat().st_mode & 0o777 for each in files] == [0o600] * 3
    until(lambda: lab.status(NAME)["leaders"][CLOUD], "one of them leads")
    lab.kubectl(client, "apply", "-f", "-", stdin=OBJECTS)

    def has_its_address() -> bool:
        status = there(lab, client, "service", "balanced")["status"]
        return [each["ip"] for each in status["loadBalancer"].get("ingress", ())] == [BALANCER]

    def is_known() -> bool:
        node = there(lab, client, "node", "in-a-cloud")
        addresses = [each["address"] for each in node["status"].get("addresses", ())]
        return NODE in addresses and TAINT not in {each["key"] for each in node["spec"].get("taints", ())}

    until(has_its_address, "the service controller gave the Service an address")
    until(is_known, "the node controller knows the node")


def _is_given_up(lab: PlaneLab, cloud: dict[str, Any]) -> None:
    """One that is none: nothing is changed by what cannot be started, and what ends is taken back."""
    none = lab.file("#!/bin/sh\necho error: it knows no such flags >&2\nexit 1\n")
    lab.refused("apply", "-f", declared(lab, {**cloud, "program": str(none)}), code=2, says=("is not executable",))
    none.chmod(0o755)
    done = lab.run("apply", "-f", declared(lab, {**cloud, "program": str(none)}), code=2)
    assert "it knows no such flags" in str(done)
    assert lab.operation(NAME).status.phase is OperationPhase.FAILED
