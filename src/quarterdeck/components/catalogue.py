"""The catalogue of a replica's programs: all that differs between them, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TypeAlias

from quarterdeck.components.apiserver import apiserver_unit
from quarterdeck.components.controller import cloud_controller_manager, controller_manager, scheduler
from quarterdeck.components.controller.cloud_controller_manager import cloud_controller_manager_unit
from quarterdeck.components.controller.controller_manager import controller_manager_unit
from quarterdeck.components.controller.scheduler import scheduler_unit
from quarterdeck.components.credentials import PlaneSecrets, ReplicaSecrets
from quarterdeck.components.etcd import PORTS, etcd_unit
from quarterdeck.components.settings import InitialCluster, PlaneSettings, ReplicaSettings
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.components import Component, programs
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import UnitSpec

#: What a unit is rendered from; of the cluster only members of etcd take anything.
Build: TypeAlias = Callable[[PlaneSettings, ReplicaSettings, PlaneSecrets, ReplicaSecrets, InitialCluster], UnitSpec]
_Alone: TypeAlias = Callable[[PlaneSettings, ReplicaSettings, PlaneSecrets, ReplicaSecrets], UnitSpec]


class Stopping(StrEnum):
    """How a program that is well is stopped."""

    ASKED = "asked"  # it ends by itself when it is asked to
    UNSEEN = "unseen"  # while its clients wait: they are not to see how it ends
    HANDING_ON = "handing on"  # and if it led, its lease is handed on after it


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """A program of a replica. (What it depends on is in ``model.components``, and of which cluster it is
    a member in ``model.clusters``: the planner goes by these.)

    ``program`` is the name of its file, ``arguments`` under which component users give its extra arguments.
    ``certificates`` are those of ``ReplicaSecrets`` that it has. ``reloads`` are the parts of a revision that it takes
    up while it runs, in versions that tell what they have taken up. ``lease``: of programs of its kind one works, the
    one that has this lease ("": all work).
    """

    program: str
    build: Build
    arguments: Component
    ports: tuple[PortName, ...]
    certificates: tuple[str, ...]
    reloads: frozenset[str] = frozenset()
    stopping: Stopping = Stopping.ASKED
    lease: str = ""


def _alone(build: _Alone) -> Build:
    def built(
        plane: PlaneSettings,
        replica: ReplicaSettings,
        secrets: PlaneSecrets,
        certificates: ReplicaSecrets,
        initial: InitialCluster,
    ) -> UnitSpec:
        del initial
        return build(plane, replica, secrets, certificates)

    return built


def _member(cluster: Cluster) -> ComponentSpec:
    ports = PORTS[cluster]
    return ComponentSpec(
        program="etcd",
        build=partial(etcd_unit, cluster=cluster),
        arguments=Component.ETCD,
        ports=(ports.client, ports.peer, ports.metrics),
        certificates=("etcd_server", "etcd_peer"),
    )


CATALOGUE: Mapping[Component, ComponentSpec] = {
    Component.ETCD: _member(Cluster.MAIN),
    Component.EVENTS_ETCD: _member(Cluster.EVENTS),
    Component.APISERVER: ComponentSpec(
        program="kube-apiserver",
        build=_alone(apiserver_unit),
        arguments=Component.APISERVER,
        ports=(PortName.APISERVER,),
        certificates=("apiserver", "etcd_client", "kubelet_client", "front_proxy"),
        # It watches that file. It takes up no change of who may come in without a token; there is none between two
        # revisions.
        reloads=frozenset({"authentication"}),
        stopping=Stopping.UNSEEN,
    ),
    Component.CONTROLLER_MANAGER: ComponentSpec(
        program="kube-controller-manager",
        build=_alone(controller_manager_unit),
        arguments=Component.CONTROLLER_MANAGER,
        ports=(PortName.CONTROLLER_MANAGER,),
        certificates=("controller_manager", "controller_manager_client"),
        stopping=Stopping.HANDING_ON,
        lease=controller_manager.LEASE,
    ),
    Component.SCHEDULER: ComponentSpec(
        program="kube-scheduler",
        build=_alone(scheduler_unit),
        arguments=Component.SCHEDULER,
        ports=(PortName.SCHEDULER,),
        certificates=("scheduler", "scheduler_client"),
        lease=scheduler.LEASE,
    ),
    Component.CLOUD_CONTROLLER_MANAGER: ComponentSpec(
        program="cloud-controller-manager",
        build=_alone(cloud_controller_manager_unit),
        arguments=Component.CLOUD_CONTROLLER_MANAGER,
        ports=(PortName.CLOUD_CONTROLLER_MANAGER,),
        certificates=("cloud_controller_manager", "cloud_controller_manager_client"),
        stopping=Stopping.HANDING_ON,
        lease=cloud_controller_manager.LEASE,
    ),
}


def components_of(plane: PlaneSettings) -> tuple[Component, ...]:
    """The programs that replicas of such a plane have, in the order in which they start."""
    return programs(events=plane.separate_events, cloud=plane.cloud is not None)
