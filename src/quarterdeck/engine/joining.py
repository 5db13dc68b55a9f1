"""What a plane keeps for the nodes that join it."""

from __future__ import annotations

import json

from quarterdeck.actions.plane import Plane
from quarterdeck.addons.content import Content
from quarterdeck.addons.nodes import Joined, for_nodes
from quarterdeck.components.settings import url
from quarterdeck.engine.settings import endpoint_port
from quarterdeck.engine.templates import takes_nodes


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
            cluster_domain=plane.settings.cluster_domain,
            kubelet=json.dumps(spec.nodes.kubelet_configuration, sort_keys=True),
        )
    )
