"""The failures that a drill tries, and the faults that a site injects for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fail(StrEnum):
    """What a drill makes fail, as people name it."""

    UNIT = "unit"
    HANG = "hang"
    MACHINE = "machine"
    FREEZE = "freeze"
    ZONE = "zone"
    LEADER = "leader"
    PARTITION = "partition"
    ONEWAY = "oneway"
    SLOW_DISK = "slow-disk"
    DISK_FULL = "disk-full"
    DATA_LOSS = "data-loss"
    CORRUPT = "corrupt"
    QUORUM = "quorum"
    MANAGER = "manager"
    EDGE = "edge"
    DNS = "dns"
    CLOCK = "clock"
    TOTAL_LOSS = "total-loss"  # nothing fails: the plane is restored from its backup beside it


class FaultKind(StrEnum):
    """What can be done to a machine, or to its units and volumes."""

    KILL_UNIT = "kill-unit"  # its process is killed; the machine starts it again
    HANG_UNIT = "hang-unit"  # its process is frozen
    POWER_OFF = "power-off"  # every process is killed at once, and the machine stays off
    FREEZE = "freeze"  # every process is frozen
    CUT = "cut"  # nothing gets to the machine, and nothing from it
    DEAFEN = "deafen"  # nothing gets to the machine; what it sends arrives
    LOSE_DATA = "lose-data"  # a volume becomes empty; its content is kept elsewhere
    SLOW_DISK = "slow-disk"  # syncs of a disk are slow, for all programs with a volume there
    FILL_DISK = "fill-disk"  # a disk has no room left, for the same programs
    CORRUPT = "corrupt"  # a file in a volume gets another text, for good
    SET_CLOCK = "set-clock"  # the machine's clock is wrong
    KILL_MANAGER = "kill-manager"  # the manager is killed; no site is involved


#: Seconds that a sync takes longer on a slow disk: long enough that managers report it (over 0.5 s:
#: engine/observation/slowness.py), and short enough that the followers of a leader of etcd that waits so long do not
#: start an election (1 s).
SLOW_SYNC = 0.6

#: Momentary: there is nothing to undo.
MOMENTARY = frozenset({FaultKind.KILL_UNIT, FaultKind.KILL_MANAGER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault on one machine."""

    kind: FaultKind
    #: "" for a manager, which is on no machine.
    machine: str
    #: The unit whose process the fault hits, or that is killed with it; for a manager, its identity.
    unit: str = ""
    #: The volume whose data is lost or changed.
    volume: str = ""
    #: The text in this file of the volume is replaced by another of the same length.
    path: str = ""
    text: str = ""

    @property
    def words(self) -> str:
        """The fault, for people."""
        return _WORDS[self.kind].format(machine=self.machine, unit=self.unit, volume=self.volume)


_WORDS = {
    FaultKind.KILL_UNIT: "unit {unit} on machine {machine} is killed",
    FaultKind.HANG_UNIT: "unit {unit} on machine {machine} is frozen",
    FaultKind.POWER_OFF: "machine {machine} is off",
    FaultKind.FREEZE: "machine {machine} is frozen",
    FaultKind.CUT: "machine {machine} is cut off",
    FaultKind.DEAFEN: "machine {machine} receives nothing, and what it sends arrives",
    FaultKind.LOSE_DATA: "volume {volume} on machine {machine} has lost its data",
    FaultKind.SLOW_DISK: f"the disk of machine {{machine}} is slow: each sync takes {SLOW_SYNC:g} s longer",
    FaultKind.FILL_DISK: "the disk of machine {machine} is full: writes to it fail",
    FaultKind.CORRUPT: "volume {volume} on machine {machine} has corrupted data",
    FaultKind.SET_CLOCK: "the clock of machine {machine} is wrong",
    FaultKind.KILL_MANAGER: "the manager {unit} is killed",
}
