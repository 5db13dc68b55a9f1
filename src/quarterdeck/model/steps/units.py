"""What replicas run: their programs start and stop, and go to another revision, or to the one before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Memory, Rejection, since
from quarterdeck.model.steps.base import Note, OfUnit, Step


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRevision(Note):
    """Write down that a replica is to run another revision: none of the programs that differ runs now."""

    kind: ClassVar[str] = "adopt-revision"
    shown: ClassVar[bool] = True
    replica: str
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"have {self.replica} run revision {self.revision}"

    @property
    @override
    def facts(self) -> Mapping[str, str]:
        return {"revision": self.revision}

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return memory.with_replica(self.replica, lambda record: replace(record, revision=self.revision))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUnready(Note):
    """Write down which programs of a revision that is rolled out run without being ready (or that one is): units, as
    ``rollout.unit`` calls them.
    """

    kind: ClassVar[str] = "note-unready-programs"
    units: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.units) or 'nothing'} runs without being ready"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, unready=since(memory.unready, self.units, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteProven(Note):
    """Write down that a revision runs with all programs well: it is one that can be gone back to, and is not given up
    any more.
    """

    kind: ClassVar[str] = "note-proven-revision"
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"note that revision {self.revision} runs"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        rejected = memory.rejected if memory.rejected and memory.rejected.revision != self.revision else None
        return replace(memory, proven=True, rejected=rejected)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRevision(Note):
    """Write down that a first revision, which was given up, is tried once more: whoever drives the plane anew may have
    removed what was in its way.
    """

    kind: ClassVar[str] = "retry-revision"
    shown: ClassVar[bool] = True
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"try revision {self.revision} once more"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, rejected=None, unready=())


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRevision(Step):
    """Give a revision up, since a program of a replica that runs it does not: all go back to the one before.
    ``runs``: it does, but is never ready. ``said``: why it ended, or what it complains of, in its own words, once its
    machine was asked.
    """

    kind: ClassVar[str] = "reject-revision"
    only_recorded: ClassVar[bool] = True
    revision: str
    replica: str
    component: Component
    runs: bool = False
    said: str = ""

    @property
    @override
    def words(self) -> str:
        return f"give up revision {self.revision}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        why = ": ".join(filter(None, (self.why, self.said)))
        return replace(memory, rejected=Rejection(revision=self.revision, why=why))
