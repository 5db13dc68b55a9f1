"""All units of a replica."""

from __future__ import annotations

from quarterdeck.components.apiserver import apiserver_unit
from quarterdeck.components.controller_manager import controller_manager_unit
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.etcd import etcd_unit
from quarterdeck.components.scheduler import scheduler_unit
from quarterdeck.components.settings import InitialCluster, PlaneSettings, ReplicaSettings
from quarterdeck.model.units import UnitSpec
from quarterdeck.model.world import Component


def component_unit(
    component: Component,
    plane: PlaneSettings,
    replica: ReplicaSettings,
    secrets: PlaneSecrets,
    certificates: ReplicaSecrets,
    cluster: InitialCluster,
) -> UnitSpec:
    """The unit of any component of a replica; ``cluster`` is for etcd. Raises InvalidInput as the others do."""
    match component:
        case Component.ETCD:
            return etcd_unit(plane, replica, secrets, certificates, cluster)
        case Component.APISERVER:
            return apiserver_unit(plane, replica, secrets, certificates)
        case Component.CONTROLLER_MANAGER:
            return controller_manager_unit(plane, replica, secrets, certificates)
        case Component.SCHEDULER:
            return scheduler_unit(plane, replica, secrets, certificates)
