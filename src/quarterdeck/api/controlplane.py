"""ControlPlane: the Kubernetes control plane that a user declares."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Literal, TypedDict, Unpack

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from quarterdeck.api.base import Condition, Metadata, Model, Resource, named_within
from quarterdeck.api.flags import DUAL_STACK, LISTED_FLAGS, Flags
from quarterdeck.api.names import DNS_LABEL_MAX, DNS_NAME_MAX, PLANE_NAME_MAX, dns_label, shortened
from quarterdeck.api.plane.addons import Addons, AddonStatus
from quarterdeck.api.plane.apiserver import Admission, Tracing
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerSets
from quarterdeck.api.plane.drills import DrillSchedules
from quarterdeck.api.plane.endpoint import Endpoint
from quarterdeck.api.plane.memory import MemoryStatus
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.api.schema import NETWORK, ONCE, SOME_ONCE, label, named, refuse
from quarterdeck.api.site import CordonedReplica
from quarterdeck.api.values import (
    DEFAULT_ETCD_VERSION,
    DEFAULT_KUBERNETES_VERSION,
    AbsolutePath,
    Bytes,
    EtcdVersion,
    KubernetesVersion,
    SiteName,
    StorageClassName,
    ZoneName,
)

#: Removed by the process that deletes a plane when nothing is left of it.
PLANE_FINALIZER = "quarterdeck.dev/plane"
#: etcd's own defaults (server/embed/config.go), in milliseconds.
ETCD_HEARTBEAT = 100
ETCD_ELECTION = 1_000
#: etcd refuses to start above this, and below five heartbeats.
ETCD_ELECTION_MAX = 50_000
#: The quota of a database, in bytes.
QUOTA_MIN = 64 * 2**20
QUOTA_DEFAULT = 8 * 2**30
QUOTA_MAX = 64 * 2**30


#: The possible numbers of replicas, as text.
REPLICA_COUNTS = "1, 3, 5 or 7"


def replica_count(count: object) -> object:
    """A valid number of replicas; raises ValueError for another one."""
    if isinstance(count, bool):  # Python accepts True as 1
        raise ValueError(f"must be {REPLICA_COUNTS}, not {count}")
    if isinstance(count, int) and count not in (1, 3, 5, 7):
        even = " (an even number survives no more failures than one less)" if count % 2 == 0 else ""
        raise ValueError(f"must be {REPLICA_COUNTS}, not {count}{even}")
    return count


def _one_range(given: object) -> object:
    if isinstance(given, list | tuple) or (isinstance(given, str) and "," in given):
        raise ValueError(DUAL_STACK)
    return given


def _service_cidr(text: str) -> str:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise ValueError(f"{shortened(text)} is not a network such as 10.96.0.0/16 ({error})") from error
    widest, narrowest = (12, 29) if isinstance(network, IPv4Network) else (64, 125)
    if not widest <= network.prefixlen <= narrowest:
        raise ValueError(f"prefix /{network.prefixlen} is not between /{widest} and /{narrowest}")
    return str(network)


ReplicaCount = Annotated[Literal[1, 3, 5, 7], BeforeValidator(replica_count)]
ReplicaName = Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]
ServiceCidr = Annotated[str, BeforeValidator(_one_range), AfterValidator(_service_cidr), NETWORK]


class Placement(Model):
    """Where the replicas are placed. No zones: all of the site; no storage class: the site's first."""

    site: SiteName
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] | None = None
    storage_class: StorageClassName | None = None

    @model_validator(mode="after")
    def _zones_are_distinct(self) -> Placement:
        if self.zones is not None:
            if not self.zones:
                refuse(("zones", "is empty; omit it for all zones of the site"))
            if len(set(self.zones)) < len(self.zones):
                refuse(("zones", "names a zone twice"))
        return self


class Events(Model):
    """The events' etcd: with ``separate`` each replica has a second member, with its own volumes.

    No ``storage_class``: that of etcd's other volumes. It is kept while ``separate`` is off.
    """

    separate: bool = False
    storage_class: StorageClassName | None = None
    quota_bytes: Annotated[Bytes, Field(ge=QUOTA_MIN, le=QUOTA_MAX)] = QUOTA_DEFAULT


class Etcd(Model):
    """etcd's settings; they are equal on all members. Intervals in milliseconds, as etcd's flags are.

    No ``heartbeat_milliseconds`` or ``election_milliseconds``: etcd's defaults (100 and 1000).
    ``storage_class`` overrides the placement's.
    """

    version: EtcdVersion = DEFAULT_ETCD_VERSION
    quota_bytes: Annotated[Bytes, Field(ge=QUOTA_MIN, le=QUOTA_MAX)] = QUOTA_DEFAULT
    storage_class: StorageClassName | None = None
    heartbeat_milliseconds: Annotated[int, Field(ge=10, le=10_000)] | None = None
    election_milliseconds: Annotated[int, Field(ge=100, le=ETCD_ELECTION_MAX)] | None = None
    events: Events = Events()

    @model_validator(mode="after")
    def _an_election_takes_five_heartbeats(self) -> Etcd:
        heartbeat = self.heartbeat_milliseconds or ETCD_HEARTBEAT
        election = self.election_milliseconds or ETCD_ELECTION
        if election < 5 * heartbeat:
            refuse(
                (
                    "electionMilliseconds",
                    f"{election} is less than five heartbeats of {heartbeat}; etcd refuses that",
                )
            )
        return self


class Encryption(Model):
    """Encryption at rest."""

    secrets: bool = True


class Audit(Model):
    """The apiserver's audit log, with the policy in ``policy_file``: it is read when the plane is created, and at every
    apply.
    """

    policy_file: AbsolutePath
    max_age_days: Annotated[int, Field(ge=1)] = 30
    max_backups: Annotated[int, Field(ge=1)] = 10
    max_size_megabytes: Annotated[int, Field(ge=1)] = 100


class ExtraArgs(Model):
    """Flags added to the components', name without dashes to value. They override quarterdeck's own."""

    etcd: Flags = Field(default_factory=dict)
    kube_apiserver: Flags = Field(default_factory=dict)
    kube_controller_manager: Flags = Field(default_factory=dict)
    kube_scheduler: Flags = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _are_by_program(cls, given: object) -> object:
        if isinstance(given, list):
            raise ValueError(LISTED_FLAGS)
        return given


class Certificates(Model):
    """``generation`` counts the requested renewals of all leaf certificates."""

    generation: Annotated[int, Field(ge=0)] = 0


class OnFailure(StrEnum):
    """The reaction to a change with which the first replica does not become healthy."""

    GO_BACK = "GoBack"
    STAY = "Stay"


class Rollout(Model):
    """How a change is rolled out to the replicas."""

    on_failure: OnFailure = OnFailure.GO_BACK
    #: Where controllers move to another manager, those of all replicas may stop at once, if that is shorter.
    downtime_allowed: bool = False


class RecoveryPolicy(StrEnum):
    """Whether recovery from a lost quorum needs a confirmation each time: data that only the lost members had is lost
    for good.
    """

    CONFIRMED = "confirmed"
    AUTOMATIC = "automatic"


class NewEpoch(Model):
    """Consent to restart the main etcd cluster, as that ``epoch``, from a surviving member. It is used up when that
    epoch has begun, or a quorum answers without one.
    """

    epoch: Annotated[int, Field(ge=1)]
    #: Proceed although members that do not answer may still serve clients.
    even_if_others_live: bool = False


class Healing(Model):
    """When a replica is replaced automatically."""

    #: The most replacements within an hour (0: none).
    budget: Annotated[int, Field(ge=0, le=100)] = 3
    #: How long a machine is down before its replica is replaced.
    after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 5
    #: Whether the new replica may be in another zone.
    other_zones: bool = True
    #: ``after_seconds`` where no machine of its zone is free, or half of the site looks dead at once.
    other_zones_after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    #: How long a program hangs before it is restarted, or fails to start before its replica is replaced.
    hung_after_seconds: Annotated[int, Field(ge=5, le=86_400)] = 30
    #: How long an etcd member that answers is far behind the others' data and comes no nearer before its replica is
    #: replaced; a joining member has ten minutes at least.
    lagging_after_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300


class ControlPlaneSpec(Model):
    """The desired state of a plane."""

    kubernetes_version: KubernetesVersion = DEFAULT_KUBERNETES_VERSION
    replicas: ReplicaCount = 3
    placement: Placement
    etcd: Etcd = Etcd()
    endpoint: Endpoint = Endpoint()
    service_cidr: ServiceCidr = "10.96.0.0/16"
    encryption: Encryption = Encryption()
    #: None: quarterdeck's own policy.
    audit: Audit | None = None
    authentication: Authentication | None = None
    admission: Admission | None = None
    tracing: Tracing | None = None
    extra_args: ExtraArgs = ExtraArgs()
    #: None: replicas run none.
    cloud_controller_manager: CloudControllerManager | None = None
    #: Controllers that move from one manager to another together.
    controller_sets: ControllerSets = ()
    nodes: Nodes = Nodes()
    certificates: Certificates = Certificates()
    #: Replicas whose replacement is requested, healthy or not.
    replace_replicas: Annotated[tuple[ReplicaName, ...], ONCE] = ()
    #: Replicas that healing and changes leave alone.
    cordoned_replicas: tuple[CordonedReplica, ...] = ()
    rollout: Rollout = Rollout()
    addons: Addons = ()
    drills: DrillSchedules = ()
    #: What happens when the quorum of etcd is lost for good.
    recovery: RecoveryPolicy = RecoveryPolicy.CONFIRMED
    new_epoch: NewEpoch | None = None
    healing: Healing = Healing()
    #: Whether quarterdeck changes nothing; see ``paused_until``.
    paused: bool = False
    #: The end of the pause; None: until it is resumed.
    paused_until: AwareDatetime | None = None

    @model_validator(mode="after")
    def _only_a_pause_ends(self) -> ControlPlaneSpec:
        if self.paused_until is not None and not self.paused:
            refuse(("pausedUntil", "is given, and paused is not"))
        return self

    def paused_at(self, now: datetime) -> bool:
        """Whether the plane is paused now."""
        return self.paused and (self.paused_until is None or now < self.paused_until)

    @model_validator(mode="after")
    def _replicas_are_named_once(self) -> ControlPlaneSpec:
        if len(set(self.replace_replicas)) < len(self.replace_replicas):
            refuse(("replaceReplicas", "names a replica twice"))
        if len(set(self.cordoned)) < len(self.cordoned):
            refuse(("cordonedReplicas", "names a replica twice"))
        return self

    @property
    def cordoned(self) -> tuple[str, ...]:
        """The names of the cordoned replicas."""
        return tuple(each.replica for each in self.cordoned_replicas)

    @property
    def etcd_storage_class(self) -> str | None:
        """The storage class of etcd's volumes; None: the site's first."""
        return self.etcd.storage_class or self.placement.storage_class

    @property
    def events_storage_class(self) -> str | None:
        """The storage class of the volumes of the events' etcd, whether there is one or not; None: the site's first."""
        return self.etcd.events.storage_class or self.etcd_storage_class

    @property
    def storage_classes(self) -> tuple[str | None, ...]:
        """The storage classes of all volumes of replicas; None: the site's first."""
        separate = (self.events_storage_class,) if self.etcd.events.separate else ()
        return tuple(dict.fromkeys((self.etcd_storage_class, *separate)))


class ControlPlaneStatus(Model):
    """The recorded state of a plane."""

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    #: The plane's number, from which its ports are counted.
    port_offset: Annotated[int, Field(ge=0)] | None = None
    #: The ReplicaRevision that all its replicas must run; "": not rendered yet.
    revision: str = ""
    #: The revisions before it, the nearest to it last.
    via: tuple[str, ...] = ()
    #: The AddonManifests that must be applied; "": none.
    addon_manifests: str = ""
    #: The state of each add-on.
    addons: tuple[AddonStatus, ...] = ()
    memory: MemoryStatus = MemoryStatus()


class StatusChanges(TypedDict, total=False):
    """Fields of a plane's status, with new values: see ``ControlPlaneStatus``."""

    observed_generation: int | None
    conditions: tuple[Condition, ...]
    port_offset: int | None
    revision: str
    via: tuple[str, ...]
    addon_manifests: str
    addons: tuple[AddonStatus, ...]
    memory: MemoryStatus


class ControlPlane(Resource):
    """A control plane."""

    kind: Literal["ControlPlane"] = "ControlPlane"
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX)), named(PLANE_NAME_MAX)]
    spec: ControlPlaneSpec
    status: ControlPlaneStatus = ControlPlaneStatus()

    @model_validator(mode="after")
    def _the_host_fits(self) -> ControlPlane:
        if len(self.host) > DNS_NAME_MAX:
            refuse(("metadata.name", f"makes an endpoint name of {len(self.host)} characters, over {DNS_NAME_MAX}"))
        return self

    @property
    def host(self) -> str:
        """What clients connect to: a DNS name, or in endpoint mode ``address`` an address."""
        return self.spec.endpoint.host_of(self.metadata.name)

    def with_spec(self, **changes: object) -> ControlPlane:
        """The plane with new values of fields of its spec, which must be valid."""
        return self.model_copy(update={"spec": self.spec.model_copy(update=changes)})

    def with_status(self, **changes: Unpack[StatusChanges]) -> ControlPlane:
        """The plane with new values of fields of its status. All writers of a status use it."""
        return self.model_copy(update={"status": self.status.model_copy(update=changes)})


def new_control_plane(
    name: str, *, site: str, replicas: int = 3, kubernetes_version: str = DEFAULT_KUBERNETES_VERSION
) -> ControlPlane:
    """A plane with default values. Raises pydantic's ValidationError: see ``quarterdeck.api.errors.explained``."""
    return ControlPlane.model_validate(
        {
            "metadata": {"name": name},
            "spec": {"kubernetesVersion": kubernetes_version, "replicas": replicas, "placement": {"site": site}},
        }
    )
