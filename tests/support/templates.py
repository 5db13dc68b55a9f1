"""A template of a revision, and the units that are rendered from one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import PurePosixPath

from quarterdeck.api.controlplane import ControlPlane, ExtraArgs, new_control_plane
from quarterdeck.api.plane.controllers import CloudControllerManager
from quarterdeck.api.revision import EventsTemplate, ReplicaTemplate
from quarterdeck.api.site import default_sites
from quarterdeck.components.catalogue import programs_of
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.ports import seat_at
from quarterdeck.components.replica import component_unit
from quarterdeck.components.settings import ClusterState, InitialCluster, Inputs, ReplicaSettings
from quarterdeck.components.template import Revisions
from quarterdeck.engine.workspace.revisions import audit_wanted, declared, template_of
from quarterdeck.model.components import NAMED, Component
from quarterdeck.model.units import UnitSpec
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica

CLUSTER = InitialCluster(state=ClusterState.EXISTING, members=(("demo-1", "https://10.0.0.1:2380"),), token="demo-a1")
REPLICA = ReplicaSettings(
    name="demo-1",
    seat=seat_at("east-a1", "10.0.0.1", 0),
    volume=PurePosixPath("/volumes/demo-1"),
    audit=PurePosixPath("/volumes/demo-audit"),
    folders={each: PurePosixPath(f"/units/{each}") for each in NAMED},
    programs={each: PurePosixPath(f"/programs/{each}") for each in NAMED},
)


def template(**changes: object) -> ReplicaTemplate:
    """That of a plane of defaults, with these fields changed."""
    plane = new_control_plane("demo", site="east")
    return template_of(plane, default_sites()[0], audit_wanted(plane)).model_copy(update=changes)


def but(
    template: ReplicaTemplate,
    *,
    etcd: Mapping[str, object] | None = None,
    flags: Mapping[Component, Mapping[str, str]] | None = None,
    policy: str | None = None,
    **changes: object,
) -> ReplicaTemplate:
    """The same with these fields changed: of ``etcd`` those that are named, as users' flags none but these, and as the
    audit log's policy this text.
    """
    if etcd is not None:
        changes["etcd"] = template.etcd.model_copy(update=dict(etcd))
    if policy is not None:
        changes["audit"] = template.audit.model_copy(update={"policy": policy})
    if flags is not None:
        given = {field: dict(flags.get(each, {})) for field, each in _FIELDS.items()}
        changes["extra_args"] = ExtraArgs.model_construct(**given)
    cloud = changes.get("cloud_controller_manager", template.cloud_controller_manager)
    if flags is not None and isinstance(cloud, CloudControllerManager):
        its = dict(flags.get(Component.CLOUD_CONTROLLER_MANAGER, {}))
        changes["cloud_controller_manager"] = cloud.model_copy(update={"flags": its})
    return template.model_copy(update=changes)


_FIELDS = {
    "etcd": Component.ETCD,
    "kube_apiserver": Component.APISERVER,
    "kube_controller_manager": Component.CONTROLLER_MANAGER,
    "kube_scheduler": Component.SCHEDULER,
}


def declared_alone(plane: ControlPlane) -> Revisions:
    """The revisions of a plane that was made when there were none: what its spec says."""
    return Revisions(templates={"": declared(plane, default_sites()[0])})


@cache
def secrets() -> SharedSecrets:
    """Made once: keys take time."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    names = ReplicaNames(replica="demo-1", addresses=("10.0.0.1",), service_ip="10.96.0.1", programs=NAMED)
    return with_replica(create_plane_secrets("demo", now), names, now)


def units_of(wanted: ReplicaTemplate, events: EventsTemplate | None = None) -> Mapping[Component, UnitSpec]:
    """All units of replica demo-1; ``events``: what its member of the events' etcd is, if its revision has none."""
    certificates = secrets().replica("demo-1")
    assert certificates is not None
    inputs = Inputs(
        plane="demo",
        template=wanted,
        replica=REPLICA,
        secrets=secrets(),
        certificates=certificates,
        initial=CLUSTER,
        events=wanted.etcd.events or events,
    )
    has = {*programs_of(wanted)} | ({Component.EVENTS_ETCD} if events is not None else set())
    return {each: component_unit(each, inputs) for each in has}
