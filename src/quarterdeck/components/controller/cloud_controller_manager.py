"""A cloud controller manager: any program with the flags of k8s.io/cloud-provider, on standby under leader election."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerProgram
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.arguments import Arguments, Folder, boolean
from quarterdeck.components.controller.common import (
    controller_unit,
    set_defaults,
    set_flags,
    shared_defaults,
    shared_flags,
    without_others,
)
from quarterdeck.components.credentials import asking, serving
from quarterdeck.components.record import ComponentSpec, Flags, Port, Stopping
from quarterdeck.components.refusals import CONTROLLER_FLAGS, TLS
from quarterdeck.components.settings import Inputs
from quarterdeck.model.components import Component
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Program, UnitSpec

#: Its lease, in kube-system.
LEASE = "cloud-controller-manager"

_SERVING = serving("cloud-controller-manager", "cloud_controller_manager")
_CLIENT = asking("cloud-controller-manager", "cloud_controller_manager_client")


def cloud_controller_manager_unit(inputs: Inputs, flags: Mapping[str, str]) -> UnitSpec:
    """The unit of a cloud controller manager. Raises InvalidInput for invalid extra arguments."""
    component, template = Component.CLOUD_CONTROLLER_MANAGER, inputs.template
    cloud, folder = _of(template), Folder(inputs.replica.folders[component])
    owned = shared_flags(inputs, folder, port=PortName.CLOUD_CONTROLLER_MANAGER, client=_CLIENT, serving=_SERVING)
    owned |= set_flags(template, ControllerProgram.CLOUD, folder)
    if cloud.provider is not None:
        owned["cloud-provider"] = cloud.provider
    if cloud.config is not None:
        owned["cloud-config"] = folder.file("cloud.conf", cloud.config)
    defaults = {
        **shared_defaults(),
        **set_defaults(template),
        "allocate-node-cidrs": boolean(False),
        "cluster-name": inputs.plane,
    }
    extra = without_others(template, ControllerProgram.CLOUD, flags)
    return controller_unit(inputs, component, Arguments(owned=owned, defaults=defaults), extra, folder)


def _of(template: ReplicaTemplate) -> CloudControllerManager:
    assert template.cloud_controller_manager is not None, "its revision has one"
    return template.cloud_controller_manager


def _is_there(template: ReplicaTemplate) -> bool:
    return template.cloud_controller_manager is not None


def _program(template: ReplicaTemplate) -> Program:
    """The user's program."""
    cloud = _of(template)
    return Program(Component.CLOUD_CONTROLLER_MANAGER, cloud.program, cloud.image or "")


def _given(declared: ReplicaTemplate | ControlPlaneSpec) -> Mapping[str, str] | None:
    return declared.cloud_controller_manager.flags if declared.cloud_controller_manager is not None else None


_FIELDS = ("program", "image", "provider", "config", "flags")
CLOUD_CONTROLLER_MANAGER = ComponentSpec(
    component=Component.CLOUD_CONTROLLER_MANAGER,
    program="cloud-controller-manager",
    build=cloud_controller_manager_unit,
    ports=(Port(name=PortName.CLOUD_CONTROLLER_MANAGER, number=10258),),
    certificates=(_SERVING, _CLIENT),
    made_from=("cloudControllerManager", *(f"cloudControllerManager.{field}" for field in _FIELDS), "controllerSets"),
    present=_is_there,
    given=_program,
    flags=Flags(
        of=Component.CLOUD_CONTROLLER_MANAGER,
        path="spec.cloudControllerManager.flags",
        given=_given,
        refused=CONTROLLER_FLAGS,
        judged=TLS,
    ),
    stopping=Stopping.HANDING_ON,
    lease=LEASE,
)
