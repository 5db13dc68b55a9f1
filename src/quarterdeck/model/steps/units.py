"""The programs of replicas: they start and stop."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.base import OfUnit


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUnit(OfUnit):
    """Write a unit's files and start it."""

    kind: ClassVar[str] = "start-unit"

    @property
    @override
    def words(self) -> str:
        return f"start {self.component} of {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadUnit(OfUnit):
    """Give a unit that runs its files as a revision has them: its program takes them up by itself."""

    kind: ClassVar[str] = "reload-unit"
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"have {self.component} of {self.replica} reload its files"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopUnit(OfUnit):
    """Stop a unit gracefully (the etcd of a deleted plane at once) and see its process gone."""

    kind: ClassVar[str] = "stop-unit"

    @property
    @override
    def words(self) -> str:
        return f"stop {self.component} of {self.replica}"

    @property
    @override
    def takes_long(self) -> str:
        if self.component != Component.APISERVER:
            return ""
        return "it ends its requests and sends its audit events first, which may take 65 s"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartUnit(OfUnit):
    """Kill a unit's process and start it again: once in the life of a replica, while it is only a learner."""

    kind: ClassVar[str] = "restart-unit"

    @property
    @override
    def words(self) -> str:
        return f"restart {self.component} of {self.replica}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return memory.with_replica(self.replica, lambda record: replace(record, restarted=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviveUnit(OfUnit):
    """Kill a program that does not get well, and start it again. What was done so longer than ``window`` seconds ago
    counts no more.
    """

    kind: ClassVar[str] = "force-restart-unit"
    window: float

    @property
    @override
    def words(self) -> str:
        return f"kill {self.component} of {self.replica} and start it again"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        unit = f"{self.component} of {self.replica}"
        kept = tuple((each, when) for each, when in memory.revived if each != unit and now - when < self.window)
        return replace(
            memory,
            ailing=tuple((each, now if each == unit else when) for each, when in memory.ailing),
            revived=(*kept, (unit, now)),
            healed=(*memory.healed_within(self.window, now), ("", now)),
        )
