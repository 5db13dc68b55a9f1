"""How a home opens its sites of hosts: their settings, what they share, and what hosts know the home by."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.golden import Golden
from support.host_sites import host, host_site

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.api.hosts import SshLogin
from quarterdeck.api.site import AddressSpace
from quarterdeck.drivers.endpoints import DNS_PORTS, Hub
from quarterdeck.drivers.ssh import SshSites, login_of, owner_of, settings_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.places import space_of
from quarterdeck.errors import PreconditionFailed
from quarterdeck.model.capabilities import NEEDED, Capability
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.ssh.hosts import Login

RACK = host_site(host("one1", roles=["control", "edge"]), host("two2", roles=["control", "dns"]))


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    opened = await Home.open(tmp_path / "home")
    await opened.store.create(RACK)
    yield opened
    await opened.close()


def test_what_is_not_said_of_a_login_is_left_to_ssh() -> None:
    assert login_of(SshLogin(), "192.0.2.1") == Login(host="192.0.2.1")
    settings = SshLogin(host="cp1", port=2222, user="admin", identity_file="~/.ssh/id")
    identity = str(Path("~/.ssh/id").expanduser())
    assert login_of(settings, "192.0.2.1") == Login(host="cp1", port=2222, user="admin", identity=identity)


def test_machines_of_hosts_are_called_as_the_driver_calls_them() -> None:
    for each in RACK.spec.hosts:  # type: ignore[union-attr]
        settings = settings_of(each)
        assert {role: settings.machine(role) for role in settings.roles} == each.machines


def test_a_home_is_known_to_hosts_by_one_name_wherever_it_is_moved_to(tmp_path: Path) -> None:
    name = owner_of(tmp_path)
    assert owner_of(tmp_path) == name
    assert len(name) == 16
    assert (tmp_path / "owner").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["owner"], "nothing half-written is left"


def test_such_sites_do_what_planes_need_and_lend_no_addresses(tmp_path: Path) -> None:
    offered = SshSites(tmp_path).open(RACK).capabilities
    assert offered >= NEEDED
    assert not offered & {Capability.FLOATS, Capability.LEADS}


async def test_dns_servers_are_on_the_hosts_of_all_sites_that_have_the_role(tmp_path: Path) -> None:
    sites = SshSites(tmp_path)
    other = host_site(host("two9", roles=["dns"]), host("three3"), name="annex")
    hub = sites.hub(AddressSpace.HOSTS, (RACK, other))
    stands = hub._settings.stands()
    assert {name: (each.address, role) for name, (each, role) in stands.items()} == {
        "rack-two2": ("192.0.2.2", MachineRole.DNS),
        "annex-two9": ("192.0.2.9", MachineRole.DNS),
    }
    assert hub.name == "hub-ssh"
    assert DNS_PORTS[AddressSpace.HOSTS] == 53
    assert sites.hubs() == (AddressSpace.HOSTS,), "it is to be taken down once there are no planes"


async def test_without_a_host_of_that_role_no_name_can_be_kept(tmp_path: Path, golden: Golden) -> None:
    sites = SshSites(tmp_path)
    hub = sites.hub(AddressSpace.HOSTS, (host_site(host("one1")),))
    assert sites.hubs() == ()
    with golden.raises(PreconditionFailed):
        await Hub(hub, AddressSpace.HOSTS).dns()


async def test_a_plane_sees_the_sites_that_its_addresses_reach(home: Home) -> None:
    sites = await home.store.list(type(RACK))
    assert space_of(new_control_plane("demo", site="rack"), sites) is AddressSpace.HOSTS
    assert space_of(new_control_plane("demo", site="east"), sites) is AddressSpace.LOOPBACK
    _, near = await home._sites_near(new_control_plane("demo", site="east"), None)
    assert set(near) == {"east", "west"}
    _, near = await home._sites_near(new_control_plane("demo", site="rack"), None)
    assert set(near) == {"rack"}
