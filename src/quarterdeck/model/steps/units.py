"""The programs of replicas: they start and stop."""

from __future__ import annotations

from dataclasses import dataclass, replace

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.base import Base


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUnit(Base):
    """Write a unit's files and start it."""

    replica: str
    component: Component

    @property
    def words(self) -> str:
        return f"start {self.component} of {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadUnit(Base):
    """Give a unit that runs its files as a revision has them: its program takes them up by itself."""

    replica: str
    component: Component
    revision: str

    @property
    def words(self) -> str:
        return f"have {self.component} of {self.replica} reload its files"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopUnit(Base):
    """Stop a unit gracefully (the etcd of a deleted plane at once) and see its process gone."""

    replica: str
    component: Component

    @property
    def words(self) -> str:
        return f"stop {self.component} of {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartUnit(Base):
    """Kill a unit's process and start it again: once in the life of a replica, while it is only a learner."""

    replica: str
    component: Component

    @property
    def words(self) -> str:
        return f"restart {self.component} of {self.replica}"

    def remembered(self, memory: Memory, now: float) -> Memory:
        return memory.with_replica(self.replica, lambda record: replace(record, restarted=True))
