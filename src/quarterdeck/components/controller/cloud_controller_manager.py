"""A cloud controller manager: any program that keeps the flags of k8s.io/cloud-provider, warm under leader election."""

from __future__ import annotations

from quarterdeck.api.plane.controllers import Manager
from quarterdeck.components.arguments import Arguments, boolean
from quarterdeck.components.controller.common import (
    command,
    set_defaults,
    set_flags,
    shared_defaults,
    shared_flags,
    without_others,
)
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.files import Folder
from quarterdeck.components.settings import PlaneSettings, ReplicaSettings, unit_name
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Priority, UnitSpec

#: Its lease, in kube-system.
LEASE = "cloud-controller-manager"


def cloud_controller_manager_unit(
    plane: PlaneSettings, replica: ReplicaSettings, secrets: PlaneSecrets, certificates: ReplicaSecrets
) -> UnitSpec:
    """The unit of a cloud controller manager. Raises InvalidInput for extra arguments that cannot be."""
    component, cloud = Component.CLOUD_CONTROLLER_MANAGER, plane.cloud
    client, serving = certificates.cloud_controller_manager_client, certificates.cloud_controller_manager
    assert cloud is not None, "its revision has one"
    assert client is not None, "it is issued to replicas that have one"
    assert serving is not None, "it is issued to replicas that have one"
    folder = Folder(replica.folders[component])
    owned = shared_flags(
        plane,
        replica,
        secrets,
        folder,
        user="system:cloud-controller-manager",
        port=PortName.CLOUD_CONTROLLER_MANAGER,
        client=client,
        serving=serving,
    )
    owned |= set_flags(plane, Manager.CLOUD, folder)
    if cloud.provider is not None:
        owned["cloud-provider"] = cloud.provider
    if cloud.config is not None:
        owned["cloud-config"] = folder.file("cloud.conf", cloud.config)
    defaults = {
        **shared_defaults(),
        **set_defaults(plane),
        "allocate-node-cidrs": boolean(False),
        "cluster-name": plane.name,
    }
    arguments = Arguments(owned=owned, defaults=defaults)
    extra = without_others(plane, Manager.CLOUD, plane.extra_args.get(component, {}))
    return UnitSpec(
        name=unit_name(plane.name, replica.name, component),
        argv=command(replica, component, arguments.command_line(component, extra)),
        files=folder.files,
        priority=Priority.BACKGROUND,
    )
