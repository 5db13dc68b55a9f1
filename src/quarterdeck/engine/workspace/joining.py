"""What a plane keeps for the nodes that join it."""

from __future__ import annotations

import ipaddress
import json

from quarterdeck.actions.plane import Plane
from quarterdeck.addons.content import Content
from quarterdeck.addons.nodes import Joined, for_nodes
from quarterdeck.components.ports import has_own_ports
from quarterdeck.components.settings import CLUSTER_DOMAIN, url
from quarterdeck.engine.workspace.settings import endpoint_port
from quarterdeck.engine.workspace.templates import takes_nodes
from quarterdeck.model.seats import Endpoint, PortName


def kept_for_nodes(plane: Plane) -> Content | None:
    """The objects that nodes look for, which are an add-on of quarterdeck's own; None where none are to join."""
    resource = plane.resource
    if not takes_nodes(resource):
        return None
    spec = resource.spec
    return for_nodes(
        Joined(
            plane=plane.name,
            server=url(resource.host, endpoint_port(resource)),
            ca=plane.secrets.kubernetes_ca.bundle,
            kubernetes=spec.kubernetes_version,
            service_cidr=spec.service_cidr,
            cluster_domain=CLUSTER_DOMAIN,
            kubelet=json.dumps(spec.nodes.kubelet_configuration, sort_keys=True),
            beside=_beside(plane),
        )
    )


def _beside(plane: Plane) -> tuple[Endpoint, ...]:
    """Where the apiservers are reached that have other ports than the plane's; none at loopback addresses, which no
    endpoint may have.
    """
    seats = (each.seat for each in plane.memory.replicas if each.seat is not None)
    others = (each for each in seats if not has_own_ports(each, plane.resource.status.port_offset or 0))
    ends = (each.advertised(PortName.APISERVER) for each in others)
    return tuple(sorted(each for each in ends if not ipaddress.ip_address(each.host).is_loopback))
