"""A machine in memory: what is on it, and what its supervisor knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from fakes.site_disk import FakeDisk
from quarterdeck.components.endings import ENDED, ending
from quarterdeck.model.units import MachineState, UnitFile, UnitSpec, UnitState
from quarterdeck.sites.base.seats import SeatLedger
from quarterdeck.sites.local.settings import MachineEntry


@dataclass(slots=True)
class FakeUnit:
    """A unit, with what its supervisor knows of it."""

    spec: UnitSpec
    wanted: bool = True
    state: UnitState = UnitState.STOPPED
    pid: int | None = None
    exit_code: int | None = None
    restarts: int = 0
    log: str = ""
    refused: str = ""
    had_data: bool = False
    fresh: bool = False  # it may begin without data, until it has any
    #: That of the spec it was last started, or reloaded, with.
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        self.digest = self.spec.digest

    def ends(self, exit_code: int) -> None:
        """Its process ends."""
        self.exit_code = exit_code
        self.log += f"{ENDED}: {ending(exit_code)}\n"


@dataclass(slots=True)
class FakeMachine:
    """A machine, with all that is on it."""

    stand: MachineEntry
    state: MachineState = MachineState.UP
    units: dict[str, FakeUnit] = field(default_factory=dict)
    disk: FakeDisk = field(default_factory=FakeDisk)
    files: dict[PurePosixPath, UnitFile] = field(default_factory=dict)
    ledger: SeatLedger = field(default_factory=SeatLedger)
    fences: dict[str, int] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)
    clock_offset: float = 0.0
    round_trip: float = 0.0001
