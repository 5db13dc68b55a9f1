"""The status of a plane, and the events of planes."""

from __future__ import annotations

from typing_extensions import override

from quarterdeck.api.output.base import Instant, Message, NamedOutput, OutputModel


class ClusterMember(OutputModel):
    """What a replica is in an etcd cluster."""

    #: `leader`, `voter`, `learner`, `none`, or `unknown` where no quorum answers.
    member: str
    #: The health of the member, such as `healthy`; null where there is no member.
    health: str | None
    #: Log entries that the member is behind the leader; null where that is not known.
    lag_entries: int | None


class PlaneReplica(ClusterMember):
    """A replica, observed now."""

    #: The replica's name.
    replica: str
    #: Its site.
    site: str
    #: Its zone.
    zone: str
    #: Its machine.
    machine: str
    #: The state of the machine, such as `up`.
    machine_state: str
    #: What the replica is in the etcd of the events; null where it is not in it.
    events: ClusterMember | None
    #: `ready`, or the state of the apiserver's unit.
    apiserver: str
    #: The state of each component's unit, by the component's name.
    components: dict[str, str]


class PlaneBalancer(OutputModel):
    """A load balancer, observed now."""

    #: Its site.
    site: str
    #: Whether it runs; null where that is not known.
    running: bool | None
    #: The replicas that it sends new connections to.
    backends: tuple[str, ...]
    #: Connections that it holds; null where that is not known.
    connections: int | None


class FailureSurvival(OutputModel):
    """Whether the plane survives any one failure of a kind."""

    #: What fails: `machine`, `host`, `zone`, `edge`, `dns` or `site`.
    failure: str
    #: `yes`, `no` or `unknown`.
    answer: str
    #: Why not, or why that is not known.
    reasons: tuple[str, ...]


class PlaneAddon(OutputModel):
    """An add-on of the plane."""

    #: Its name.
    name: str
    #: How many objects it has.
    objects: int
    #: Why it is not up to date; null where it is.
    message: str | None


class LeaseStatus(OutputModel):
    """The lease of one kind of controllers."""

    #: The Lease in kube-system.
    lease: str
    #: Whether a process of the plane leads; null where that is not known.
    led: bool | None
    #: Its holderIdentity; null where nobody holds it.
    holder: str | None
    #: Seconds since a process of the plane renewed it; null where that is not known.
    renewed_seconds_ago: float | None
    #: When another process may take it; null where that is not known.
    expires_at: Instant | None
    #: Whether that time is over.
    expired: bool
    #: Why nobody leads and what to do about it; null where somebody leads.
    message: str | None


class PlaneBackup(OutputModel):
    """The backups of a plane, as they were within the last minute."""

    #: The newest etcd revision that can be restored.
    revision: int
    #: A time at which there was no newer revision.
    restorable_at: Instant
    #: The number of full backups.
    fulls: int
    #: The size of all objects in the backup store.
    size_bytes: int
    #: The etcd revision that was verified last; null before the first verification.
    verified_revision: int | None
    #: When it was verified.
    verified_at: Instant | None


class PlaneUpgrade(OutputModel):
    """How far a plane goes with its version of Kubernetes."""

    #: Its window: `emulating`, `raised` or `final`.
    window: str
    #: The minor version that its programs behave as in that window.
    behaves_as: str
    #: The version at the end of an upgrade over several minor versions; null where there is none.
    to: str | None


class PlaneEtcd(OutputModel):
    """How far a plane goes with its version of etcd."""

    #: The version that the spec asks for.
    version: str
    #: The minor version that all members work as; null where it was not read: it is while versions differ.
    works_as: str | None
    #: The minor version to which etcd is being taken back; null where it is not.
    downgrade: str | None
    #: Whether one member keeps the former minor version: then the way back is free.
    keeps_one: bool
    #: The version at the end of an upgrade over several minor versions; null where there is none.
    to: str | None


class PlaneStatus(NamedOutput):
    """A plane, observed now."""

    #: The plane's name.
    name: str
    #: The site that the spec asks for.
    site: str
    #: The number of replicas that the spec asks for.
    replicas: int
    #: The Kubernetes version that the spec asks for.
    kubernetes_version: str
    #: How far the spec goes with that version.
    upgrade: PlaneUpgrade
    #: The version of etcd, and how far the spec goes with it.
    etcd: PlaneEtcd
    #: The name or address that clients connect to.
    endpoint: str
    #: Whether nothing is left to do, all controllers are led, and etcd has raised no alarm.
    healthy: bool
    #: Whether the plane is paused.
    paused: bool
    #: When the pause ends; null where it does not end by itself.
    paused_until: Instant | None
    #: The kinds of the steps that would be taken now.
    doing: tuple[str, ...]
    #: What is waited for.
    waiting: tuple[Message, ...]
    #: What is left on machines that do not answer.
    leftovers: tuple[Message, ...]
    #: The operation in progress; null where there is none.
    operation: str | None
    #: The process that drives the plane; null where there is none.
    driver: str | None
    #: Why the operation needs a person; null where it does not.
    stalled: Message | None
    #: Which of its replicas and machines are cordoned.
    cordoned: tuple[Message, ...]
    #: Its add-ons.
    addons: tuple[PlaneAddon, ...]
    #: The number of voters; null where no quorum of etcd answers, as the next three.
    voters: int | None
    #: How many healthy voters can fail before the quorum is lost.
    may_fail: int | None
    #: The site whose voters are a quorum by themselves; null also where there is no such site.
    quorum_at: str | None
    #: The alarms that etcd has raised.
    alarms: tuple[str, ...] | None
    #: Which single failures it survives.
    survives: tuple[FailureSurvival, ...]
    #: The site that the plane's name leads to, `the apiservers`, or `unknown`; null where it leads to nothing.
    name_leads_to: str | None
    #: Its backups; null where it has none.
    backup: PlaneBackup | None
    #: What is not well.
    warnings: tuple[Message, ...]
    #: The replica that leads, by kind of controllers; null where no replica says so.
    leaders: dict[str, str | None]
    #: The holderIdentity, by kind of controllers; empty where nobody holds the lease, null where that is not known.
    leader_identities: dict[str, str | None]
    #: The leases, by kind of controllers.
    controller_leases: dict[str, LeaseStatus]
    #: Its replicas.
    members: tuple[PlaneReplica, ...]
    #: Its load balancers.
    load_balancers: tuple[PlaneBalancer, ...]

    @property
    @override
    def full_name(self) -> str:
        return f"plane/{self.name}"


class WatchedStatus(NamedOutput):
    """One line of `status --watch -o json`: a plane whose status has changed."""

    #: The plane's name.
    name: str
    #: What was last seen of it; null where it was not seen yet.
    status: PlaneStatus | None
    #: Why the last observation failed; null where it did not.
    message: str | None

    @property
    @override
    def full_name(self) -> str:
        return f"plane/{self.name}"


class EventRow(OutputModel):
    """An event of a plane. Repeats are counted."""

    #: The plane.
    plane: str
    #: `Normal` or `Warning`.
    type: str
    #: What kind of event it is, such as `DataLost`.
    reason: str
    #: What was seen.
    message: str
    #: How often it was seen.
    count: int
    #: When it was seen first.
    first_seen_at: Instant
    #: When it was seen last.
    last_seen_at: Instant
