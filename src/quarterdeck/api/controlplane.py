"""ControlPlane: the Kubernetes control plane that a user declares."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, TypedDict, Unpack

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, model_validator

from quarterdeck.api.base import Condition, Metadata, Model, Resource, named_within
from quarterdeck.api.flags import LISTED_FLAGS, Flags
from quarterdeck.api.names import DNS_LABEL_MAX, DNS_NAME_MAX, PLANE_NAME_MAX, dns_label
from quarterdeck.api.plane.addons import Addons, AddonStatus
from quarterdeck.api.plane.apiserver import Admission, Audit, Tracing
from quarterdeck.api.plane.authentication import Authentication
from quarterdeck.api.plane.authorization import Authorization
from quarterdeck.api.plane.backup import BackupSettings, BackupStatus
from quarterdeck.api.plane.certificates import Certificates
from quarterdeck.api.plane.controllers import CloudControllerManager, ControllerSets
from quarterdeck.api.plane.drills import DrillSchedules
from quarterdeck.api.plane.endpoint import Endpoint
from quarterdeck.api.plane.epochs import MOST_WITH_STANDBY, NewEpoch, StandbyPlacement
from quarterdeck.api.plane.etcd import Etcd
from quarterdeck.api.plane.keys import Keys
from quarterdeck.api.plane.memory import MemoryStatus
from quarterdeck.api.plane.nodes import Nodes
from quarterdeck.api.plane.scheduler import IGNORED_FLAGS, Scheduler
from quarterdeck.api.plane.service_accounts import ServiceAccounts
from quarterdeck.api.plane.services import ServiceCidrs
from quarterdeck.api.plane.upgrade import UpgradeSettings
from quarterdeck.api.schema import ONCE, SOME_ONCE, label, named, refuse, refuse_if_any
from quarterdeck.api.site import CordonedReplica
from quarterdeck.api.values import (
    DEFAULT_KUBERNETES_VERSION,
    KubernetesVersion,
    SiteName,
    StorageClassName,
    ZoneName,
)

#: Removed by the process that deletes a plane when nothing is left of it.
PLANE_FINALIZER = "quarterdeck.dev/plane"
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


ReplicaCount = Annotated[Literal[1, 3, 5, 7], BeforeValidator(replica_count)]
ReplicaName = Annotated[str, AfterValidator(dns_label), label(DNS_LABEL_MAX)]


class Placement(Model):
    """Where the replicas are."""

    #: The site of all replicas. Another site here migrates the plane.
    site: SiteName
    #: The zones that replicas are spread over; without it, all zones of the site.
    zones: Annotated[tuple[ZoneName, ...], SOME_ONCE] | None = None
    #: The storage class of the volumes; without it, the first of the site.
    storage_class: StorageClassName | None = None

    @model_validator(mode="after")
    def _zones_are_distinct(self) -> Placement:
        if self.zones is not None:
            if not self.zones:
                refuse(("zones", "is empty; omit it for all zones of the site"))
            if len(set(self.zones)) < len(self.zones):
                refuse(("zones", "names a zone twice"))
        return self


class Encryption(Model):
    """Encryption at rest."""

    #: Whether apiservers encrypt Secrets before they write them to etcd.
    secrets: bool = True


class ExtraArgs(Model):
    """Additional flags of the components: names without dashes, and values. They override those of quarterdeck."""

    #: Flags of etcd.
    etcd: Flags = Field(default_factory=dict)
    #: Flags of kube-apiserver.
    kube_apiserver: Flags = Field(default_factory=dict)
    #: Flags of kube-controller-manager.
    kube_controller_manager: Flags = Field(default_factory=dict)
    #: Flags of kube-scheduler.
    kube_scheduler: Flags = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _are_by_program(cls, given: object) -> object:
        if isinstance(given, list):
            raise ValueError(LISTED_FLAGS)
        return given


class OnFailure(StrEnum):
    """What happens when the first replica with a new revision does not become healthy."""

    #: The replica returns to the revision before.
    GO_BACK = "GoBack"
    #: The replica keeps the new revision, and the rollout stops.
    STAY = "Stay"


class Rollout(Model):
    """How a new revision reaches the replicas."""

    #: What happens when the first replica with the new revision does not become healthy.
    on_failure: OnFailure = OnFailure.GO_BACK
    #: Whether the controllers of all replicas may stop at the same time when they move to another manager.
    downtime_allowed: bool = False
    #: The generation of certificates for which replicas whose own have expired are restarted without a quorum.
    #: `quarterdeck certs renew` writes it, with `--offline`.
    offline_generation: Annotated[int, Field(ge=0)] = 0


class RecoveryPolicy(StrEnum):
    """Whether the loss of the quorum needs consent to recover. Data that only lost members had is lost then."""

    #: A person confirms each recovery with `quarterdeck recover`.
    CONFIRMED = "confirmed"
    #: The manager recovers the plane by itself.
    AUTOMATIC = "automatic"


class Healing(Model):
    """When an unhealthy replica is replaced without a person."""

    #: The number of replicas that may be replaced within an hour; 0: none.
    budget: Annotated[int, Field(ge=0, le=100)] = 3
    #: How long a machine is down before its replica is replaced.
    after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 5
    #: Whether the new replica may be in another zone when no machine of its zone is free.
    other_zones: bool = True
    #: `afterSeconds` for the case that no machine of the zone is free, or that half of the site looks dead.
    other_zones_after_seconds: Annotated[int, Field(ge=1, le=86_400)] = 300
    #: How long a program hangs before it is restarted, or fails to start before its replica is replaced.
    hung_after_seconds: Annotated[int, Field(ge=5, le=86_400)] = 30
    #: How long an etcd member stays far behind the others before its replica is replaced. One that joins has at least
    #: ten minutes.
    lagging_after_seconds: Annotated[int, Field(ge=10, le=86_400)] = 300


class ControlPlaneSpec(Model):
    """The plane that the user asks for."""

    #: The version of Kubernetes. A plane keeps its own where a document names none.
    kubernetes_version: KubernetesVersion = DEFAULT_KUBERNETES_VERSION
    #: How far the plane goes with that version; without it, it behaves as that version, and can go back to the former
    #: minor version.
    upgrade: UpgradeSettings | None = None
    #: The number of replicas.
    replicas: ReplicaCount = 3
    #: Where the replicas are.
    placement: Placement
    #: A copy of the data at another site, kept up to date; without it, there is none.
    standby: StandbyPlacement | None = None
    #: Settings of etcd.
    etcd: Etcd = Etcd()
    #: The name or address that clients connect to.
    endpoint: Endpoint = Endpoint()
    #: The network of the Services' cluster IPs, or two networks: one of IPv4, and one of IPv6. The first cannot change
    #: later; a second one can be added, and then cannot change either.
    service_cidrs: ServiceCidrs = ("10.96.0.0/16",)
    #: Encryption at rest.
    encryption: Encryption = Encryption()
    #: The audit log; without it, quarterdeck's own policy applies.
    audit: Audit | None = None
    #: The issuers whose tokens apiservers accept besides those of the plane.
    authentication: Authentication | None = None
    #: Tokens of service accounts.
    service_accounts: ServiceAccounts = ServiceAccounts()
    #: Webhooks that authorize requests besides Node and RBAC.
    authorization: Authorization | None = None
    #: Configuration of admission plugins.
    admission: Admission | None = None
    #: Where apiservers send traces; without it, they send none.
    tracing: Tracing | None = None
    #: The configuration of schedulers; without it, they have upstream's defaults.
    scheduler: Scheduler | None = None
    #: Additional flags of the components.
    extra_args: ExtraArgs = ExtraArgs()
    #: The cloud controller manager of each replica; without it, replicas have none.
    cloud_controller_manager: CloudControllerManager | None = None
    #: Controllers that can move from one manager to another.
    controller_sets: ControllerSets = ()
    #: Settings of worker nodes.
    nodes: Nodes = Nodes()
    #: The certificates of the plane.
    certificates: Certificates = Certificates()
    #: The keys of the plane.
    keys: Keys = Keys()
    #: Replicas to replace, also while they are healthy. `quarterdeck replica replace` writes them.
    replace_replicas: Annotated[tuple[ReplicaName, ...], ONCE] = ()
    #: Replicas that are not healed or changed. `quarterdeck replica cordon` writes them.
    cordoned_replicas: tuple[CordonedReplica, ...] = ()
    #: How a new revision reaches the replicas.
    rollout: Rollout = Rollout()
    #: Kubernetes objects that the plane always has.
    addons: Addons = ()
    #: Drills that the manager runs regularly.
    drills: DrillSchedules = ()
    #: Continuous backups.
    backup: BackupSettings = BackupSettings()
    #: Whether the loss of the quorum needs consent to recover.
    recovery: RecoveryPolicy = RecoveryPolicy.CONFIRMED
    #: Consent to start the main etcd cluster again. `quarterdeck recover` and `quarterdeck restore` write it.
    new_epoch: NewEpoch | None = None
    #: When an unhealthy replica is replaced without a person.
    healing: Healing = Healing()
    #: Whether quarterdeck changes nothing in the plane. `quarterdeck pause` writes it.
    paused: bool = False
    #: When the pause ends; without it, `quarterdeck resume` ends it.
    paused_until: AwareDatetime | None = None

    @model_validator(mode="after")
    def _only_a_pause_ends(self) -> ControlPlaneSpec:
        if self.paused_until is not None and not self.paused:
            refuse(("pausedUntil", "is given, and paused is not"))
        return self

    @model_validator(mode="after")
    def _a_standby_is_elsewhere(self) -> ControlPlaneSpec:
        if self.standby is None:
            return self
        if self.standby.site == self.placement.site:
            refuse(("standby.site", "is the site of the replicas; name another one, or migrate the plane"))
        if self.replicas > MOST_WITH_STANDBY:
            refuse(("standby", f"needs replicas of {MOST_WITH_STANDBY} or fewer: etcd takes 7 learners at once"))
        return self

    @model_validator(mode="after")
    def _other_issuers_are_others(self) -> ControlPlaneSpec:
        if self.authentication is not None:
            refuse_if_any(
                [
                    (
                        f"authentication.jwt[{number}].issuer.url",
                        f"{each.issuer.url} is an issuer of the plane's own service accounts",
                    )
                    for number, each in enumerate(self.authentication.jwt)
                    if each.issuer.url in self.service_accounts.issuers
                ]
            )
        return self

    @model_validator(mode="after")
    def _no_flag_is_ignored(self) -> ControlPlaneSpec:
        if self.scheduler is not None:
            refuse_if_any(
                [
                    (
                        f"extraArgs.kubeScheduler.{flag}",
                        f"has no effect beside spec.scheduler.configuration; set {IGNORED_FLAGS[flag]} there",
                    )
                    for flag in self.extra_args.kube_scheduler
                    if flag in IGNORED_FLAGS
                ]
            )
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
    """The state of the plane. Only quarterdeck writes it."""

    #: The generation of the spec that was last acted on.
    observed_generation: int | None = None
    #: The conditions of the plane.
    conditions: tuple[Condition, ...] = ()
    #: The plane's own number, from which its ports follow.
    port_offset: Annotated[int, Field(ge=0)] | None = None
    #: The ReplicaRevision that all replicas should run; empty before there is one.
    revision: str = ""
    #: The ReplicaRevisions that replicas run first on their way to `revision`, the last one nearest to it.
    via: tuple[str, ...] = ()
    #: The AddonManifests that should be applied; empty without add-ons.
    addon_manifests: str = ""
    #: The state of each add-on.
    addons: tuple[AddonStatus, ...] = ()
    #: The epoch of the main etcd cluster whose data records the binding of `quarterdeck:cluster-admins`; absent before.
    administrators_epoch: Annotated[int, Field(ge=0)] | None = None
    #: Whether the plane was brought back from a backup, and its data was not restored yet. It is paused until then.
    awaits_data: bool = False
    #: The backups of the plane; absent where it has none.
    backup: BackupStatus | None = None
    #: What the planner remembers of the plane. Its fields are internal and can change with each version.
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
    administrators_epoch: int | None
    awaits_data: bool
    backup: BackupStatus | None
    memory: MemoryStatus


class ControlPlane(Resource):
    """A control plane."""

    #: The kind of the resource.
    kind: Literal["ControlPlane"] = "ControlPlane"
    #: The name of the plane and its labels.
    metadata: Annotated[Metadata, AfterValidator(named_within(PLANE_NAME_MAX)), named(PLANE_NAME_MAX)]
    #: The plane that the user asks for.
    spec: ControlPlaneSpec
    #: The state of the plane. Only quarterdeck writes it.
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
