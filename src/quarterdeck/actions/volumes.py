"""The volumes of a plane's replicas, and the other settings that a replica's unit needs from its machine."""

from __future__ import annotations

from quarterdeck.actions.addresses import at_its_machines, seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.components.catalogue import CATALOGUE
from quarterdeck.components.ports import has_own_ports, load_balancer_port
from quarterdeck.components.replica import program_version
from quarterdeck.components.settings import ReplicaSettings
from quarterdeck.errors import Conflict, NotFound, Unavailable
from quarterdeck.model.clusters import CLUSTER, Cluster
from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import PortName
from quarterdeck.model.units import Program, Volume


def volume_name(plane: Plane, record: Replica, cluster: Cluster = Cluster.MAIN) -> str:
    """The name of the volume of a replica's member of a cluster on its machine."""
    if cluster is Cluster.MAIN:
        return main_volume(plane.name, record.name)
    epoch = record.events.epoch if record.events is not None else plane.memory.events.epoch
    return f"{_events_volumes(plane, record)}{epoch}"


def main_volume(plane: str, replica: str) -> str:
    """The name of the volume of a replica's member of the main cluster."""
    return f"{plane}-{replica}"


def _events_volumes(plane: Plane, record: Replica) -> str:
    """The prefix of the names of the volumes of a replica's members of the events' clusters."""
    return f"{plane.name}-{record.name}-events-"


async def delete_events_volumes(plane: Plane, record: Replica) -> None:
    """Delete all volumes of a replica for present and former events' clusters."""
    site = plane.site(record.site)
    for volume in await site.volumes(record.machine):
        if volume.name.startswith(_events_volumes(plane, record)):
            await plane.check()
            await site.delete_volume(record.machine, volume.name)


async def volume_of(plane: Plane, record: Replica, cluster: Cluster = Cluster.MAIN) -> Volume | None:
    """The volume of a replica's member of a cluster, if its machine has it. Raises Unavailable."""
    site, name = plane.site(record.site), volume_name(plane, record, cluster)
    try:
        await site.list_volume(record.machine, name)
    except NotFound:
        return None
    return await site.create_volume(record.machine, name, _member(plane, record, cluster).storage_class)


def _member(plane: Plane, record: Replica, cluster: Cluster) -> Replica:
    return record.of(cluster, plane.memory.events.epoch)


def audit_volumes(plane: Plane) -> str:
    """The prefix of the names of the volumes of the plane's audit logs, on each machine that has ever hosted an
    apiserver of it. It is unique: a later plane of the same name does not continue them.
    """
    return f"{plane.name}-audit-{plane.resource.metadata.uid}"


def audit_volume(plane: Plane, record: Replica) -> str:
    """The volume of the audit log of a replica's seat. Two apiservers must not share one: each would rotate the file
    that the other is writing to, and overwrite it (natefinch/lumberjack: openNew). It belongs to the seat, so the next
    replica there continues it, and deletes what is too old. The seat with the plane's own port has the name without a
    port.
    """
    port = seat_of(record).listen(PortName.APISERVER).port
    own_port = load_balancer_port(plane.resource.status.port_offset or 0)
    return audit_volumes(plane) if port == own_port else f"{audit_volumes(plane)}-{port}"


async def replica_settings(plane: Plane, record: Replica, component: Component) -> ReplicaSettings:
    """The settings of a replica for one of its units; creates its member's volume if there is none, but never that of a
    member that has started: its data is elsewhere, or lost. Raises Unavailable then. Only an apiserver needs the volume
    of the audit log: a failed disk with only the log keeps no member from starting.
    """
    site, cluster = plane.site(record.site), CLUSTER.get(component, Cluster.MAIN)
    volume, member = await volume_of(plane, record, cluster), _member(plane, record, cluster)
    if volume is None and member.started:
        raise Unavailable(
            f"starting a unit of {record.name}",
            f"its volume {volume_name(plane, record, cluster)} is gone from machine {record.machine}",
            "restore it with all its data",
        )
    if volume is None:
        name = volume_name(plane, record, cluster)
        volume = await site.create_volume(record.machine, name, member.storage_class)
    program = _program(plane, record, component)
    return ReplicaSettings(
        name=record.name,
        seat=seat_of(record),
        volume=volume.path,
        audit=(await _audit_volume_at(plane, record)).path if component == Component.APISERVER else None,
        folders={component: site.folder(record.machine, plane.unit(record, component))},
        programs={component: await site.install(record.machine, program)},
        everywhere=plane.resource.spec.endpoint.promoted and at_its_machines(plane, record),
        own_ports=has_own_ports(seat_of(record), plane.resource.status.port_offset or 0),
    )


def _program(plane: Plane, record: Replica, component: Component) -> Program:
    """The program to run: one of the release, or the one that the replica's revision names."""
    given, template = CATALOGUE[component].given, plane.template_of(record)
    if given is not None:
        return given(template)
    return Program(component, plane.programs[component, program_version(component, template)])


async def _audit_volume_at(plane: Plane, record: Replica) -> Volume:
    """The volume of the audit log of a replica's seat: of the site's default class, or of a former default."""
    site, name = plane.site(record.site), audit_volume(plane, record)
    try:
        return await site.create_volume(record.machine, name, (await site.storage_classes())[0])
    except Conflict:
        return next(each for each in await site.volumes(record.machine) if each.name == name)
