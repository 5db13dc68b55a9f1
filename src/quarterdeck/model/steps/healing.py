"""Replicas that are dead, and programs that do not get well, are noted; replicas are condemned, and
pardoned when they are well in time; machines that had to be healed again and again are cordoned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import Condemned, Memory, since
from quarterdeck.model.steps.base import Note, Step


def renewal_of(replica: str) -> str:
    """The name, beside those of programs that were started anew, by which it is remembered that a replica got another
    member of the events' cluster.
    """
    return f"another member of {replica}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteDown(Note):
    """Write down which wanted replicas are dead as far as is seen (or that none is)."""

    kind: ClassVar[str] = "note-down-replicas"
    replicas: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.replicas) or 'nothing'} is down"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, down=since(memory.down, self.replicas, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteAiling(Note):
    """Write down which programs (``unit``) hang or cannot be started (or that none does)."""

    kind: ClassVar[str] = "note-unhealthy-programs"
    units: tuple[str, ...]

    @property
    @override
    def words(self) -> str:
        return f"note that {', '.join(self.units) or 'nothing'} does not get well"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, ailing=since(memory.ailing, self.units, now))


@dataclass(frozen=True, slots=True, kw_only=True)
class Condemn(Note):
    """Have a replica exchanged that is dead, or of which a ``program`` does not get well ("": it is dead). ``machine``
    is its own; what was condemned longer than ``window`` seconds ago counts no more. ``alone``: only its member of the
    events' cluster, which nobody misses: so that does not count for what is exchanged, and is remembered by itself.
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
        return f"condemn {f'{self.program} of ' if self.alone else ''}{self.replica}"

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
    """Keep a replica that was condemned: it is well again, and was not taken out yet."""

    kind: ClassVar[str] = "cancel-replacement"
    shown: ClassVar[bool] = True
    replica: str

    @property
    @override
    def words(self) -> str:
        return f"pardon {self.replica}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, condemned=tuple(each for each in memory.condemned if each.replica != self.replica))


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonMachine(Step):
    """Have a machine be given no new replica, of no plane, until a person says otherwise. From then on what was healed
    there counts for the budget alone: a person's word is not taken back for what was before it.
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
