"""An address that is its only replica's own, and the load balancer's once there are others: clients never notice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from support.client_view import watched
from support.conditions import until
from support.plane_lab import PlaneLab, plane_lab

from quarterdeck.sites.netns.lab import available
from quarterdeck.sites.netns.layout import led_addresses
from quarterdeck.sites.vrrp import why_not_here

pytestmark = [pytest.mark.netns, pytest.mark.timeout(600)]

NAME = "own"
SITE = """
apiVersion: quarterdeck.dev/v1alpha1
kind: Site
metadata: {name: n1}
spec: {isolation: netns, machinesPerZone: 2}
"""
ADDRESS = led_addresses(1)[0]
PLANE = f"""
apiVersion: quarterdeck.dev/v1alpha1
kind: ControlPlane
metadata: {{name: {NAME}}}
spec:
  replicas: 1
  placement: {{site: n1}}
  endpoint: {{mode: address, address: {ADDRESS}, leadsTo: promoted}}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[PlaneLab]:
    allowed, reason = asyncio.run(available())
    if not allowed:
        pytest.skip(f"this host does not allow network namespaces: {reason}")
    if missing := why_not_here():
        pytest.skip(missing)
    with plane_lab() as made:
        made.run("apply", "-f", str(made.file(SITE)))
        yield made


def balancers(lab: PlaneLab) -> list[str]:
    return [each["site"] for each in lab.status(NAME, code=0)["loadBalancers"] if each["running"]]


def test_the_address_goes_to_a_load_balancer_with_the_second_replica_and_back_with_the_last_but_one(
    lab: PlaneLab,
) -> None:
    lab.run("apply", "-f", str(lab.file(PLANE)))
    assert lab.status(NAME, code=0)["nameLeadsTo"] == "the apiservers"
    assert balancers(lab) == []
    with watched(lab, NAME, "grows") as clients:
        lab.run("scale", NAME, "--replicas", "3", "--yes")
        assert (lab.status(NAME, code=0)["nameLeadsTo"], balancers(lab)) == ("n1", ["n1"])
        clients.goes_on("behind the load balancer")
        lab.run("scale", NAME, "--replicas", "1", "--yes")
        assert (lab.status(NAME, code=0)["nameLeadsTo"], balancers(lab)) == ("the apiservers", [])
        clients.goes_on("at the only replica")


@pytest.mark.soak
def test_a_single_replica_is_exchanged_and_its_machine_dies_and_comes_back(lab: PlaneLab) -> None:
    if not lab.planes():
        lab.run("apply", "-f", str(lab.file(PLANE)))
    (before,) = lab.plane(NAME).status.memory.replicas
    with watched(lab, NAME, "exchanged") as clients:
        lab.run("replica", "replace", NAME, before.name, "--yes")
        (after,) = lab.plane(NAME).status.memory.replicas
        assert after.machine != before.machine
        assert (lab.status(NAME, code=0)["nameLeadsTo"], balancers(lab)) == ("the apiservers", [])
        clients.goes_on("at another machine")
    client = lab.client(NAME)
    lab.kill_machine("n1", after.machine)
    assert not client.writes("while-it-is-off")
    lab.boot_machine("n1", after.machine)
    until(lambda: client.writes("when-it-is-back"), "a write is acknowledged")
    lab.run("wait", NAME)
    assert (lab.status(NAME, code=0)["nameLeadsTo"], balancers(lab)) == ("the apiservers", [])
