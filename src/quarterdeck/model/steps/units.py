"""Steps for the programs of replicas: they start and stop, and change to another revision, or back."""

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
    """Give a running unit the files of a revision: its program reloads them by itself."""

    kind: ClassVar[str] = "reload-unit"
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"reload the files of {self.component} of {self.replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopUnit(OfUnit):
    """Stop a unit gracefully (the etcd of a deleted plane at once) and wait until its process is gone."""

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
        return "it first finishes its requests and sends its audit events, which may take 65 s"


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
    """Kill an unhealthy program, and start it again. Restarts more than ``window`` seconds ago no longer count."""

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
            unhealthy=tuple((each, now if each == unit else when) for each, when in memory.unhealthy),
            revived=(*kept, (unit, now)),
            healed=(*memory.healed_within(self.window, now), ("", now)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptRevision(Note):
    """Record that a replica must run another revision: none of the programs that differ runs now."""

    kind: ClassVar[str] = "adopt-revision"
    shown: ClassVar[bool] = True
    replica: str
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"set the revision of {self.replica} to {self.revision}"

    @property
    @override
    def facts(self) -> Mapping[str, str]:
        return {"revision": self.revision}

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return memory.with_replica(self.replica, lambda record: replace(record, revision=self.revision))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUnready(Note):
    """Record which programs of a revision in rollout run without being ready (or that none does): units, as named by
    ``rollout.unit``.
    """

    kind: ClassVar[str] = "note-unready-programs"
    units: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.units) or 'no program'} runs without being ready"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, unready=since(memory.unready, self.units, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteProven(Note):
    """Record that a revision runs with all programs healthy: it is one to go back to, and is no longer rejected."""

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
    """Record that a rejected first revision is tried again: its cause may be gone."""

    kind: ClassVar[str] = "retry-revision"
    shown: ClassVar[bool] = True
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"retry revision {self.revision}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, rejected=None, unready=())


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectRevision(Step):
    """Reject a revision, because a program of a replica with it does not run: all replicas go back to the previous one.
    ``runs``: it runs, but is never ready. ``complaint``: why it exited, or its last error, in its own words, once its
    machine was queried.
    """

    kind: ClassVar[str] = "reject-revision"
    only_recorded: ClassVar[bool] = True
    revision: str
    replica: str
    component: Component
    runs: bool = False
    complaint: str = ""

    @property
    @override
    def words(self) -> str:
        return f"reject revision {self.revision}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        why = ": ".join(filter(None, (self.why, self.complaint)))
        return replace(memory, rejected=Rejection(revision=self.revision, why=why))
