"""The reasons of a plane's events. docs/reference/conditions-and-events.md is made from the comments."""

from __future__ import annotations

from enum import StrEnum


class EventReason(StrEnum):
    """What happened to a plane, as one word for programs. ``operation_reason`` has those of operations."""

    # etcd and its members.

    #: The quorum of etcd is lost for good; the message says how to recover the plane.
    QUORUM_LOST = "QuorumLost"
    #: No quorum of etcd members answers this process.
    NO_QUORUM = "NoQuorum"
    #: etcd was started as a new cluster from the data of one surviving member, or from a backup.
    EPOCH_STARTED = "EpochStarted"
    #: A full backup of etcd is complete.
    FULL_BACKUP = "FullBackup"
    #: Some revisions of etcd cannot be restored: etcd discarded them before they were stored.
    BACKUP_GAP = "BackupGap"
    #: The newest backup did not pass its verification; a new full backup is taken.
    BACKUP_DAMAGED = "BackupDamaged"
    #: A verification of the newest backup could not be carried out.
    BACKUP_NOT_VERIFIED = "BackupNotVerified"
    #: The newest backup passed its verification after one had failed.
    BACKUP_VERIFIED = "BackupVerified"
    #: Changes that waited on the disk for a backup store were discarded, because they need too much room.
    BACKUP_SPOOL_DISCARDED = "BackupSpoolDiscarded"
    #: Objects of a backup are damaged or missing, or no key here opens them.
    BACKUP_UNREADABLE = "BackupUnreadable"
    #: The data of a replica from an earlier epoch is kept on its machine.
    FORMER_DATA_KEPT = "FormerDataKept"
    #: A machine has data of another cluster or member than the replica there should have.
    WRONG_DATA = "WrongData"
    #: A machine does not start etcd, because the data of its member is missing.
    DATA_MISSING = "DataMissing"
    #: The data of a member that has started before is gone.
    DATA_LOST = "DataLost"
    #: A member has other data than most members; its replica is replaced.
    DATA_DIFFERS = "DataDiffers"
    #: etcd has raised an alarm.
    ALARM_RAISED = "AlarmRaised"
    #: etcd has raised an alarm for which there is no cause now.
    ALARM_UNEXPLAINED = "AlarmUnexplained"
    #: A person turned off an alarm.
    ALARM_DISARMED = "AlarmDisarmed"
    #: Authentication is enabled in etcd, which refuses apiservers and quarterdeck.
    AUTHENTICATION_ENABLED = "AuthenticationEnabled"
    #: A person disabled authentication in etcd again.
    AUTHENTICATION_DISABLED = "AuthenticationDisabled"
    #: A member is the leader of etcd.
    LEADER_ELECTED = "LeaderElected"
    #: Another member became the leader, although the previous one is healthy and quarterdeck did not request it.
    LEADER_MOVED = "LeaderMoved"
    #: A member was added, removed or changed, and not by quarterdeck.
    MEMBERSHIP_CHANGED = "MembershipChanged"
    #: A member belongs to no replica.
    UNKNOWN_MEMBER = "UnknownMember"
    #: A person removed a member that belonged to no replica.
    MEMBER_REMOVED = "MemberRemoved"
    #: A member is far behind the leader and does not catch up.
    MEMBER_LAGGING = "MemberLagging"
    #: A member answers neither this process nor the leader.
    MEMBER_DOWN = "MemberDown"
    #: A member does not answer this process, and nothing proves that it is down.
    MEMBER_UNREACHABLE = "MemberUnreachable"

    # Machines, replicas and programs.

    #: A machine is off, does not answer or cannot be used.
    MACHINE_DOWN = "MachineDown"
    #: A machine takes long to accept connections from quarterdeck.
    MACHINE_SLOW = "MachineSlow"
    #: The replicas on a machine had to be replaced several times; the machine is cordoned.
    MACHINE_FLAPPING = "MachineFlapping"
    #: A program exits repeatedly; the message has its last error.
    UNIT_FAILED = "UnitFailed"
    #: A program runs, does not become ready and logs nothing new.
    UNIT_NOT_READY = "UnitNotReady"
    #: The files of a program were changed, and not by quarterdeck.
    UNIT_MODIFIED = "UnitModified"
    #: A program of a replica does not recover.
    UNIT_UNHEALTHY = "UnitUnhealthy"
    #: A replica is marked for replacement.
    REPLICA_MARKED_FOR_REPLACEMENT = "ReplicaMarkedForReplacement"
    #: A replica that was marked for replacement is healthy again and stays.
    REPLACEMENT_CANCELLED = "ReplacementCancelled"
    #: The volumes of a replica were attached to another machine, because its machine was dead.
    REPLICA_REATTACHED = "ReplicaReattached"
    #: A replica is unhealthy and is not healed; the message says why.
    HEALING_BLOCKED = "HealingBlocked"
    #: A program is being sent to the hosts.
    SENDS_PROGRAM = "SendsProgram"
    #: The request of a node for a serving certificate is left to a person.
    NODE_CERTIFICATE_NOT_APPROVED = "NodeCertificateNotApproved"
    #: Certificates of members of etcd have expired.
    CERTIFICATES_EXPIRED = "CertificatesExpired"
    #: A person was given a kubeconfig whose permissions cannot be taken away.
    BREAK_GLASS = "BreakGlass"
    #: No program leads some of the controllers.
    NO_LEADER = "NoLeader"
    #: The history of the controllers' locks could not be written down.
    LOCK_HISTORY_FAILED = "LockHistoryFailed"

    # The name and the load balancers.

    #: The DNS name belongs to another owner.
    NAME_TAKEN = "NameTaken"
    #: It is unknown where the name leads.
    NAME_UNKNOWN = "NameUnknown"
    #: The DNS servers of the name give different answers.
    NAME_INCONSISTENT = "NameInconsistent"
    #: The name leads to another site now, or to the apiservers themselves.
    NAME_RESOLVED = "NameResolved"
    #: A person is asked to change a DNS record.
    MANUAL_CHANGE_REQUIRED = "ManualChangeRequired"
    #: The name leads to no ready apiserver.
    NO_BACKENDS = "NoBackends"
    #: Apiservers listen at another port than clients use.
    PORT_TAKEN = "PortTaken"
    #: An edge can get no virtual IP.
    EDGE_WITHOUT_ADDRESS = "EdgeWithoutAddress"

    # Add-ons and drills.

    #: All objects of an add-on are applied.
    ADDON_APPLIED = "AddonApplied"
    #: Changes of an add-on by another client are undone.
    ADDON_REPAIRED = "AddonRepaired"
    #: All objects of an add-on are deleted.
    ADDON_REMOVED = "AddonRemoved"
    #: An add-on waits for the plane, and is retried.
    ADDON_WAITING = "AddonWaiting"
    #: An add-on cannot be applied until a person acts.
    ADDON_FAILED = "AddonFailed"
    #: A drill passed: clients saw no more than it allows.
    DRILL_PASSED = "DrillPassed"
    #: A drill failed.
    DRILL_FAILED = "DrillFailed"
    #: The process that ran a drill ended before the drill did.
    DRILL_INTERRUPTED = "DrillInterrupted"
    #: A scheduled drill did not start, because the plane would not survive it now.
    DRILL_REFUSED = "DrillRefused"

    # The work of quarterdeck itself.

    #: A step failed; it is retried.
    STEP_FAILED = "StepFailed"
    #: A background task failed; it is retried.
    BACKGROUND_TASK_FAILED = "BackgroundTaskFailed"
    #: Observing or planning failed; it is retried.
    RECONCILE_ERROR = "ReconcileError"
    #: A terminal or probe that followed the work failed, and gets no more notifications.
    WATCHER_LOST = "WatcherLost"
