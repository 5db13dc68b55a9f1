"""The catalogue of a replica's programs: one row for each, in start order."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.api.controlplane import ControlPlaneSpec
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components import apiserver, etcd
from quarterdeck.components.controller import cloud_controller_manager, controller_manager, scheduler
from quarterdeck.components.record import ComponentSpec, Port
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component

CATALOGUE: Mapping[Component, ComponentSpec] = {
    spec.component: spec
    for spec in (
        etcd.MAIN,
        etcd.EVENTS,
        apiserver.APISERVER,
        controller_manager.CONTROLLER_MANAGER,
        scheduler.SCHEDULER,
        cloud_controller_manager.CLOUD_CONTROLLER_MANAGER,
    )
}


def programs_of(template: ReplicaTemplate) -> tuple[Component, ...]:
    """The programs that replicas of a revision have, in the order in which they start."""
    return tuple(component for component, spec in CATALOGUE.items() if spec.present(template))


def named(name: str) -> Component:
    """The program of that name. Raises InvalidInput."""
    found = next((each for each in CATALOGUE if each == name), None)
    if found is None:
        raise InvalidInput("looking up a program of a replica", f"there is no {name}", f"name {', '.join(CATALOGUE)}")
    return found


def seat_ports() -> tuple[Port, ...]:
    """The ports that each seat has: those of all programs."""
    return tuple(port for spec in CATALOGUE.values() for port in spec.ports)


def flags_of(declared: ReplicaTemplate | ControlPlaneSpec) -> dict[Component, Mapping[str, str]]:
    """The users' flags, by the program that messages name."""
    given = {spec.flags.of: spec.flags.given(declared) for spec in CATALOGUE.values() if spec.flags is not None}
    return {component: flags for component, flags in given.items() if flags is not None}


def flags_field(component: Component) -> str:
    """The field of a plane with the users' flags of a program ("": there is none)."""
    flags = CATALOGUE[component].flags
    return flags.path if flags is not None else ""
