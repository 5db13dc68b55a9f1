"""The parts of planes: replicas, certificates, drills, etcd members, nodes and tokens."""

from __future__ import annotations

from datetime import date

from typing_extensions import override

from quarterdeck.api.output.base import Instant, Message, NamedOutput, OutputModel


class ReplicaRow(NamedOutput):
    """A replica of a plane."""

    #: The replica's name.
    name: str
    #: Its site.
    site: str
    #: Its zone.
    zone: str
    #: Its machine.
    machine: str
    #: `leader`, `voter`, `learner`, `none`, or `unknown` where no quorum of etcd answers.
    member: str
    #: The health of its member; null where it has none.
    health: str | None
    #: Whether its apiserver is ready; null where that is not known.
    ready: bool | None
    #: The revision that it runs; null where it runs none yet.
    revision: str | None
    #: Whether that is the revision of the plane; null where that is not known.
    current: bool | None
    #: Whether it is to be replaced.
    to_be_replaced: bool
    #: Whether it is cordoned.
    cordoned: bool
    #: Who cordoned it, and when; null where it is not cordoned.
    reason: str | None
    #: Whether all of its volumes can move to another machine.
    reattachable: bool
    #: When it was placed; null where the journal does not have that any more.
    created_at: Instant | None

    @property
    @override
    def full_name(self) -> str:
        return f"replica/{self.name}"


class CertificateRow(NamedOutput):
    """A certificate that the programs of a plane use."""

    #: The certificate's name.
    name: str
    #: The replica that it belongs to; null for those of the plane itself.
    replica: str | None
    #: What it is for.
    message: str
    #: When it begins to be valid.
    not_before: Instant
    #: When it expires.
    not_after: Instant
    #: How long it is still valid; negative where it has expired.
    remaining_seconds: float
    #: Whether less than a third of its life is left.
    due: bool

    @property
    @override
    def full_name(self) -> str:
        return "/".join(filter(None, ("certificate", self.replica, self.name)))


class UpgradeRow(NamedOutput):
    """A version of Kubernetes or etcd that a plane could go to."""

    #: What it is a version of: `Kubernetes` or `etcd`.
    program: str
    #: The version.
    name: str
    #: The versions on the way, one of each minor version between.
    through: tuple[str, ...]
    #: The last day of its support by its project; null where that is not known, as of etcd.
    supported_until: date | None
    #: Whether the upgrade can begin now.
    possible: bool
    #: What stands in the way, or should be known before.
    findings: tuple[Message, ...]

    @property
    @override
    def full_name(self) -> str:
        return f"version/{self.name}"


class DrillRow(NamedOutput):
    """A drill, and what clients saw of it. Seconds are from the failure on; null: it did not come to that."""

    #: The drill's name.
    name: str
    #: The plane.
    plane: str
    #: The kind of fault, such as `machine`.
    fail: str
    #: What was hit.
    reasons: tuple[str, ...]
    #: `Running`, `Passed`, `Failed` or `Interrupted`.
    phase: str
    #: When the fault was injected.
    started_at: Instant | None
    #: When the drill ended.
    finished_at: Instant | None
    #: How long the fault lasts at most.
    hold_seconds: float
    #: Whether `--dangerous` was given.
    dangerous: bool
    #: Whether the plane's schedule asked for it.
    scheduled: bool
    #: Who asked for it.
    requested_by: str
    #: When an observation found that the plane is not as it was.
    detected_seconds: float | None
    #: When clients were answered for good; 0: they always were.
    served_again_seconds: float | None
    #: When the last request failed.
    last_failure_seconds: float | None
    #: When the last request was sent that failed and was not in progress at the start of the fault.
    last_failed_sent_seconds: float | None
    #: When the fault was undone; null also where it is over by itself.
    undone_seconds: float | None
    #: When the plane was as before, and survived the same failures.
    redundant_seconds: float | None
    #: Requests of clients.
    requests: int
    #: Requests that failed.
    failed: int
    #: The first of the requests that failed.
    failures: tuple[Message, ...]
    #: The longest time that one client waited for a request to succeed.
    longest_stall_seconds: float
    #: Writes that were acknowledged.
    acknowledged: int
    #: Acknowledged writes that were lost.
    lost: int
    #: Events that watchers missed.
    missed: int
    #: Of `total-loss`: seconds of writes that were not in the backup yet.
    recovery_point_seconds: float | None
    #: Of `total-loss`: seconds until an apiserver served what was restored.
    recovery_time_seconds: float | None
    #: Of `total-loss`: objects that the restored plane has like the plane.
    equal_objects: int | None
    #: Why it did not pass; null where it passed.
    message: str | None
    #: What is left of it.
    left: tuple[Message, ...]

    @property
    @override
    def full_name(self) -> str:
        return f"drill/{self.name}"


class MemberHashRow(OutputModel):
    """A voter of an etcd cluster, and the hash of all its keys."""

    #: `etcd` or the etcd of the events.
    cluster: str
    #: The replica that the member belongs to.
    replica: str
    #: The etcd revision up to which keys are compared.
    revision: int
    #: The hash in hexadecimal; null where the member did not answer.
    hash: str | None
    #: Whether it has the data that most voters have; null where that is not known.
    same: bool | None


class SurvivorRow(OutputModel):
    """A member that is left of an etcd that lost its quorum."""

    #: Its replica.
    replica: str
    #: Its machine.
    machine: str
    #: Its raft term.
    term: int
    #: The raft index that it knows to be committed.
    committed: int
    #: The raft index that it has applied.
    applied: int
    #: The etcd revision of its newest key.
    revision: int
    #: The hash of all its keys in hexadecimal; null where it did not answer.
    hash: str | None
    #: Whether the plane goes on with its data.
    chosen: bool


class FailoverResult(NamedOutput):
    """A plane that continues at the site of its standby."""

    #: The plane's name.
    name: str
    #: The epoch of its etcd that began.
    epoch: int
    #: The site where the plane is now.
    site: str
    #: The standby, from whose data the epoch began.
    standby: str
    #: The etcd revision of its newest key.
    revision: int
    #: The last etcd revision that was observed of the plane before.
    last_seen_revision: int
    #: The replicas whose members were off, or without their data.
    dead: tuple[str, ...]
    #: The replicas whose members did not answer.
    unreachable: tuple[str, ...]
    #: What may be lost.
    message: str

    @property
    @override
    def full_name(self) -> str:
        return f"plane/{self.name}"


class RecoveryResult(NamedOutput):
    """A plane that was recovered from a surviving member."""

    #: The plane's name.
    name: str
    #: The epoch of its etcd that began.
    epoch: int
    #: The members that were left.
    survivors: tuple[SurvivorRow, ...]
    #: The replicas whose members were off, or without their data.
    dead: tuple[str, ...]
    #: The replicas whose members did not answer.
    unreachable: tuple[str, ...]
    #: What may be lost.
    message: str

    @property
    @override
    def full_name(self) -> str:
        return f"plane/{self.name}"


class NodeRow(NamedOutput):
    """A worker node."""

    #: The node's name.
    name: str
    #: Whether it is ready; null while its kubelet says nothing.
    ready: bool | None
    #: Whether new pods can be scheduled to it.
    schedulable: bool
    #: The version of its kubelet.
    version: str
    #: Its IP addresses.
    addresses: tuple[str, ...]
    #: When it joined; null where that is not known.
    created_at: Instant | None

    @property
    @override
    def full_name(self) -> str:
        return f"node/{self.name}"


class ApprovalRow(NamedOutput):
    """A request of a node for a certificate, and what was decided."""

    #: The request's name.
    name: str
    #: The node.
    node: str
    #: Whether it was approved.
    approved: bool
    #: Why it was not approved; null where it was.
    message: str | None

    @property
    @override
    def full_name(self) -> str:
        return f"certificatesigningrequest/{self.name}"


class TokenRow(NamedOutput):
    """A join token without its secret."""

    #: The token's id.
    name: str
    #: When it expires; null where it does not.
    expires_at: Instant | None
    #: What it can be used for: `authentication`, `signing`.
    uses: tuple[str, ...]
    #: What its maker wrote about it.
    message: str

    @property
    @override
    def full_name(self) -> str:
        return f"token/{self.name}"


class NewTokenResult(NamedOutput):
    """A join token that was just made. Nothing shows its secret again."""

    #: The token's id.
    name: str
    #: The whole token: keep it secret.
    token: str
    #: When it expires.
    expires_at: Instant
    #: The URL of the plane.
    server: str
    #: The hash of the plane's certificate authority.
    ca_cert_hash: str
    #: The command that joins a node by kubeadm. It has the token.
    join_command: str

    @property
    @override
    def full_name(self) -> str:
        return f"token/{self.name}"
