"""The types and reasons of a plane's conditions. docs/reference/conditions-and-events.md is made from the comments."""

from __future__ import annotations

from enum import StrEnum


class ConditionType(StrEnum):
    """What a condition is about."""

    #: The plane matches its spec.
    READY = "Ready"
    #: The name of the plane leads to a ready apiserver, by the last observation.
    AVAILABLE = "Available"
    #: A process changes the plane so that it matches its spec.
    RECONCILING = "Reconciling"
    #: The plane does not get further until a person acts; the message says what to do.
    STALLED = "Stalled"
    #: A program of the plane leads each kind of controllers.
    CONTROLLERS_LEAD = "ControllersLead"
    #: All objects of the plane's add-ons are applied. Only planes with add-ons have it.
    ADDONS_APPLIED = "AddonsApplied"
    #: The disks of etcd are fast enough and have free space. It is measured while the manager runs.
    DISKS_HEALTHY = "DisksHealthy"
    #: The members of etcd reach each other fast enough. It is measured while the manager runs.
    LINKS_HEALTHY = "LinksHealthy"
    #: The clocks of the plane's machines agree with the clock of this host. It is measured while the manager runs.
    CLOCKS_SYNCHRONIZED = "ClocksSynchronized"
    #: No certificate or authority of the plane expires within 30 days. It is checked while the manager runs.
    CERTIFICATES_VALID = "CertificatesValid"
    #: Each drill of `spec.drills` has passed recently. Only planes with scheduled drills have it.
    DRILLED = "Drilled"
    #: The present state of etcd can be restored from a backup. Only planes with backups have it.
    BACKED_UP = "BackedUp"
    #: The last drill `total-loss` restored all objects of the plane beside it. Only planes where `spec.drills` has that
    #: drill have it.
    RESTORE_PROVEN = "RestoreProven"


class ConditionReason(StrEnum):
    """Why a condition has its status."""

    #: Any condition: no process has observed the plane yet.
    NOT_OBSERVED = "NotObserved"
    #: `Ready` is true, `Reconciling` is false: the plane matches its spec. `AddonsApplied` is true.
    UP_TO_DATE = "UpToDate"
    #: `Ready` is false: the plane does not match its spec yet.
    NOT_UP_TO_DATE = "NotUpToDate"
    #: `Ready` is false: a replica is down or unhealthy, or an edge has no address.
    DEGRADED = "Degraded"
    #: `Ready` is false, `Stalled` is true: the first replica with the new revision did not become healthy.
    REVISION_REJECTED = "RevisionRejected"
    #: `ControllersLead` and `Ready` are false: no program leads some of the controllers.
    NO_LEADER = "NoLeader"
    #: `ControllersLead` is true: each kind of controllers has a leader.
    LEADER_ELECTED = "LeaderElected"
    #: `ControllersLead` is unknown: the locks of the controllers could not be read.
    UNKNOWN = "Unknown"
    #: `Available` is true: the name leads to ready apiservers.
    SERVING = "Serving"
    #: `Available` is false: the plane has no DNS record yet.
    NO_NAME = "NoName"
    #: `Available` is unknown: the load balancer does not answer this process.
    UNREACHABLE = "Unreachable"
    #: `Available` is false: no apiserver behind the name is ready.
    NO_READY_BACKEND = "NoReadyBackend"
    #: `Reconciling` is true: steps are taken, or the message says what is waited for.
    PROGRESSING = "Progressing"
    #: `Reconciling` is false: the plane is paused (`spec.paused`).
    PAUSED = "Paused"
    #: `Stalled` is true, `Reconciling` is false: an operation failed with an error that no retry resolves.
    OPERATION_FAILED = "OperationFailed"
    #: `Stalled` is true: the quorum of etcd is lost, and the plane needs `quarterdeck recover`.
    QUORUM_LOST = "QuorumLost"
    #: `Stalled` is true: a step waits for a person, for example to change a DNS record.
    MANUAL_ACTION_REQUIRED = "ManualActionRequired"
    #: `Stalled` is true: etcd has a voting member that belongs to no replica.
    UNKNOWN_MEMBER = "UnknownMember"
    #: `Stalled` is true: authentication is enabled in etcd, which refuses apiservers and quarterdeck.
    AUTHENTICATION_ENABLED = "AuthenticationEnabled"
    #: `Stalled` is true: etcd has raised an alarm other than NOSPACE.
    ALARM_RAISED = "AlarmRaised"
    #: `Stalled` is true: the data of etcd does not fit its quota, even after defragmentation.
    QUOTA_TOO_SMALL = "QuotaTooSmall"
    #: `Stalled` is false: no person is needed.
    NOT_STALLED = "NotStalled"
    #: `AddonsApplied` is false: the apiserver refused an object of an add-on.
    REFUSED = "Refused"
    #: `AddonsApplied` is false: an add-on waits for the plane, and is retried.
    WAITING = "Waiting"
    #: `DisksHealthy` or `LinksHealthy` is true.
    HEALTHY = "Healthy"
    #: `DisksHealthy` is false: writes to the disk of a member take too long.
    DISK_SLOW = "DiskSlow"
    #: `DisksHealthy` is false: a disk of etcd has less than 256 MiB of free space.
    DISK_NEARLY_FULL = "DiskNearlyFull"
    #: `DisksHealthy` is false: a disk of etcd has less than 64 MiB of free space.
    DISK_FULL = "DiskFull"
    #: `LinksHealthy` is false: most other members get the answers of a member too late.
    LINK_SLOW = "LinkSlow"
    #: `ClocksSynchronized` is true.
    SYNCHRONIZED = "Synchronized"
    #: `ClocksSynchronized` is false: a clock is off by more than 30 seconds.
    CLOCK_SKEW = "ClockSkew"
    #: `CertificatesValid` is true.
    VALID = "Valid"
    #: `CertificatesValid` is false: a certificate or an authority expires within 30 days, or has expired.
    EXPIRING = "Expiring"
    #: `Drilled` or `RestoreProven` is true: each scheduled drill has passed.
    PROVEN = "Proven"
    #: `Drilled` or `RestoreProven` is unknown: a scheduled drill has not run yet.
    NOT_PROVEN = "NotProven"
    #: `Drilled` or `RestoreProven` is false: a drill has not passed for twice its interval.
    OVERDUE = "Overdue"
    #: `Drilled` or `RestoreProven` is false: the last run of a drill failed.
    DRILL_FAILED = "DrillFailed"
    #: `BackedUp` is true: each change of etcd is stored within seconds.
    CONTINUOUS = "Continuous"
    #: `BackedUp` is unknown: the first backup is not complete yet.
    FIRST_BACKUP = "FirstBackup"
    #: `BackedUp` is false: the backup store does not answer, and changes wait on the disk.
    STORE_UNAVAILABLE = "StoreUnavailable"
    #: `BackedUp` is false: the task that backs up the plane ended with an error; it is retried.
    BACKUP_FAILED = "BackupFailed"
    #: `BackedUp` is false: the newest backup did not pass its verification, and a new full backup is not verified yet.
    BACKUP_DAMAGED = "BackupDamaged"
    #: `BackedUp` is false: etcd does not answer the task that backs it up.
    CLUSTER_UNAVAILABLE = "ClusterUnavailable"
