"""Steps about what etcd stores: an older minor version of Kubernetes, or one without a former key, must be able to read
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import Memory
from quarterdeck.model.steps.base import Claim, Note, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStored(Step):
    """Read everything that etcd stores, and record that the programs of a revision can read it. What a key encrypted
    that they lack is written again before. Fails where they cannot read all of it, or where that is unknown.
    """

    kind: ClassVar[str] = "check-stored-objects"
    revision: str

    @property
    @override
    def words(self) -> str:
        return f"check that revision {self.revision} can read all stored objects"

    @property
    @override
    def takes_long(self) -> str:
        return "it reads all of etcd, which takes about 20 s for each GB"

    @property
    @override
    def claim(self) -> Claim | None:
        return Claim("stored objects")

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, readable=self.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteLowered(Note):
    """Record that all members of etcd were taken back for the etcd of a revision; "": that this no longer counts."""

    kind: ClassVar[str] = "note-lowered-etcd"
    revision: str

    @property
    @override
    def words(self) -> str:
        if not self.revision:
            return "note that etcd must be taken back again before another version of it runs"
        return f"note that etcd was taken back for revision {self.revision}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, lowered=self.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteUnchecked(Note):
    """Record that the last check of the stored objects no longer counts: programs of newer versions may run again."""

    kind: ClassVar[str] = "note-unchecked-objects"

    @property
    @override
    def words(self) -> str:
        return "note that stored objects must be checked again before an older version runs"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, readable="")
