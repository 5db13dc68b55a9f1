"""From what the user declares to what the components and the planner need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.api.controlplane import ETCD_ELECTION, ETCD_HEARTBEAT, ControlPlane
from quarterdeck.api.endpoint import EndpointMode
from quarterdeck.api.site import Site as SiteResource
from quarterdeck.components.ports import load_balancer_port
from quarterdeck.components.settings import Audit, Baseline, PlaneSettings
from quarterdeck.components.tuning import Tuning
from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.model.memory import Replica
from quarterdeck.model.slots import Slot
from quarterdeck.model.world import Settings
from quarterdeck.planner.slots import slots

#: The status listener of a load balancer, counted from the port that is its plane's own.
_STATUS_SHIFT = 20_000


def plane_settings(plane: ControlPlane) -> PlaneSettings:
    """What is equal on all replicas of a plane that is to be made. Raises InvalidInput when its audit policy cannot be
    read.
    """
    settings = known_settings(plane)
    if (error := settings.audit.unreadable) is not None:
        raise InvalidInput(error.doing, error.seen, error.next_step) from error
    return settings


def known_settings(plane: ControlPlane) -> PlaneSettings:
    """The same for a plane that is there: without the audit policy, if it cannot be read now (``Audit.unreadable``)."""
    spec = plane.spec
    named = spec.endpoint.mode is not EndpointMode.ADDRESS
    return PlaneSettings(
        name=plane.metadata.name,
        kubernetes=spec.kubernetes_version.removeprefix("v"),
        etcd=spec.etcd.version,
        service_cidr=spec.service_cidr,
        endpoint_name=plane.host if named else "",
        tuning=Tuning(
            heartbeat=(spec.etcd.heartbeat_milliseconds or ETCD_HEARTBEAT) / 1000,
            election=(spec.etcd.election_milliseconds or ETCD_ELECTION) / 1000,
        ),
        quota_bytes=spec.etcd.quota_bytes,
        encrypt_secrets=spec.encryption.secrets,
        audit=_audit(plane),
        authenticators=spec.authentication.jwt if spec.authentication is not None else (),
        admission=spec.admission.plugins if spec.admission is not None else (),
        tracing=spec.tracing,
        baseline=Baseline(min(plane.status.baseline, max(Baseline))),
        extra_args=spec.extra_args.by_component(),
    )


def _audit(plane: ControlPlane) -> Audit:
    wanted = plane.spec.audit
    if wanted is None:
        return Audit()
    path = Path(wanted.policy_file)
    policy, unreadable = "", None
    try:
        policy = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        seen = error.strerror if isinstance(error, OSError) else "it is not text"
        unreadable = Unavailable(
            f"reading the audit policy of plane {plane.metadata.name}", f"{path}: {seen}", "put it there"
        )
    return Audit(
        policy=policy,
        unreadable=unreadable,
        max_age_days=wanted.max_age_days,
        max_backups=wanted.max_backups,
        max_size_megabytes=wanted.max_size_megabytes,
    )


def endpoint_port(plane: ControlPlane) -> int:
    """The port at which clients reach the plane: the user's, or the one that is its own."""
    return plane.spec.endpoint.port or load_balancer_port(plane.status.port_offset or 0)


def balancer_status_port(plane: ControlPlane) -> int:
    """Where the plane's load balancers tell how they are."""
    return load_balancer_port(plane.status.port_offset or 0) + _STATUS_SHIFT


def balancer_ports(plane: ControlPlane) -> tuple[int, ...]:
    """All that a load balancer of the plane listens at."""
    return endpoint_port(plane), balancer_status_port(plane)


def planner_settings(plane: ControlPlane) -> Settings:
    """The planner's bounds."""
    return Settings(ttl=float(plane.spec.endpoint.ttl), drain=plane.spec.endpoint.drain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a spec comes to at its site, whose zones and first storage class are the defaults."""

    site: str
    zones: tuple[str, ...]
    replicas: int
    storage_class: str

    def slots(self, present: Iterable[Replica]) -> tuple[Slot, ...]:
        """The places that are wanted, given the replicas that there are."""
        return slots(site=self.site, zones=self.zones, replicas=self.replicas, present=present)


def goal_of(plane: ControlPlane, site: SiteResource) -> Goal:
    """What the spec asks for at ``site``."""
    return Goal(
        site=plane.spec.placement.site,
        zones=plane.spec.placement.zones or site.spec.zones,
        replicas=plane.spec.replicas,
        storage_class=plane.spec.etcd_storage_class or site.spec.storage_classes[0].name,
    )
