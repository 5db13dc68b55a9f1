"""A plane behind a fixed address: the load balancer there stays in front, and what is behind it moves."""

from __future__ import annotations

import os

import pytest
import yaml
from support.client_view import watched
from support.plane_lab import plane_lab

#: A soak: tests/model searches moves behind a fixed address, and tests/contract has the load balancer.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

#: An address of the loopback network that no other run uses at the same time.
ADDRESS = f"127.201.{os.getpid() // 250 % 250}.{os.getpid() % 250 + 1}"
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: fixed}}
spec:
  replicas: 1
  placement: {{site: east}}
  endpoint: {{mode: address, address: {ADDRESS}}}
"""


def test_clients_of_a_fixed_address_go_on_while_the_plane_moves_behind_it() -> None:
    with plane_lab() as lab:
        lab.run("apply", "-f", str(lab.file(PLANE)))
        client = lab.client("fixed")
        (cluster,) = yaml.safe_load(client.kubeconfig.read_text())["clusters"]
        assert cluster["cluster"]["server"].startswith(f"https://{ADDRESS}:")
        with watched(lab, "fixed", "fixed") as clients:
            lab.run("migrate", "fixed", "--to", "west", "--yes")
            clients.goes_on("at the target")
        fact = lab.status("fixed", code=0)
        assert fact["site"] == fact["quorumAt"] == "west"
        assert [each["site"] for each in fact["loadBalancers"] if each["running"]] == ["east"]
        lab.run("delete", "fixed", "--yes")
