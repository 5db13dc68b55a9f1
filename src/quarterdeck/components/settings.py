"""What the components need to know: of the plane, of a replica, and of the etcd cluster that it founds or joins."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath

from quarterdeck.api.plane.apiserver import AdmissionPlugin, Tracing
from quarterdeck.api.plane.authentication import JwtAuthenticator
from quarterdeck.api.plane.cloud import CloudControllerManager
from quarterdeck.api.revision import ControllerSetTemplate, Guard
from quarterdeck.components.audit_policy import default_audit_policy
from quarterdeck.components.tuning import Tuning
from quarterdeck.errors import InvalidInput
from quarterdeck.model.components import Component
from quarterdeck.model.seats import Endpoint, Seat

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """How an apiserver stops after SIGTERM; all times in seconds.

    ``delay``: it serves as before, with /readyz failing. Not needed where the load balancer takes an apiserver out
    before it is stopped; give it time where clients find apiservers through the Service ``kubernetes``.
    ``watch_grace``: watches are ended, 200 a second at least, within this time. Never 0: watches would then hold up
    the shutdown for a minute, and be cut.
    ``send_retry_after``: answer new requests on old connections with 429 until the last request has ended. Off:
    connections are closed as soon as they are idle, which clients that never retry survive and a 429 they do not.
    """

    delay: float = 0.0
    watch_grace: float = 5.0
    send_retry_after: bool = False

    def __post_init__(self) -> None:
        if self.delay < 0 or self.watch_grace <= 0:
            raise InvalidInput(
                "setting how apiservers stop",
                f"the delay is {self.delay:g} s and the time for watches {self.watch_grace:g} s",
                "give a delay of 0 or more, and watches more than 0",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The apiserver's audit log: by which policy (the YAML of an audit.k8s.io/v1 Policy), and how much is kept."""

    policy: str = field(default_factory=default_audit_policy)
    max_age_days: int = 30
    max_backups: int = 10
    max_size_megabytes: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSettings:
    """What is equal on all replicas of a plane.

    ``kubernetes`` and ``etcd`` are versions (``1.36.3``). ``endpoint_name`` is the plane's DNS name ("" if it has
    none). ``tuning`` must be equal on all members. ``quota_bytes`` limits etcd's database, ``events_quota_bytes`` that
    of the events alone; ``separate_events``: whether apiservers keep them there. ``encrypt_secrets``: whether new
    Secrets are stored encrypted. ``authenticators`` and ``admission`` are the user's, to be merged with quarterdeck's
    own. ``cloud``: the cloud controller manager that replicas have (None: they have none). ``controller_sets``: which
    manager runs which controllers, where two could. ``node_bootstrap``: whether nodes join with bootstrap tokens.
    ``extra_args`` maps flags, without dashes, to values, per component.
    """

    name: str
    kubernetes: str
    etcd: str
    service_cidr: str = "10.96.0.0/16"
    cluster_domain: str = "cluster.local"
    endpoint_name: str = ""
    tuning: Tuning = field(default_factory=Tuning)
    quota_bytes: int = 8 * GIB
    shutdown: Shutdown = field(default_factory=Shutdown)
    encrypt_secrets: bool = True
    audit: Audit = field(default_factory=Audit)
    authenticators: tuple[JwtAuthenticator, ...] = ()
    admission: tuple[AdmissionPlugin, ...] = ()
    tracing: Tracing | None = None
    cloud: CloudControllerManager | None = None
    controller_sets: tuple[ControllerSetTemplate, ...] = ()
    node_bootstrap: bool = True
    separate_events: bool = False
    events_quota_bytes: int = 8 * GIB
    extra_args: Mapping[Component, Mapping[str, str]] = field(default_factory=dict)

    @property
    def service_ip(self) -> str:
        """The address of the Service ``kubernetes``: the first of the service CIDR."""
        return str(ipaddress.ip_network(self.service_cidr)[1])

    def locks(self, component: Component) -> tuple[str, ...]:
        """The locks of sets that such a program of each replica tries to hold besides its own."""
        mine = (each for each in self.controller_sets if each.owner.component is component)
        return tuple(each.lock for each in mine if each.guard is Guard.SET)

    @property
    def issuer(self) -> str:
        """The issuer of service account tokens."""
        return f"https://kubernetes.default.svc.{self.cluster_domain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """What is a replica's own.

    ``seat`` says where its programs listen and are reached. ``volume`` is the folder of the volume of the member that
    the unit is (of other units: of its member of the main cluster), ``audit`` that of the audit log of its seat (None
    for units that write none). ``folders`` says where on the machine a component's files go, ``programs`` where its
    program is (absolute). ``everywhere``: its apiserver listens at all addresses of its machine. ``own_ports``: its
    ports are the plane's, as those of all its replicas are where these were free.
    """

    name: str
    seat: Seat
    volume: PurePosixPath
    audit: PurePosixPath | None
    folders: Mapping[Component, PurePosixPath]
    programs: Mapping[Component, PurePosixPath]
    everywhere: bool = False
    own_ports: bool = True


class ClusterState(StrEnum):
    """Whether a member founds a cluster or joins one (etcd's --initial-cluster-state)."""

    NEW = "new"
    EXISTING = "existing"


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialCluster:
    """What of a member's start is no part of what the member is: mostly how one starts that has no data yet.

    ``members`` are (replica, peer URL) of the founders, or, to join, of exactly the membership of that moment with
    the member itself. ``token`` tells clusters apart: a new one after each restore.
    ``compares``: it has data, and compares it with its peers'.
    """

    state: ClusterState
    members: tuple[tuple[str, str], ...]
    token: str
    compares: bool = False


def unit_name(plane: str, replica: str, component: Component) -> str:
    """The name of a replica's unit on its machine."""
    return f"{plane}-{replica}-{component}"


def url(address: str, port: int, *, scheme: str = "https") -> str:
    """``https://10.0.0.1:6443``, with brackets around IPv6 addresses."""
    return Endpoint(address, port).url(scheme)
