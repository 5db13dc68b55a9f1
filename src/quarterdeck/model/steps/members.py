"""Members of etcd: they join, vote, lead and leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from quarterdeck.model.steps.base import OfCluster


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLearner(OfCluster):
    """Tell etcd of a new member that only listens; one of the events' cluster gets a volume of that class."""

    replica: str
    storage_class: str = ""

    @property
    def new_members(self) -> tuple[str, ...]:
        return (self.replica,)

    @property
    def told(self) -> str:
        return f"add learner {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promote(OfCluster):
    """Make a caught-up learner a voter."""

    replica: str
    member: int

    @property
    def told(self) -> str:
        return f"promote {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLeadership(OfCluster):
    """Have the leader hand over to another voter."""

    to: str
    member: int

    @property
    def told(self) -> str:
        return f"hand leadership to {self.to}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaddressMember(OfCluster):
    """Have all others look for a member where its replica is now."""

    replica: str
    member: int

    @property
    def told(self) -> str:
        return f"have member {self.replica} be found where it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveMember(OfCluster):
    """Take a member out for good: its data folder can never come back."""

    replica: str
    member: int
    undoable: ClassVar[bool] = False

    @property
    def told(self) -> str:
        return f"remove member {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap(OfCluster):
    """The voter swap: membership changes in a fixed order, with nothing observed in between."""

    changes: tuple[Promote | RemoveMember, ...]
    undoable: ClassVar[bool] = False

    @property
    def told(self) -> str:
        return f"swap: {', '.join(change.told for change in self.changes)}"
