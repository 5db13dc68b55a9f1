"""ControlPlane: the Kubernetes control plane that a user wants."""

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

#: Whoever takes a plane down takes this away when nothing is left of it.
PLANE_FINALIZER = "quarterdeck.dev/plane"
#: etcd's own defaults (server/embed/config.go), in milliseconds.
ETCD_HEARTBEAT = 100
ETCD_ELECTION = 1_000
#: etcd refuses to start above this, and below five heartbeats.
ETCD_ELECTION_MAX = 50_000
#: How large a database may be let grow, in bytes.
QUOTA_MIN = 64 * 2**20
QUOTA_DEFAULT = 8 * 2**30
QUOTA_MAX = 64 * 2**30


#: How many replicas a plane may have, in words.
REPLICA_COUNTS = "1, 3, 5 or 7"


def replica_count(count: object) -> object:
    """A number of replicas that can be; raises ValueError for another number."""
    if isinstance(count, bool):  # Python takes True for 1
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
    """Where the replicas are. No zones: all of the site; no storage class: the site's first."""

    site: SiteName
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] | None = None
    storage_class: StorageClassName | None = None

    @model_validator(mode="after")
    def _zones_are_distinct(self) -> Placement:
        if self.zones is not None:
            if not self.zones:
                refuse(("zones", "is empty; leave it out for all zones of the site"))
            if len(set(self.zones)) < len(self.zones):
                refuse(("zones", "names a zone twice"))
        return self


class Events(Model):
    """Events in an etcd of their own: with ``separate`` each replica has a second member, with volumes of its own.

    No ``storage_class``: that of etcd's other volumes. What it would be is kept while it is not separate.
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
    """The apiserver's audit log, by the policy in ``policy_file``: read when the plane is asked for, and when it is
    applied again.
    """

    policy_file: AbsolutePath
    max_age_days: Annotated[int, Field(ge=1)] = 30
    max_backups: Annotated[int, Field(ge=1)] = 10
    max_size_megabytes: Annotated[int, Field(ge=1)] = 100


class ExtraArgs(Model):
    """Flags added to the components', name without dashes to value. Given ones win over quarterdeck's own."""

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
    """``generation`` counts how often all leaf certificates were wanted anew."""

    generation: Annotated[int, Field(ge=0)] = 0


class OnFailure(StrEnum):
    """What becomes of a change when the first replica that takes it up does not get well."""

    GO_BACK = "GoBack"
    STAY = "Stay"


class Rollout(Model):
    """How a change goes through the replicas. ``downtime_allowed``: where controllers go from one manager to another,
    those of all replicas may stop at once, if that is the shorter way.
    """

    on_failure: OnFailure = OnFailure.GO_BACK
    downtime_allowed: bool = False


class RecoveryPolicy(StrEnum):
    """Whether a lost quorum is recovered from without being asked for each time: what nobody but the lost members
    had is lost for good then.
    """

    CONFIRMED = "confirmed"
    AUTOMATIC = "automatic"


class NewEpoch(Model):
    """Consent to begin the main etcd cluster anew, as that ``epoch``, from a member that survived: it is used up when
    that epoch has begun, or a quorum answers without one. ``even_if_others_live``: though members that do not answer
    may still serve somebody.
    """

    epoch: Annotated[int, Field(ge=1)]
    even_if_others_live: bool = False


class Healing(Model):
    """When a replica whose machine is dead is exchanged without a person. ``budget``: at most so many within an hour
    (0: never). ``after_seconds``: for how long one is down before that; ``other_zones_after_seconds``: the same where
    no machine of its zone is free, or half of the site looks dead at once; ``other_zones``: whether it may go to
    another zone then. ``hung_after_seconds``: for how long a program hangs before it is started anew, or cannot be
    started before its replica is exchanged. ``lagging_after_seconds``: the same for a member of etcd that answers, but
    is far behind the others' data and comes no nearer; one that is just joining has ten minutes at least.
    """

    budget: Annotated[int, Field(ge=0, le=100)] = 3
    after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 5
    other_zones: bool = True
    other_zones_after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    hung_after_seconds: Annotated[int, Field(ge=5, le=86_400)] = 30
    lagging_after_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300


class ControlPlaneSpec(Model):
    """What the user wants. ``audit`` None: quarterdeck's own policy. ``paused``: nothing is changed by quarterdeck,
    until ``paused_until`` if that is given. ``cloud_controller_manager`` None: replicas have none. ``controller_sets``:
    controllers that are handed from one manager to another.
    ``replace_replicas`` names replicas that a person wants exchanged, also while they are well; ``cordoned_replicas``
    those that a person wants left as they are. ``recovery`` and ``new_epoch`` say what is done when the
    quorum of etcd is lost for good.
    """

    kubernetes_version: KubernetesVersion = DEFAULT_KUBERNETES_VERSION
    replicas: ReplicaCount = 3
    placement: Placement
    etcd: Etcd = Etcd()
    endpoint: Endpoint = Endpoint()
    service_cidr: ServiceCidr = "10.96.0.0/16"
    encryption: Encryption = Encryption()
    audit: Audit | None = None
    authentication: Authentication | None = None
    admission: Admission | None = None
    tracing: Tracing | None = None
    extra_args: ExtraArgs = ExtraArgs()
    cloud_controller_manager: CloudControllerManager | None = None
    controller_sets: ControllerSets = ()
    nodes: Nodes = Nodes()
    certificates: Certificates = Certificates()
    replace_replicas: Annotated[tuple[ReplicaName, ...], ONCE] = ()
    cordoned_replicas: tuple[CordonedReplica, ...] = ()
    rollout: Rollout = Rollout()
    addons: Addons = ()
    drills: DrillSchedules = ()
    recovery: RecoveryPolicy = RecoveryPolicy.CONFIRMED
    new_epoch: NewEpoch | None = None
    healing: Healing = Healing()
    paused: bool = False
    paused_until: AwareDatetime | None = None

    @model_validator(mode="after")
    def _only_a_pause_ends(self) -> ControlPlaneSpec:
        if self.paused_until is not None and not self.paused:
            refuse(("pausedUntil", "is given, and paused is not"))
        return self

    def paused_at(self, now: datetime) -> bool:
        """Whether nothing is to be changed now."""
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
        """The names of the replicas that a person wants left as they are."""
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
    """What quarterdeck knows. ``port_offset`` is the plane's own number, that its ports are counted from.
    ``revision`` names the ReplicaRevision that all its replicas are to run ("": none was made yet), ``via`` those that
    lie before it, the nearest to it last. ``addon_manifests`` names the AddonManifests that are to be in it ("": none);
    ``addons`` is what is known of each.
    """

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    port_offset: Annotated[int, Field(ge=0)] | None = None
    revision: str = ""
    via: tuple[str, ...] = ()
    addon_manifests: str = ""
    addons: tuple[AddonStatus, ...] = ()
    memory: MemoryStatus = MemoryStatus()


class StatusChanges(TypedDict, total=False):
    """Fields of a plane's status, with other values: see ``ControlPlaneStatus``."""

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
        """The plane with other values of fields of its spec, which must be valid."""
        return self.model_copy(update={"spec": self.spec.model_copy(update=changes)})

    def with_status(self, **changes: Unpack[StatusChanges]) -> ControlPlane:
        """The plane with other values of fields of its status. Whatever writes a status makes it by this."""
        return self.model_copy(update={"status": self.status.model_copy(update=changes)})


def new_control_plane(
    name: str, *, site: str, replicas: int = 3, kubernetes_version: str = DEFAULT_KUBERNETES_VERSION
) -> ControlPlane:
    """A plane of defaults. Raises pydantic's ValidationError: see ``quarterdeck.api.errors.explained``."""
    return ControlPlane.model_validate(
        {
            "metadata": {"name": name},
            "spec": {"kubernetesVersion": kubernetes_version, "replicas": replicas, "placement": {"site": site}},
        }
    )
