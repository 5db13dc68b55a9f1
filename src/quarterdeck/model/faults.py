"""What may fail: the failures that a drill tries, and the faults that a site makes for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fail(StrEnum):
    """What a drill has fail, as people name it."""

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


class FaultKind(StrEnum):
    """What can be done to a machine, or to what is on it."""

    KILL_UNIT = "kill-unit"  # its process is killed; the machine starts it again
    HANG_UNIT = "hang-unit"  # its process stands still
    POWER_OFF = "power-off"  # every process is killed at once, and the machine stays off
    FREEZE = "freeze"  # every process stands still
    CUT = "cut"  # nothing gets to the machine, and nothing from it
    DEAFEN = "deafen"  # nothing gets to the machine; what it sends arrives
    LOSE_DATA = "lose-data"  # a volume is empty all at once; what was in it is kept aside
    SLOW_DISK = "slow-disk"  # a disk takes long to sync, for all programs that have a volume there
    FILL_DISK = "fill-disk"  # a disk has no room left, for the same
    CORRUPT = "corrupt"  # a file in a volume has another text than was written, for good
    SET_CLOCK = "set-clock"  # the machine's clock is wrong
    KILL_MANAGER = "kill-manager"  # the process that keeps planes is killed; no site has a part in it


#: Seconds that a sync takes longer on a disk that is slow: managers are to call it so (over 0.5 s:
#: engine/observation/slowness.py), and a leader of etcd that waits so long is still heard of in time
#: by those who follow (1 s).
SLOW_SYNC = 0.6

#: Over as soon as they are made: there is nothing to undo.
MOMENTARY = frozenset({FaultKind.KILL_UNIT, FaultKind.KILL_MANAGER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault on one machine. ``unit``: whose process it is about, or is killed with what it is about; ``volume``:
    what is lost. ``text`` in the file ``path`` of a volume is what becomes another one, as long as it is. A manager is
    on no machine (""), and ``unit`` is who it says it is.
    """

    kind: FaultKind
    machine: str
    unit: str = ""
    volume: str = ""
    path: str = ""
    text: str = ""

    @property
    def words(self) -> str:
        """It, for people."""
        return _WORDS[self.kind].format(machine=self.machine, unit=self.unit, volume=self.volume)


_WORDS = {
    FaultKind.KILL_UNIT: "unit {unit} on machine {machine} is killed",
    FaultKind.HANG_UNIT: "unit {unit} on machine {machine} stands still",
    FaultKind.POWER_OFF: "machine {machine} is off",
    FaultKind.FREEZE: "machine {machine} stands still",
    FaultKind.CUT: "machine {machine} is cut off",
    FaultKind.DEAFEN: "nothing gets to machine {machine}, and what it sends arrives",
    FaultKind.LOSE_DATA: "volume {volume} on machine {machine} has lost its data",
    FaultKind.SLOW_DISK: f"the disk of machine {{machine}} is slow: each sync takes {SLOW_SYNC:g} s longer",
    FaultKind.FILL_DISK: "the disk of machine {machine} is full: whatever needs room there fails",
    FaultKind.CORRUPT: "volume {volume} on machine {machine} has other data than was written",
    FaultKind.SET_CLOCK: "the clock of machine {machine} is wrong",
    FaultKind.KILL_MANAGER: "the manager {unit} is killed",
}
