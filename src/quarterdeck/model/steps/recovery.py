"""The main cluster begins anew from what a member that survived has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.clusters import ClusterMemory
from quarterdeck.model.memory import MemberWord, Memory, Seed
from quarterdeck.model.steps.base import Claim, Note, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuorum(Note):
    """Write down since when the quorum is lost, or that it is not."""

    kind: ClassVar[str] = "note-quorum"
    lost: bool

    @property
    @override
    def words(self) -> str:
        return "note that the quorum is lost" if self.lost else "note that the quorum is back"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        if not self.lost:
            return replace(memory, quorum_lost=None)
        return replace(memory, quorum_lost=now if memory.quorum_lost is None else memory.quorum_lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpoch(Note):
    """Write down that the cluster begins anew, as ``epoch``, from the data of ``survivor``: nobody is asked any
    more, and nothing is started, that was there before. The ``founder`` is the next replica that is placed.
    ``others``: who could take the survivor's place.
    """

    kind: ClassVar[str] = "begin-epoch"
    undoable: ClassVar[bool] = False
    shown: ClassVar[bool] = True
    epoch: int
    survivor: str
    founder: str
    revision: int
    seen: int
    others: tuple[MemberWord, ...] = ()

    @property
    @override
    def words(self) -> str:
        return f"begin epoch {self.epoch} of etcd from {self.survivor}, at etcd revision {self.revision:,}"

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        """Written again it changes nothing. The events' cluster begins anew with it."""
        if memory.epoch == self.epoch:
            return memory
        seed = Seed(
            survivor=self.survivor,
            founder=self.founder,
            revision=self.revision,
            seen=self.seen,
            others=self.others,
        )
        return replace(
            memory,
            epoch=self.epoch,
            seed=seed,
            next_ordinal=memory.next_ordinal + 1,
            bootstrap=(self.founder,),
            created=False,
            cluster_id=0,
            full=None,
            quorum_lost=None,
            events=ClusterMemory(epoch=memory.events.epoch),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreMember(Step):
    """Make the data of the replica that founds an epoch from that of the survivor, which stays as it is."""

    kind: ClassVar[str] = "restore-member"
    replica: str
    survivor: str

    @property
    @override
    def words(self) -> str:
        return f"make the data of {self.replica} from that of {self.survivor}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        if memory.seed is None or memory.seed.founder != self.replica:
            return memory
        return replace(memory, seed=replace(memory.seed, restored=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithdrawConsent(Step):
    """Forget the user's word for an epoch: the quorum that it was given up for is back."""

    kind: ClassVar[str] = "withdraw-consent"
    epoch: int

    @property
    @override
    def words(self) -> str:
        return f"forget the word for epoch {self.epoch}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("consent")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKept(Step):
    """Delete the data of a replica of a former epoch, which was kept on a machine: the plane is deleted."""

    kind: ClassVar[str] = "delete-kept-data"
    undoable: ClassVar[bool] = False
    replica: str
    machine: str

    @property
    @override
    def words(self) -> str:
        return f"delete the data of {self.replica} that was kept on machine {self.machine}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(memory, kept=tuple(each for each in memory.kept if each.replica != self.replica))
