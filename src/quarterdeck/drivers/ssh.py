"""Sites of ssh hosts: their settings from their resource, and the connections of one home."""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from quarterdeck.api.hosts import Host, SshLogin
from quarterdeck.api.site import AddressSpace, SshSpec
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.api.storage import HostStorageClass
from quarterdeck.drivers.site_driver import SiteDriver
from quarterdeck.files import file_errors, write_temporary
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.model.findings import Checked
from quarterdeck.model.units import MachineRole
from quarterdeck.progress import TransferListener
from quarterdeck.sites.port import SitePort

if TYPE_CHECKING:  # few homes have such sites, and the ssh library takes long to load
    from quarterdeck.sites.ssh import hosts as ssh
    from quarterdeck.sites.ssh.connections import HostConnections
    from quarterdeck.sites.ssh.programs import Sender
    from quarterdeck.sites.ssh.site import SshSite

_HUB = f"hub-{AddressSpace.HOSTS}"


class SshSites(SiteDriver):
    """Opens the ssh sites of one home, which share their connections, and the knowledge of installed programs."""

    def __init__(self, folder: Path, listener: TransferListener | None = None) -> None:
        self._folder = folder
        self._listener = listener or TransferListener()
        self._shared: tuple[HostConnections, Sender] | None = None

    @override
    def open(self, resource: SiteResource) -> SshSite:
        return self._open(_settings(resource))

    @override
    async def require_allowed(self, resource: SiteResource) -> None:
        """See ``SiteDriver``: obstacles at hosts are reported by 'site check', and whenever the hosts are needed."""

    @override
    def hub(self, space: AddressSpace, declared: Sequence[SiteResource]) -> SshSite:
        """See ``SiteDriver``: all hosts that have the role, of all sites."""
        if found := _dns_hosts(declared):
            with file_errors(f"recording that there are DNS servers of {_HUB}"):
                self._mark.mkdir(parents=True, exist_ok=True)
        return self._open(_hub_of(found))

    @override
    def hubs(self) -> tuple[AddressSpace, ...]:
        return (AddressSpace.HOSTS,) if self._mark.exists() else ()

    @override
    async def close_hub(self, space: AddressSpace, hub: SitePort) -> None:
        """See ``SiteDriver``: its hosts belong to sites, and keep all that is not the hub's own; programs too, which
        the next plane needs.
        """

        async def cleared(machine: str) -> None:
            for unit in await hub.units(machine):
                await hub.remove_unit(machine, unit.name)

        await asyncio.gather(*(cleared(each.name) for each in await hub.machines()))
        with file_errors(f"recording that there are no DNS servers of {_HUB} any more"):
            self._mark.rmdir()

    @override
    async def destroy(self, resource: SiteResource) -> None:
        """See ``SiteDriver``: what planes share on its hosts is deleted as well."""
        await self.open(resource).destroy()
        await self._open(_hub_of(_dns_hosts((resource,)))).destroy()

    @override
    async def check(self, resource: SiteResource, others: Sequence[SiteResource] = ()) -> Checked:
        from quarterdeck.sites.ssh.checks import Here
        from quarterdeck.sites.ssh.host_survey import checked

        here = Here(architecture=platform.machine(), owner=owner_of(self._folder))
        elsewhere = [_settings(each) for each in others if isinstance(each.spec, SshSpec)]
        return await checked(_settings(resource), here, elsewhere)

    @override
    async def close(self) -> None:
        if self._shared is not None:
            await self._shared[0].close()
            self._shared = None

    @property
    def _mark(self) -> Path:
        return self._folder / "sites" / _HUB

    def _open(self, settings: ssh.SshSettings) -> SshSite:
        from quarterdeck.sites.ssh.site import open_ssh_site

        return open_ssh_site(settings, *self._connected())

    def _connected(self) -> tuple[HostConnections, Sender]:
        from quarterdeck.sites.ssh.connections import HostConnections
        from quarterdeck.sites.ssh.programs import Sender
        from quarterdeck.upstream.upstream import Origins

        if self._shared is None:
            sender = Sender(origins=Origins.from_environment(os.environ), listener=self._listener)
            self._shared = HostConnections(owner_of(self._folder)), sender
        return self._shared


def _settings(resource: SiteResource) -> ssh.SshSettings:
    from quarterdeck.sites.ssh.hosts import SshSettings

    spec = _hosts_of(resource)
    outside = spec.edge.external
    return SshSettings(
        name=resource.metadata.name,
        hosts=tuple(settings_of(each) for each in spec.hosts),
        storage_classes=tuple(map(_class_of, spec.storage_classes)),
        fetch_on_host=spec.fetch_on_host,
        floating_addresses=spec.edge.floating_addresses,
        promoted_addresses=spec.edge.promoted_addresses,
        external=ExternalLoadBalancer(outside.addresses, outside.command) if outside is not None else None,
    )


def _hub_of(hosts: Sequence[ssh.SshHost]) -> ssh.SshSettings:
    from quarterdeck.sites.ssh.hosts import SshSettings

    return SshSettings(name=_HUB, hosts=tuple(hosts))


def _class_of(declared: HostStorageClass) -> ssh.SshStorageClass:
    from quarterdeck.sites.ssh.hosts import SshStorageClass, VolumeCommands

    commands = None
    if declared.attach is not None and declared.detach is not None:
        commands = VolumeCommands(attach=declared.attach, detach=declared.detach, snapshot=declared.snapshot or ())
    path = str(declared.path or "")
    return SshStorageClass(name=declared.name, path=path, limit_bytes=declared.limit_bytes, commands=commands)


def settings_of(host: Host, *, name: str = "", roles: tuple[MachineRole, ...] = ()) -> ssh.SshHost:
    """A host in the driver's form; with another name and other roles where these are given."""
    from quarterdeck.sites.ssh import hosts as ssh

    return ssh.SshHost(
        name=name or host.name,
        address=host.address,
        zone=host.zone,
        roles=roles or host.roles,
        login=login_of(host.ssh, host.address),
    )


def login_of(login: SshLogin, address: str) -> ssh.Login:
    """The login of a host."""
    from quarterdeck.sites.ssh.hosts import Login

    identity = str(Path(login.identity_file).expanduser()) if login.identity_file else ""
    return Login(host=login.host or address, port=login.port, user=login.user or "", identity=identity)


def bootstrap_script(user: str, keys: Sequence[str], paths: Sequence[str], *, probe: bool) -> str:
    """The script that root runs on a host to set it up."""
    from quarterdeck.sites.ssh.bootstrap import bootstrap_script as made
    from quarterdeck.sites.ssh.wire import script

    return made(user=user, keys=keys, script=script().decode(), paths=paths, probe=probe)


async def bootstrapped(login: SshLogin, address: str, script: str) -> str:
    """Run that on a host; returns its output. Raises Unavailable, PreconditionFailed."""
    from quarterdeck.sites.ssh.bootstrap import applied

    return await applied(login_of(login, address), script)


def owner_of(home: Path) -> str:
    """The id by which hosts know a home: created once, and stored in it, so that it stays the same wherever the home is
    moved.
    """
    file = home / "owner"
    with file_errors(f"reading {file}"):
        if not file.exists():
            made = write_temporary(file, secrets.token_hex(8).encode(), mode=0o600)
            with suppress(FileExistsError):  # another process was first
                file.hardlink_to(made)
            made.unlink()
        return file.read_text()


def _dns_hosts(sites: Sequence[SiteResource]) -> list[ssh.SshHost]:
    """The hosts of sites that have DNS servers, in that role alone: with names that are unique among all sites."""
    return [
        settings_of(host, name=f"{site.metadata.name}-{host.name}", roles=(MachineRole.DNS,))
        for site in sites
        for host in _hosts_of(site).hosts
        if MachineRole.DNS in host.roles
    ]


def _hosts_of(resource: SiteResource) -> SshSpec:
    assert isinstance(resource.spec, SshSpec), "the table of drivers goes by it"
    return resource.spec
