"""Steps of healing: dead replicas and unhealthy programs are noted; replicas are condemned (marked for replacement),
and pardoned when they recover in time; machines whose replicas were replaced repeatedly are cordoned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import Condemned, Memory, since
from quarterdeck.model.steps.base import Note, Step


def renewal_of(replica: str) -> str:
    """The entry in ``Memory.revived``, besides those of restarted programs, that a replica got another member of the
    events' cluster.
    """
    return f"another member of {replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDown(Note):
    """Record which wanted replicas are dead as far as observed (or that none is)."""

    kind: ClassVar[str] = "note-down-replicas"
    replicas: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.replicas) or 'no replica'} is down"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, down=since(memory.down, self.replicas, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAiling(Note):
    """Record which programs (``unit``) hang or cannot be started (or that none does)."""

    kind: ClassVar[str] = "note-unhealthy-programs"
    units: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.units) or 'no program'} is unhealthy"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, unhealthy=since(memory.unhealthy, self.units, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemn(Note):
    """Mark a replica for replacement, because it is dead, or because a ``program`` stays unhealthy ("": it is dead).
    ``machine`` is its own; replacements more than ``window`` seconds ago no longer count. ``alone``: only its member
    of the events' cluster is replaced; that does not count against the healing budget, and has its own entry.
    """

    kind: ClassVar[str] = "mark-for-replacement"
    shown: ClassVar[bool] = True
    replica: str
    machine: str
    window: float
    program: str = ""
    alone: bool = False

    @property
    @override
    def words(self) -> str:
        return f"mark {f'{self.program} of ' if self.alone else ''}{self.replica} for replacement"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        others = (each for each in memory.condemned if each.replica != self.replica)
        made = Condemned(replica=self.replica, why=self.why, since=now, program=self.program, alone=self.alone)
        if self.alone:
            lately = ((each, when) for each, when in memory.revived if now - when < self.window)
            return replace(memory, condemned=(*others, made), revived=(*lately, (renewal_of(self.replica), now)))
        return replace(
            memory,
            down=tuple(entry for entry in memory.down if entry[0] != self.replica),
            condemned=(*others, made),
            healed=(*memory.healed_within(self.window, now), (self.machine, now)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pardon(Note):
    """Keep a condemned replica: it is healthy again, and was not removed yet."""

    kind: ClassVar[str] = "cancel-replacement"
    shown: ClassVar[bool] = True
    replica: str

    @property
    @override
    def words(self) -> str:
        return f"cancel the replacement of {self.replica}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, condemned=tuple(each for each in memory.condemned if each.replica != self.replica))


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonMachine(Step):
    """Exclude a machine from new replicas of all planes until a person uncordons it. From then on earlier healings
    there count only for the budget: they do not cordon it again after a person has uncordoned it.
    """

    kind: ClassVar[str] = "cordon-machine"
    machine: str

    @property
    @override
    def words(self) -> str:
        return f"cordon machine {self.machine}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        healed = tuple(("" if machine == self.machine else machine, when) for machine, when in memory.healed)
        return replace(memory, healed=healed)
