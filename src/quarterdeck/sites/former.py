"""A site that a plane still names and that is not there any more: what is known of it is known, and nothing answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NoReturn, Self

from quarterdeck.errors import Unavailable
from quarterdeck.model.capabilities import Capability
from quarterdeck.model.jobs import Job, JobResult
from quarterdeck.model.measures import Measure
from quarterdeck.model.programs import Program
from quarterdeck.model.searches import Found, Search
from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.site_facts import MachineFacts, SiteFacts
from quarterdeck.model.units import Fence, Machine, Priority, UnitFile, UnitSpec, UnitStatus, Volume


@dataclass(frozen=True, slots=True)
class FormerSite:
    """Offers the ports Site and Holds. ``known`` are a plane's machines there, none of which can be reached."""

    name: str
    known: tuple[Machine, ...]

    @property
    def capabilities(self) -> frozenset[Capability]:
        """See Site: whatever could be done to what it had, nothing answers."""
        return frozenset()

    def fenced(self, fence: Fence) -> Self:
        """See Site."""
        return self

    async def machines(self) -> tuple[Machine, ...]:
        """See Site."""
        return self.known

    async def facts(self, below: str = "") -> SiteFacts:
        """See Site."""
        machines = tuple(MachineFacts(machine=each) for each in self.known)
        return SiteFacts(name=self.name, machines=machines, storage_classes=())

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        """See Site."""
        return PurePosixPath("/nowhere", machine, unit)

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        """See Site."""
        self._refuse(machine)

    async def install(self, machine: str, program: Program) -> PurePosixPath:
        """See Site."""
        self._refuse(machine)

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        """See Site."""
        self._refuse(machine)

    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        """See Site."""
        self._refuse(machine)

    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        """See Site."""
        self._refuse(machine)

    async def set_priority(self, machine: str, unit: str, priority: Priority) -> None:
        """See Site."""
        self._refuse(machine)

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        """See Site."""
        self._refuse(machine)

    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """See Site."""
        self._refuse(machine)

    async def let_go_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        self._refuse(machine)

    async def remove_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        self._refuse(machine)

    async def run_job(self, machine: str, job: Job) -> JobResult:
        """See Site."""
        self._refuse(machine)

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        """See Site."""
        self._refuse(machine)

    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        """See Site."""
        self._refuse(machine)

    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        """See Site."""
        self._refuse(machine)

    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        """See Site."""
        self._refuse(machine)

    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        """See Site."""
        self._refuse(machine)

    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        """See Site."""
        self._refuse(machine)

    async def search_volume(self, machine: str, name: str, wanted: Search) -> Found:
        """See Site."""
        self._refuse(machine)

    async def delete_volume(self, machine: str, name: str) -> None:
        """See Site."""
        self._refuse(machine)

    async def attach_volume(self, machine: str, name: str, source: str) -> Volume:
        """See Site."""
        self._refuse(machine)

    async def storage_classes(self) -> tuple[str, ...]:
        """See Site."""
        return ()

    async def free_bytes(self, machine: str, storage_class: str) -> int:
        """See Site."""
        self._refuse(machine)

    async def require_room(self, doing: str, replicas: int) -> str:
        """See Site."""
        self._refuse(", ".join(each.name for each in self.known))

    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        """See Site."""
        self._refuse(machine)

    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        """See Site."""
        self._refuse(machine)

    async def seats(self, machine: str) -> tuple[TakenSeat, ...]:
        """See Site."""
        self._refuse(machine)

    async def release(self, machine: str, plane: str, replica: str) -> None:
        """See Site."""
        self._refuse(machine)

    async def ports_in_use(self, machine: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        """See Site."""
        self._refuse(machine)

    async def measure(self, machine: str, what: Measure) -> float:
        """See Site."""
        self._refuse(machine)

    async def destroy(self) -> None:
        """See Site."""
        self._refuse(", ".join(each.name for each in self.known))

    def _refuse(self, machine: str) -> NoReturn:
        raise Unavailable(
            f"using machine {machine}", f"site {self.name} is not declared any more", "declare it again as it was"
        )
