"""Members of etcd: they join, vote, lead and leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.steps.base import Claim, OfCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class _MembershipChange(OfCluster):
    """A change of one cluster's membership, which it claims."""

    @property
    @override
    def claim(self) -> Claim:
        return Claim("membership", self.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLearner(_MembershipChange):
    """Tell etcd of a new member that only listens; one of the events' cluster gets a volume of that class."""

    kind: ClassVar[str] = "add-learner"
    replica: str
    storage_class: str = ""

    @property
    @override
    def new_members(self) -> tuple[str, ...]:
        return (self.replica,)

    @property
    @override
    def told(self) -> str:
        return f"add learner {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote(_MembershipChange):
    """Make a caught-up learner a voter."""

    kind: ClassVar[str] = "promote-learner"
    replica: str
    member: int

    @property
    @override
    def told(self) -> str:
        return f"promote {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership(_MembershipChange):
    """Have the leader hand over to another voter."""

    kind: ClassVar[str] = "transfer-leadership"
    to: str
    member: int

    @property
    @override
    def told(self) -> str:
        return f"hand leadership to {self.to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaddressMember(_MembershipChange):
    """Have all others look for a member where its replica is now."""

    kind: ClassVar[str] = "update-peer-urls"
    replica: str
    member: int

    @property
    @override
    def told(self) -> str:
        return f"have member {self.replica} be found where it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember(_MembershipChange):
    """Take a member out for good: its data folder can never come back."""

    kind: ClassVar[str] = "remove-member"
    undoable: ClassVar[bool] = False
    replica: str
    member: int

    @property
    @override
    def told(self) -> str:
        return f"remove member {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(_MembershipChange):
    """The voter swap: membership changes in a fixed order, with nothing observed in between."""

    kind: ClassVar[str] = "swap-voters"
    undoable: ClassVar[bool] = False
    changes: tuple[Promote | RemoveMember, ...]

    @property
    @override
    def told(self) -> str:
        return f"swap: {', '.join(change.told for change in self.changes)}"
