"""Every metric: docs/reference/metrics.md is generated from it, and no other metric may be served."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """The kinds of Prometheus metrics in use."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A Prometheus metric, by its full name. ``unit`` is for people; ``says`` is its help text."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    unit: str
    says: str


def _gauge(name: str, labels: str, unit: str, says: str) -> Metric:
    return Metric(f"quarterdeck_{name}", MetricKind.GAUGE, tuple(labels.split()), unit, says)


_MEMBER = "plane cluster replica"
SETTLED = _gauge("plane_settled", "plane", "0 or 1", "Whether the whole plane is up to date.")
AVAILABLE = _gauge(
    "plane_available", "plane", "0 or 1", "Whether the plane's name leads to a ready apiserver, once it ever did."
)
WAITING = _gauge("plane_waiting", "plane", "reasons", "Conditions that the plane waits for before it is up to date.")
WARNINGS = _gauge(
    "plane_warnings", "plane reason", "warnings", "Current problems of the plane, by the reason of their event."
)
SURVIVED = _gauge(
    "plane_failure_survived",
    "plane failure answer",
    "0 or 1",
    "Whether the plane survives any one failure of a kind now: 1 for the answer (yes, no, unknown) that applies.",
)
LED = _gauge(
    "plane_controllers_led",
    "plane component",
    "0 or 1",
    "Whether a process of the plane leads these controllers: it renewed their lease within the last 30 seconds.",
)
REPLICAS = _gauge("plane_replicas", "plane state", "replicas", "Replicas by state: wanted, missing or unwanted.")
READY = _gauge("plane_apiservers_ready", "plane", "replicas", "Replicas whose apiserver reports ready.")
MEMBERSHIP = _gauge(
    "etcd_membership_known", "plane cluster", "0 or 1", "Whether a quorum confirmed the list of etcd members."
)
MEMBERS = _gauge("etcd_members", "plane cluster role health", "members", "Members of etcd, by role and health.")
MARGIN = _gauge(
    "etcd_quorum_margin",
    "plane cluster",
    "members",
    "How many more healthy voters may fail; negative: the cluster has no leader.",
)
UNKNOWN_MEMBERS = _gauge(
    "etcd_unknown_members",
    "plane cluster",
    "members",
    "Members that belong to no replica: another user or program added them, and each voter among them counts in "
    "the quorum.",
)
LAG = _gauge("etcd_member_lag_entries", _MEMBER, "entries", "How far a member is behind the leader's log.")
LAGGING = _gauge(
    "etcd_member_lagging", _MEMBER, "0 or 1", "Whether a member is far behind the leader's log, and comes no nearer."
)
FSYNC = _gauge(
    "etcd_member_wal_fsync_p99_seconds", _MEMBER, "seconds", "99 % of the last minutes' syncs of the log took less."
)
COMMIT = _gauge(
    "etcd_member_backend_commit_p99_seconds",
    _MEMBER,
    "seconds",
    "99 % of the last minutes' commits to the database took less.",
)
DATABASE = _gauge("etcd_member_database_bytes", _MEMBER, "bytes", "The size of a member's database file.")
IN_USE = _gauge("etcd_member_database_in_use_bytes", _MEMBER, "bytes", "How much of that is in use.")
QUOTA = _gauge(
    "etcd_member_database_quota_bytes", _MEMBER, "bytes", "The size beyond which a member accepts no writes."
)
ALARM = _gauge(
    "etcd_alarm",
    "plane cluster alarm",
    "0 or 1",
    "Whether etcd has raised an alarm, or has its AUTHENTICATION enabled.",
)
BACKENDS = _gauge(
    "load_balancer_backends",
    "plane site state",
    "replicas",
    "Replicas that a load balancer is configured with, and those of them that pass its check.",
)
CONNECTIONS = _gauge("load_balancer_connections", "plane site", "connections", "Open connections of clients.")
CERTIFICATE = _gauge(
    "certificate_expiry_timestamp_seconds",
    "plane",
    "seconds since the epoch",
    "When the first of all certificates of the plane's programs expires.",
)
RESTORABLE = _gauge(
    "backup_restorable_timestamp_seconds",
    "plane",
    "seconds since the epoch",
    "A time up to which everything can be restored from the backup, as of the last minute.",
)
BACKUP_SIZE = _gauge("backup_size_bytes", "plane", "bytes", "The size of all objects of the backup.")
BACKUP_FULLS = _gauge("backup_fulls", "plane", "full backups", "The number of full backups of etcd.")
VERIFIED = _gauge(
    "backup_verified_timestamp_seconds",
    "plane",
    "seconds since the epoch",
    "When a backup was last restored in a scratch etcd and compared; absent before the first time.",
)
OPERATIONS = _gauge("operations", "plane phase", "operations", "Operations of a plane, by phase.")
ANSWERED = _gauge(
    "network_answered",
    "network",
    "0 or 1",
    "Whether the process that manages the planes on a network of their own reports them.",
)
LOOKED = _gauge("plane_look_timestamp_seconds", "plane", "seconds since the epoch", "When the plane was last observed.")
LOOK = _gauge("plane_look_duration_seconds", "plane", "seconds", "How long that observation took.")
STEPS = Metric(
    "quarterdeck_steps_total",
    MetricKind.COUNTER,
    ("plane", "step", "outcome"),
    "steps",
    "Steps that were taken, by outcome (done, failed).",
)
TROUBLES = Metric(
    "quarterdeck_troubles_total",
    MetricKind.COUNTER,
    ("plane",),
    "troubles",
    "Failures outside of steps; each is counted once as long as it lasts.",
)
SECONDS = Metric(
    "quarterdeck_step_duration_seconds",
    MetricKind.HISTOGRAM,
    ("step",),
    "seconds",
    "How long completed steps took.",
)
#: In the order in which people read them.
METRICS = (
    SETTLED,
    AVAILABLE,
    SURVIVED,
    WAITING,
    WARNINGS,
    LED,
    REPLICAS,
    READY,
    MEMBERSHIP,
    MEMBERS,
    MARGIN,
    UNKNOWN_MEMBERS,
    LAG,
    LAGGING,
    FSYNC,
    COMMIT,
    DATABASE,
    IN_USE,
    QUOTA,
    ALARM,
    BACKENDS,
    CONNECTIONS,
    CERTIFICATE,
    RESTORABLE,
    BACKUP_SIZE,
    BACKUP_FULLS,
    VERIFIED,
    OPERATIONS,
    ANSWERED,
    STEPS,
    SECONDS,
    TROUBLES,
    LOOKED,
    LOOK,
)
