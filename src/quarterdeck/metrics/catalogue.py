"""Every metric that there is: docs/reference/metrics.md is written from it, and nothing else may be told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """Prometheus' kinds of metrics that are used."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric as Prometheus knows it, by its whole name. ``unit`` is for people; ``says`` is its help."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    unit: str
    says: str


def _gauge(name: str, labels: str, unit: str, says: str) -> Metric:
    return Metric(f"quarterdeck_{name}", MetricKind.GAUGE, tuple(labels.split()), unit, says)


_MEMBER = "plane cluster replica"
SETTLED = _gauge("plane_settled", "plane", "0 or 1", "Whether all of the plane is as wanted.")
AVAILABLE = _gauge(
    "plane_available", "plane", "0 or 1", "Whether the plane's name leads to a ready apiserver, once it ever did."
)
WAITING = _gauge("plane_waiting", "plane", "reasons", "What is waited for before the plane can be as wanted.")
WARNINGS = _gauge(
    "plane_warnings", "plane reason", "warnings", "What is not well now, by the reason of the event that tells of it."
)
SURVIVED = _gauge(
    "plane_failure_survived",
    "plane failure answer",
    "0 or 1",
    "Whether the plane survives any one failure of a kind right now: 1 for the answer (yes, no, unknown) that holds.",
)
LED = _gauge(
    "plane_controllers_led",
    "plane component",
    "0 or 1",
    "Whether a process of the plane leads these controllers: it renewed their lease within the last 30 seconds.",
)
REPLICAS = _gauge("plane_replicas", "plane state", "replicas", "Replicas that are wanted, missing and unwanted.")
READY = _gauge("plane_apiservers_ready", "plane", "replicas", "Replicas whose apiserver says that it is ready.")
MEMBERSHIP = _gauge(
    "etcd_membership_known", "plane cluster", "0 or 1", "Whether a quorum confirmed who the members of etcd are."
)
MEMBERS = _gauge("etcd_members", "plane cluster role health", "members", "Members of etcd, by role and health.")
MARGIN = _gauge(
    "etcd_quorum_margin", "plane cluster", "members", "How many healthy voters more may fail; negative: none leads."
)
UNKNOWN_MEMBERS = _gauge(
    "etcd_unknown_members",
    "plane cluster",
    "members",
    "Members that belong to no replica: somebody else added them, and each voter among them counts in the quorum.",
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
    "etcd_member_database_quota_bytes", _MEMBER, "bytes", "The size past which a member takes no writes any more."
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
    "Replicas that a load balancer was told to send to, and those of them that pass its check.",
)
CONNECTIONS = _gauge("load_balancer_connections", "plane site", "connections", "Connections of clients open now.")
CERTIFICATE = _gauge(
    "certificate_expiry_timestamp_seconds",
    "plane",
    "seconds since the epoch",
    "When the first of all certificates that the plane's programs use ends.",
)
OPERATIONS = _gauge("operations", "plane phase", "operations", "What was asked of a plane, by how far it has come.")
ANSWERED = _gauge(
    "network_answered",
    "network",
    "0 or 1",
    "Whether the process that keeps the planes on a network of their own tells of them.",
)
LOOKED = _gauge(
    "plane_look_timestamp_seconds", "plane", "seconds since the epoch", "When the plane was last looked at."
)
LOOK = _gauge("plane_look_duration_seconds", "plane", "seconds", "How long that look took.")
STEPS = Metric(
    "quarterdeck_steps_total",
    MetricKind.COUNTER,
    ("plane", "step", "outcome"),
    "steps",
    "Steps that were taken, by what came of them (done, failed).",
)
TROUBLES = Metric(
    "quarterdeck_troubles_total",
    MetricKind.COUNTER,
    ("plane",),
    "troubles",
    "What failed beside steps; each is told once as long as it lasts.",
)
SECONDS = Metric(
    "quarterdeck_step_duration_seconds",
    MetricKind.HISTOGRAM,
    ("step",),
    "seconds",
    "How long steps took that were done.",
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
    OPERATIONS,
    ANSWERED,
    STEPS,
    SECONDS,
    TROUBLES,
    LOOKED,
    LOOK,
)
