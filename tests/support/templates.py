"""A template of a revision, and the units that are rendered from one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import PurePosixPath

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.api.site import default_sites
from quarterdeck.components.catalogue import components_of
from quarterdeck.components.credentials import PlaneSecrets
from quarterdeck.components.ports import seat_at
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import ClusterState, InitialCluster, ReplicaSettings
from quarterdeck.components.template import Revisions, settings_of
from quarterdeck.engine.workspace.templates import audit_wanted, declared, template_of
from quarterdeck.model.components import Component
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuing import ReplicaNames, create_plane_secrets, with_replica

CLUSTER = InitialCluster(state=ClusterState.EXISTING, members=(("demo-1", "https://10.0.0.1:2380"),), token="demo-a1")
REPLICA = ReplicaSettings(
    name="demo-1",
    seat=seat_at("east-a1", "10.0.0.1", 0),
    volume=PurePosixPath("/volumes/demo-1"),
    audit=PurePosixPath("/volumes/demo-audit"),
    folders={each: PurePosixPath(f"/units/{each}") for each in Component},
    programs={each: PurePosixPath(f"/programs/{each}") for each in Component},
)


def template(**changes: object) -> ReplicaTemplate:
    """That of a plane of defaults, with these fields changed."""
    plane = new_control_plane("demo", site="east")
    return template_of(plane, default_sites()[0], audit_wanted(plane)).model_copy(update=changes)


def declared_alone(plane: ControlPlane) -> Revisions:
    """The revisions of a plane that was made when there were none: what its spec says."""
    return Revisions(templates={"": declared(plane, default_sites()[0])})


@cache
def secrets() -> PlaneSecrets:
    """Made once: keys take time."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    names = ReplicaNames(replica="demo-1", addresses=("10.0.0.1",), service_ip="10.96.0.1", cloud=True)
    return with_replica(create_plane_secrets("demo", now), names, now)


def units_of(wanted: ReplicaTemplate) -> Mapping[Component, UnitSpec]:
    """All units of replica demo-1."""
    certificates = secrets().replica("demo-1")
    assert certificates is not None
    plane = settings_of("demo", wanted)
    has = components_of(plane)
    return {each: component_unit(each, plane, REPLICA, secrets(), certificates, CLUSTER) for each in has}
