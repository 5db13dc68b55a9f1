"""A load balancer of the user's own, which is an Envoy here: what is known of it, and how it comes to be as wanted."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.endpoint_lab import SERVER_NAME, eventually, loopback
from support.lb_lab import EnvoyLab, envoy_lab

from quarterdeck.components.traffic.envoy import backends_file
from quarterdeck.endpoint.balancers.external import BalancerCommand, ExternalBalancer, Outside
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.endpoints import BackendAddress, BackendsMust

#: Of the user's: sets their Envoy to what it reads, by its files.
SETS = """
import json, os, sys
wanted = json.load(sys.stdin)
with open(sys.argv[1] + ".asked", "w") as asked:
    json.dump(wanted, asked)
endpoints = [
    {"endpoint": {"hostname": each["name"], "address": {"socket_address": {
        "address": each["address"], "port_value": each["port"]}}}}
    for each in wanted["backends"]
]
kind = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
resource = {"@type": kind, "cluster_name": "apiservers", "endpoints": [{"lb_endpoints": endpoints}]}
with open(sys.argv[1] + ".new", "w") as new:
    json.dump({"resources": [resource]}, new)
os.replace(sys.argv[1] + ".new", sys.argv[1])
"""


@dataclass
class TheirLab:
    """The user's load balancer, with a person at it (``theirs``), and what quarterdeck makes of it (``balancer``)."""

    envoy: EnvoyLab
    balancer: ExternalBalancer

    async def add(self, *names: str) -> dict[str, BackendAddress]:
        return {name: await self.envoy.add(name) for name in names}

    async def person_sets(self, backends: dict[str, BackendAddress]) -> None:
        await self.envoy.balancer.apply(backends)

    async def seen(self, *names: str) -> None:
        async def is_seen() -> bool:
            status = await self.balancer.observe()
            return status.backends == set(names) and not status.unsure

        await eventually(is_seen, within=20.0)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[TheirLab]:
    async with envoy_lab(tmp_path) as envoy:
        at = envoy.balancer.address
        await envoy.balancer.apply({})
        outside = Outside(address=at, trust=envoy.trust, server_name=SERVER_NAME)
        yield TheirLab(envoy, ExternalBalancer(name="demo", outside=outside, at=(at,), patience=10.0))


def set_by_command(lab: TheirLab, folder: Path, script: str = SETS) -> BalancerCommand:
    program = folder / "sets.py"
    program.write_text(script)
    file = backends_file(lab.envoy.balancer.settings, {}).path
    lab.balancer.command = BalancerCommand(words=(sys.executable, str(program), str(file)))
    return lab.balancer.command


async def test_a_load_balancer_that_leads_to_nobody_does_not_run(lab: TheirLab) -> None:
    assert not (await lab.balancer.observe()).running
    assert not lab.balancer.can_hold


async def test_a_person_is_asked_until_it_is_seen_to_send_to_all_that_it_should(lab: TheirLab) -> None:
    three = await lab.add("r1", "r2", "r3")
    asked = await lab.balancer.apply(three)
    assert isinstance(asked, BackendsMust)
    assert asked.wanted == tuple(sorted(three.items()))
    await lab.person_sets({name: three[name] for name in ("r1", "r2")})
    await lab.seen("r1", "r2")
    again = await lab.balancer.apply(three)
    assert isinstance(again, BackendsMust)
    assert "led to r1, r2" in again.seen
    await lab.person_sets(three)
    await lab.envoy.healthy("r1", "r2", "r3")
    assert await lab.balancer.apply(three) is None


async def test_a_backend_counts_until_it_is_surely_out(lab: TheirLab) -> None:
    three = await lab.add("r1", "r2", "r3")
    await lab.person_sets(three)
    await lab.envoy.healthy("r1", "r2", "r3")
    await lab.balancer.look(three)
    await lab.seen("r1", "r2", "r3")
    await lab.person_sets({name: three[name] for name in ("r1", "r2")})
    assert (await lab.balancer.observe()).backends == {"r1", "r2", "r3"}, "a few connections say nothing"
    await lab.seen("r1", "r2")


async def test_one_of_which_nothing_was_known_is_known_in_one_look(lab: TheirLab) -> None:
    three = await lab.add("r1", "r2", "r3")
    await lab.person_sets({name: three[name] for name in ("r1", "r3")})
    await lab.envoy.healthy("r1", "r3")
    status = await lab.balancer.look(three)
    assert (status.running, status.backends, status.healthy) == (True, {"r1", "r3"}, {"r1", "r3"})
    assert not status.unsure


async def test_a_replica_that_has_a_new_certificate_is_known_again(lab: TheirLab) -> None:
    two = await lab.add("r1", "r2")
    await lab.person_sets(two)
    await lab.envoy.healthy("r1", "r2")
    await lab.balancer.look(two)
    backend = lab.envoy.backends["r1"]
    await backend.stop()
    backend.context = lab.envoy.authority.server(ip=backend.ip)
    await backend.start()
    await lab.envoy.healthy("r1", "r2")
    await lab.seen("r1", "r2")


async def test_one_that_always_leads_here_to_the_same_is_not_taken_for_seen(lab: TheirLab) -> None:
    two = await lab.add("r1", "r2")
    await lab.person_sets({"r1": two["r1"]})
    await lab.envoy.healthy("r1")
    status = await lab.balancer.look(two)
    assert (status.backends, status.unsure) == ({"r1"}, {"r2"})
    asked = await lab.balancer.apply(two)
    assert isinstance(asked, BackendsMust)
    assert "in turns" in asked.seen
    assert await lab.balancer.apply({"r1": two["r1"]}) is None, "no other one is wanted"


async def test_a_command_of_the_users_sets_it(lab: TheirLab, tmp_path: Path) -> None:
    set_by_command(lab, tmp_path)
    three = await lab.add("r1", "r2", "r3")
    assert await lab.balancer.apply(three) is None
    assert (await lab.balancer.observe()).backends == {"r1", "r2", "r3"}
    assert await lab.balancer.apply({"r3": three["r3"]}) is None
    assert (await lab.balancer.observe()).backends == {"r3"}
    file = Path(str(backends_file(lab.envoy.balancer.settings, {}).path))
    asked = json.loads(file.with_name(f"{file.name}.asked").read_text())
    assert asked["backends"] == [{"name": "r3", "address": three["r3"].ip, "port": three["r3"].port}]
    assert asked["healthCheck"]["path"] == "/readyz"
    assert asked["listen"] == [{"address": lab.balancer.address.ip, "port": lab.balancer.address.port}]


async def test_connections_to_one_that_was_taken_out_live_on(lab: TheirLab, tmp_path: Path) -> None:
    set_by_command(lab, tmp_path)
    two = await lab.add("r1", "r2")
    await lab.balancer.apply({"r1": two["r1"]})
    client = await lab.envoy.connect()
    assert client is not None
    await lab.balancer.apply({"r2": two["r2"]})
    assert await client.ask() == "r1"


async def test_a_command_that_fails_is_said_and_run_again(lab: TheirLab, tmp_path: Path) -> None:
    two = await lab.add("r1", "r2")
    set_by_command(lab, tmp_path, "import sys; sys.exit('no such pool')")
    with pytest.raises(Unavailable, match="ended with 1: no such pool"):
        await lab.balancer.apply(two)
    set_by_command(lab, tmp_path, "import sys; sys.stdin.read()")
    lab.balancer.patience = 0.5
    with pytest.raises(TimedOut, match="led to no apiserver"):
        await lab.balancer.apply(two)
    lab.balancer.command = BalancerCommand(words=("/nonexistent/lb",))
    with pytest.raises(Unavailable, match="No such file"):
        await lab.balancer.apply(two)
    set_by_command(lab, tmp_path)
    lab.balancer.patience = 10.0
    assert await lab.balancer.apply(two) is None


async def test_it_is_done_with_once_it_leads_to_none_of_the_planes(lab: TheirLab, tmp_path: Path) -> None:
    one = await lab.add("r1")
    await lab.person_sets(one)
    await lab.envoy.healthy("r1")
    await lab.balancer.look(one)
    asked = await lab.balancer.remove()
    assert isinstance(asked, BackendsMust)
    assert not asked.wanted
    set_by_command(lab, tmp_path)
    assert await lab.balancer.remove() is None
    assert not (await lab.balancer.observe()).running


async def test_a_load_balancer_that_says_nothing_is_not_one_that_leads_nowhere(lab: TheirLab) -> None:
    ip = loopback()
    with socket.create_server((ip, 0)) as deaf:
        at = BackendAddress(ip, deaf.getsockname()[1])
        lab.balancer.outside = Outside(address=at, trust=lab.envoy.trust, server_name=SERVER_NAME)
        with pytest.raises(Unavailable, match="no answer"):
            await lab.balancer.observe()
