"""Steps for members of etcd: they join, vote, lead and leave; and for their databases: differing data, compaction,
defragmentation, and the alarm NOSPACE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.clusters import Full
from quarterdeck.model.membership import EtcdMinor
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.base import Claim, Note, OfCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class _MembershipChange(OfCluster):
    """A change of one cluster's membership, which it claims."""

    @property
    @override
    def claim(self) -> Claim:
        return Claim("membership", self.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLearner(_MembershipChange):
    """Add a learner to etcd; one of the events' cluster gets a volume of that class."""

    kind: ClassVar[str] = "add-learner"
    replica: str
    storage_class: str = ""

    @property
    @override
    def new_members(self) -> tuple[str, ...]:
        return (self.replica,)

    @property
    @override
    def description(self) -> str:
        return f"add learner {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote(_MembershipChange):
    """Make a learner that has caught up a voter."""

    kind: ClassVar[str] = "promote-learner"
    replica: str
    member: int

    @property
    @override
    def description(self) -> str:
        return f"promote {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership(_MembershipChange):
    """Transfer leadership to another voter."""

    kind: ClassVar[str] = "transfer-leadership"
    to: str
    member: int

    @property
    @override
    def description(self) -> str:
        return f"transfer leadership to {self.to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaddressMember(_MembershipChange):
    """Set the peer URL of a member to where its replica is now."""

    kind: ClassVar[str] = "update-peer-urls"
    replica: str
    member: int

    @property
    @override
    def description(self) -> str:
        return f"update the peer URL of member {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember(_MembershipChange):
    """Remove a member for good: its data folder can never come back."""

    kind: ClassVar[str] = "remove-member"
    undoable: ClassVar[bool] = False
    replica: str
    member: int

    @property
    @override
    def description(self) -> str:
        return f"remove member {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(_MembershipChange):
    """The voter swap: membership changes in a fixed order, without an observation between them."""

    kind: ClassVar[str] = "swap-voters"
    undoable: ClassVar[bool] = False
    changes: tuple[Promote | RemoveMember, ...]

    @property
    @override
    def description(self) -> str:
        return f"swap: {', '.join(change.description for change in self.changes)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnableDowngrade(_MembershipChange):
    """Enable etcd's downgrade: members work and store as ``target``, the minor version before theirs."""

    kind: ClassVar[str] = "enable-etcd-downgrade"
    target: EtcdMinor

    @property
    @override
    def description(self) -> str:
        return f"enable the downgrade of etcd to {self.target[0]}.{self.target[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelDowngrade(_MembershipChange):
    """Cancel etcd's downgrade: the cluster version rises again once no member is older."""

    kind: ClassVar[str] = "cancel-etcd-downgrade"

    @property
    @override
    def description(self) -> str:
        return "cancel the downgrade of etcd"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFull(OfCluster, Note):
    """Record that there is no room left, and the etcd revision that all members have; or (0) that there is room."""

    kind: ClassVar[str] = "note-no-space"
    revision: int

    @property
    @override
    def description(self) -> str:
        return (
            f"note that there is no room at revision {self.revision:,}" if self.revision else "note that there is room"
        )

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, full=Full(since=now, revision=self.revision) if self.revision else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDiffering(OfCluster, Note):
    """Record that the data of these replicas differs from that of most members: they are replaced."""

    kind: ClassVar[str] = "note-differing-data"
    replicas: tuple[str, ...]

    @property
    @override
    def description(self) -> str:
        return f"note that the data of {', '.join(self.replicas)} differs"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        records = (replace(each, differs=each.differs or each.name in self.replicas) for each in memory.replicas)
        return replace(memory, replicas=tuple(records))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRoom(OfCluster):
    """A step that makes room in one cluster, which it claims."""

    @property
    @override
    def claim(self) -> Claim:
        return Claim("room", self.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact(_OfRoom):
    """Compact the history of keys before an etcd revision: that leaves free room in each database."""

    kind: ClassVar[str] = "compact"
    undoable: ClassVar[bool] = False
    revision: int

    @property
    @override
    def description(self) -> str:
        return f"compact history before revision {self.revision:,}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, full=Full(since=now, revision=self.revision, compacted=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Defragment(_OfRoom):
    """Defragment the database of a member, which frees disk space; it does not serve during that."""

    kind: ClassVar[str] = "defragment"
    replica: str

    @property
    @override
    def description(self) -> str:
        return f"defragment {self.replica}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        full = memory.full
        if full is None or not full.compacted or self.replica in full.defragmented:
            return memory
        return replace(memory, full=replace(full, defragmented=(*full.defragmented, self.replica)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Disarm(_OfRoom):
    """Disarm the alarm, so that etcd takes writes again: every member has room."""

    kind: ClassVar[str] = "disarm-alarm"

    @property
    @override
    def description(self) -> str:
        return "disarm the alarm NOSPACE"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, full=None)
