"""Replicas go to other machines with their data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from typing_extensions import override

from quarterdeck.model.memory import LeftBehind, Memory
from quarterdeck.model.seats import Seat
from quarterdeck.model.steps.base import Claim, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachVolumes(Step):
    """Have a replica on another machine, with its volumes and as the member that it is. ``source`` is its own, of which
    it is made sure first that nothing there can write to them; what was healed there longer than ``window`` seconds ago
    counts no more. The site gives it a ``seat`` when the step is carried out.
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
    """Remove what a replica has left on a machine that it is not on any more: its units, and its seat."""

    kind: ClassVar[str] = "clean-up-machine"
    replica: str
    machine: str

    @property
    @override
    def words(self) -> str:
        return f"remove what {self.replica} has left on machine {self.machine}"

    @property
    @override
    def claim(self) -> Claim:
        return Claim("replica", self.replica)

    @override
    def remembered(self, memory: Memory, now: float) -> Memory:
        gone = (self.replica, self.machine)
        return replace(memory, left=tuple(each for each in memory.left if (each.replica, each.machine) != gone))
