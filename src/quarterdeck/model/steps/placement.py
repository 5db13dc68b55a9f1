"""Steps that place and release replicas, and move them to other machines with their data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import KeptData, LeftBehind, Memory, Replica
from quarterdeck.model.seats import Seat, Slot
from quarterdeck.model.steps.base import Claim, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceReplica(Step):
    """Give a slot a replica: a name that was never used, a revision, and a machine. The site assigns its ``seat`` when
    the step is carried out.
    """

    kind: ClassVar[str] = "place-replica"
    only_recorded: ClassVar[bool] = True
    replica: str
    slot: Slot
    machine: str
    storage_class: str = ""
    revision: str = ""
    seat: Seat | None = None
    #: It is the standby, and fills no slot of the plane.
    standby: bool = False

    @property
    @override
    def words(self) -> str:
        return f"place {'the standby ' if self.standby else ''}{self.replica} on machine {self.machine}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @property
    @override
    def facts(self) -> Mapping[str, str]:
        return {"site": self.slot.site, "machine": self.machine, "revision": self.revision}

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        record = Replica(
            name=self.replica,
            slot=self.slot,
            machine=self.machine,
            storage_class=self.storage_class,
            revision=self.revision,
            seat=self.seat,
            epoch=memory.epoch,
            standby=self.standby,
        )
        # Of replicas placed together one may have failed: still no name may be used again.
        following = int(self.replica.rsplit("-", 1)[1]) + 1
        ordinal = max(memory.next_ordinal, following)
        return replace(memory, next_ordinal=ordinal, replicas=(*memory.replicas, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseReplica(Step):
    """Remove the units, files and volumes of a replica that is no longer a member, and its record. With ``keep``, the
    data of its member of the main cluster stays where it is, and that is recorded.
    """

    kind: ClassVar[str] = "release-replica"
    undoable: ClassVar[bool] = False
    replica: str
    keep: bool = False

    @property
    @override
    def words(self) -> str:
        return f"release {self.replica}" + (", and keep its data" if self.keep else "")

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        return replace(
            memory,
            replicas=tuple(record for record in memory.replicas if record.name != self.replica),
            draining=tuple(entry for entry in memory.draining if entry[0] != self.replica),
            kept=tuple(sorted({*memory.kept, *self._kept(memory)}, key=lambda each: each.replica)),
            condemned=tuple(each for each in memory.condemned if each.replica != self.replica),
        )

    def _kept(self, memory: Memory) -> tuple[KeptData, ...]:
        there = (each for each in memory.replicas if self.keep and each.name == self.replica)
        return tuple(KeptData(site=each.site, machine=each.machine, replica=each.name) for each in there)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachVolumes(Step):
    """Move a replica to another machine, with its volumes and as the same member. ``source`` is its own machine, where
    the site first makes sure that nothing can write to them; healings more than ``window`` seconds ago no longer count.
    The site assigns its ``seat`` when the step is carried out.
    """

    kind: ClassVar[str] = "attach-volumes"
    replica: str
    machine: str
    source: str
    window: float
    seat: Seat | None = None

    @property
    @override
    def words(self) -> str:
        return f"attach the volume of {self.replica} to machine {self.machine}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        left = {each for each in memory.left if (each.replica, each.machine) != (self.replica, self.machine)}
        if self.source != self.machine:
            site = memory.replica(self.replica).site
            left.add(LeftBehind(site=site, machine=self.source, replica=self.replica))
        moved = memory.with_replica(
            self.replica, lambda record: replace(record, machine=self.machine, seat=self.seat, restarted=False)
        )
        return replace(
            moved,
            down=tuple(entry for entry in memory.down if entry[0] != self.replica),
            healed=(*memory.healed_within(self.window, now), (self.source, now)),
            left=tuple(sorted(left, key=lambda each: (each.replica, each.machine))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveMachine(Step):
    """Remove the leftovers of a replica on a machine that it has left: its units, and its seat."""

    kind: ClassVar[str] = "clean-up-machine"
    replica: str
    machine: str

    @property
    @override
    def words(self) -> str:
        return f"remove leftovers of {self.replica} on machine {self.machine}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        gone = (self.replica, self.machine)
        return replace(memory, left=tuple(each for each in memory.left if (each.replica, each.machine) != gone))
