"""Load balancers of a plane at sites of hosts: their own addresses, ones that go over, and the user's own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from support.resources import with_spec

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.endpoint import EndpointMode, LeadsTo
from quarterdeck.api.plane.memory import MemoryStatus, MomentStatus
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.traffic.keepalived import KEEPALIVED
from quarterdeck.endpoint.balancers.envoy import EnvoyBalancer
from quarterdeck.endpoint.balancers.external import ExternalBalancer
from quarterdeck.endpoint.port import LoadBalancer
from quarterdeck.endpoint.promoted_address import PromotedAddress
from quarterdeck.engine.workspace.home import _balancers, _promoted
from quarterdeck.http import Http
from quarterdeck.model.endpoints import BackendAddress, ExternalLoadBalancer
from quarterdeck.model.units import MachineRole, MachineState
from quarterdeck.pki.issuance import create_plane_secrets
from quarterdeck.sites.ssh.connections import HostConnections
from quarterdeck.sites.ssh.hosts import Login, SshHost, SshSettings, machine_of
from quarterdeck.sites.ssh.site import open_ssh_site

EDGES = tuple(
    SshHost(
        name=f"e{each}", address=f"192.0.2.{each}", zone="a", roles=(MachineRole.EDGE,), login=Login(host=f"e{each}")
    )
    for each in (1, 2)
)
VIPS = ("192.0.2.101", "192.0.2.102")


@pytest.fixture(scope="module")
def secrets() -> SharedSecrets:
    return create_plane_secrets("demo", datetime.now(UTC))


def plane(address: str | None = None) -> ControlPlane:
    made = new_control_plane("demo", site="rack")
    if address is None:
        return made
    endpoint = made.spec.endpoint.model_copy(update={"mode": EndpointMode.ADDRESS, "address": address})
    return with_spec(made, endpoint=endpoint)


def balancers(
    settings: SshSettings, secrets: SharedSecrets, wanted: ControlPlane, *others: ControlPlane
) -> dict[str, LoadBalancer]:
    site = open_ssh_site(settings, HostConnections("tests"))
    machines = {("rack", name): machine_of(settings, name, MachineState.UP) for name in settings.stands()}
    return _balancers(wanted, others, secrets, {"rack": site}, machines, Http())["rack"]


def envoys(
    floating: tuple[str, ...], secrets: SharedSecrets, wanted: ControlPlane, *others: ControlPlane
) -> dict[str, EnvoyBalancer]:
    settings = SshSettings(name="rack", hosts=EDGES, floating_addresses=floating)
    found = balancers(settings, secrets, wanted, *others)
    return {name: each for name, each in found.items() if isinstance(each, EnvoyBalancer)}


def test_each_edge_has_its_own_address_where_none_floats(secrets: SharedSecrets) -> None:
    found = envoys((), secrets, plane())
    assert {name: (each.address.ip, each.floats) for name, each in found.items()} == {
        "e1": ("192.0.2.1", False),
        "e2": ("192.0.2.2", False),
    }
    assert all(each.settings.ready_port is None for each in found.values())


def test_edges_have_addresses_that_float_by_turns_and_listen_at_all(secrets: SharedSecrets) -> None:
    found = envoys(VIPS, secrets, plane())
    assert [each.address.ip for each in found.values()] == [*VIPS]
    for name, each in found.items():
        assert each.floats
        assert each.settings.floating == VIPS
        assert each.settings.address == next(host.address for host in EDGES if host.name == name)
        assert each.floating is not None
        assert (each.floating.unit.name, each.floating.named) == (KEEPALIVED, name)
        assert each.floating.watched is not None
        ports = f"{each.settings.ready_port} {each.settings.port}\n"
        assert each.floating.watched.content.decode() == ports


def test_an_edge_without_the_load_balancers_of_other_planes_is_known_not_to_serve(secrets: SharedSecrets) -> None:
    def other(name: str, address: str | None = None, **memory: Any) -> ControlPlane:
        made = plane(address)
        status = made.status.model_copy(update={"memory": MemoryStatus(**memory), "port_offset": 10})
        metadata = made.metadata.model_copy(update={"name": name})
        return made.model_copy(update={"metadata": metadata, "status": status})

    others = (
        other("named", served_site="rack"),
        other("held", held=(MomentStatus(name="rack", time=1.0),)),
        other("by-one", VIPS[0], served_site="rack"),
        other("away", served_site="annex"),
        other("fixed", "192.0.2.200", served_site="rack"),
    )
    for each in envoys(VIPS, secrets, plane(), *others).values():
        assert each.floating is not None
        assert [file.path.name for file in each.floating.expected] == ["named", "held", "by-one"]
        assert each.floating.expected[0].content.decode() == "26543 6543\n"
    for each in envoys((), secrets, plane(), *others).values():
        assert each.floating is None


def test_edges_share_one_address(secrets: SharedSecrets) -> None:
    found = envoys(VIPS[:1], secrets, plane())
    assert [each.address.ip for each in found.values()] == [VIPS[0]] * 2
    assert {each.settings.floating for each in found.values()} == {VIPS[:1]}


def test_a_fixed_address_that_floats_is_on_all_edges_and_any_other_on_one(secrets: SharedSecrets) -> None:
    found = envoys(VIPS, secrets, plane(VIPS[1]))
    assert [(each.address.ip, each.floats) for each in found.values()] == [(VIPS[1], True)] * 2
    (only,) = envoys(VIPS, secrets, plane("192.0.2.200")).values()
    assert (only.address.ip, only.floats) == ("192.0.2.200", False)


def test_one_of_the_users_own_is_there_by_each_of_its_addresses(secrets: SharedSecrets) -> None:
    outside = ExternalLoadBalancer(("198.51.100.1", "198.51.100.2"), ("/usr/local/bin/set-lb",))
    settings = SshSettings(name="rack", hosts=(), external=outside)
    found = balancers(settings, secrets, plane())
    assert [*found] == [*outside.addresses]
    one, two = found.values()
    assert isinstance(one, ExternalBalancer)
    assert isinstance(two, ExternalBalancer)
    assert (one.address, two.address) == (BackendAddress("198.51.100.1", 6443), BackendAddress("198.51.100.2", 6443))
    assert one.command is two.command, "it is run once for both"
    assert not one.can_hold


def test_a_promoted_address_is_had_by_the_edge_of_a_host_and_not_by_its_dns_server() -> None:
    """Both are machines at the host's address, and the load balancer looks for the unit on its own machine."""
    hosts = (
        replace(EDGES[0], roles=(MachineRole.EDGE, MachineRole.DNS)),
        replace(EDGES[1], roles=(MachineRole.CONTROL,)),
    )
    settings = SshSettings(name="rack", hosts=hosts, promoted_addresses=("192.0.2.200",))
    wanted = plane("192.0.2.200")
    endpoint = wanted.spec.endpoint.model_copy(update={"leads_to": LeadsTo.PROMOTED})
    wanted = with_spec(wanted, endpoint=endpoint)
    site = open_ssh_site(settings, HostConnections("tests"))
    machines = {("rack", name): machine_of(settings, name, MachineState.UP) for name in settings.stands()}
    found = _promoted(wanted, {"rack": site}, machines)
    assert isinstance(found, PromotedAddress)
    assert [each.name for each in found.machines] == ["e1-edge", "e2"]
