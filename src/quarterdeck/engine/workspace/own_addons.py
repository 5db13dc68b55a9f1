"""Quarterdeck's own add-ons of a plane: objects for joining nodes, and permissions of a cloud controller manager."""

from __future__ import annotations

import ipaddress
import json
import os
from pathlib import Path

from quarterdeck.actions.plane import Plane
from quarterdeck.addons.content import Content
from quarterdeck.addons.nodes import Joined, for_nodes
from quarterdeck.addons.rbac import for_cloud
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.ports import has_own_ports
from quarterdeck.components.settings import CLUSTER_DOMAIN, url
from quarterdeck.engine.workspace.revisions import takes_nodes
from quarterdeck.engine.workspace.settings import endpoint_port
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.components import Component
from quarterdeck.model.seats import HostPort, PortName
from quarterdeck.sites.port import SitePort
from quarterdeck.upstream.sources import Target, fault


def kept_for_nodes(plane: Plane) -> Content | None:
    """The add-on with the objects that joining nodes need; None where nodes do not join with tokens."""
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
            service_cidrs=spec.service_cidrs,
            cluster_domain=CLUSTER_DOMAIN,
            kubelet=json.dumps(spec.nodes.kubelet_configuration, sort_keys=True),
            beside=_beside(plane),
        )
    )


def _beside(plane: Plane) -> tuple[HostPort, ...]:
    """The addresses of apiservers with other ports than the plane's, without loopback addresses, which an endpoint must
    not have.
    """
    seats = (each.seat for each in plane.memory.replicas if each.seat is not None)
    others = (each for each in seats if not has_own_ports(each, plane.resource.status.port_offset or 0))
    ends = (each.advertised(PortName.APISERVER) for each in others)
    return tuple(sorted(each for each in ends if not ipaddress.ip_address(each.host).is_loopback))


#: The first bytes of a script.
_SCRIPT = b"#!"


def admit_cloud(wanted: ControlPlane, site: SitePort, current: ControlPlane | None) -> None:
    """Refuse a program that no machine of a site could start; an unchanged one is not checked again. Raises
    PreconditionFailed for an image, InvalidInput for a file that is not a program.
    """
    cloud = wanted.spec.cloud_controller_manager
    if cloud is None or (current is not None and cloud == current.spec.cloud_controller_manager):
        return
    doing = f"adding a cloud controller manager to plane {wanted.name}"
    if cloud.program is not None:
        if why := _unusable(Path(cloud.program)):
            seen = f"spec.cloudControllerManager.program: {cloud.program} {why}"
            raise InvalidInput(doing, seen, "name an executable program for 64-bit Linux")
    else:
        raise PreconditionFailed(
            doing,
            f"site {site.name} runs programs from files, and no images",
            "set spec.cloudControllerManager.program to the program file of the image",
        )


def _unusable(path: Path) -> str:
    """Why a file is not a program for this machine; "" if it may be one."""
    try:
        if not path.is_file():
            return "is not a file" if path.exists() else "does not exist"
        if not os.access(path, os.X_OK):
            return "is not executable"
        with path.open("rb") as stream:
            if stream.read(len(_SCRIPT)) == _SCRIPT:
                return ""
        return fault(path, Target.here()) or ""
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def kept_for_cloud(plane: Plane) -> Content | None:
    """The add-on with the permissions of a cloud controller manager; None where no replica has one."""
    names = {plane.revisions.goal, *(each.revision for each in plane.memory.replicas)}
    there = plane.revisions.programs.having(Component.CLOUD_CONTROLLER_MANAGER)
    return for_cloud() if names & there else None
