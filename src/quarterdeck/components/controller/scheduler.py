"""A kube-scheduler, warm under leader election."""

from __future__ import annotations

from quarterdeck.components.arguments import Arguments
from quarterdeck.components.controller.common import command, shared_defaults, shared_flags
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.files import Folder
from quarterdeck.components.settings import PlaneSettings, ReplicaSettings, unit_name
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Priority, UnitSpec

#: Its lease, in kube-system.
LEASE = "kube-scheduler"


def scheduler_unit(
    plane: PlaneSettings, replica: ReplicaSettings, secrets: PlaneSecrets, certificates: ReplicaSecrets
) -> UnitSpec:
    """The unit of a scheduler. Raises InvalidInput for extra arguments that cannot be."""
    component = Component.SCHEDULER
    folder = Folder(replica.folders[component])
    owned = {
        **shared_flags(
            plane,
            replica,
            secrets,
            folder,
            user="system:kube-scheduler",
            port=PortName.SCHEDULER,
            client=certificates.scheduler_client,
            serving=certificates.scheduler,
        ),
    }
    arguments = Arguments(owned=owned, defaults=shared_defaults())
    extra = plane.extra_args.get(component, {})
    return UnitSpec(
        name=unit_name(plane.name, replica.name, component),
        argv=command(replica, component, arguments.command_line(component, extra)),
        files=folder.files,
        priority=Priority.BACKGROUND,
    )
