"""The site port: machines, units and volumes, wherever they are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Protocol, Self

from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.units import Fence, Machine, UnitFile, UnitSpec, UnitStatus, Volume


class Site(Protocol):
    """One site. Every call is idempotent, has its own deadline, and raises Unavailable when the machine does
    not answer, NotFound for a machine, volume or storage class that the site does not have.
    """

    @property
    def name(self) -> str:
        """The site's name."""
        ...

    def fenced(self, fence: Fence) -> Self:
        """The same site for the holder of a plane's lease. Each machine refuses it, with LeaseLost, to write or remove
        files that units watch, to start, stop, hold or remove units, to delete volumes and to change who sits where,
        once the holder of a higher token has done or asked such a thing there: also what was asked long before and only
        arrives now.
        """
        ...

    async def machines(self) -> tuple[Machine, ...]:
        """All machines of the site with their state, also those that are down. Never raises Unavailable for one
        machine's sake.
        """
        ...

    async def facts(self, below: str = "") -> SiteFacts:
        """All machines with their units and volumes, in one look that begins now or later. Of each volume it has the
        entries of its folder ``below``. Never raises Unavailable for one machine's, or one disk's, sake: what does not
        answer is not known.
        """
        ...

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        """The absolute folder on that machine for a unit's files (not created yet)."""
        ...

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        """Every unit that the machine knows, as its supervisor sees it now."""
        ...

    async def wake(self, machine: str) -> None:
        """Have the machine ready for units, so that its first start of one is quick (its supervisor runs then)."""
        ...

    async def rest(self, machine: str) -> None:
        """The opposite of ``wake``: a machine without any unit keeps nothing running. Others are left alone."""
        ...

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        """Write the files, then start the unit in its ``folder`` (starting the machine's supervisor if need be).

        A unit that runs with the same digest is left alone; one with another digest is stopped and started with
        the new spec. Returns when the process has been started (not when it is ready). ``boot_argv`` is passed
        after ``argv`` always. A unit whose data is not there (``UnitSpec.needs``) is not started: this raises
        Unavailable, and it has FAILED with the reason in ``UnitStatus.refused`` until its data is back; then the
        machine starts it. Until its start is done it may get less of the machine than units that serve.
        """
        ...

    async def favour_unit(self, machine: str, unit: str) -> None:
        """The unit serves from now on: whatever its start has held back of the machine is its own. Nothing happens
        to one that does not run.
        """
        ...

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        """SIGTERM (SIGKILL if ``kill``), wait up to the spec's stop_timeout, then SIGKILL; returns when the
        process is gone. Nothing happens to a unit that is not running or not known.
        """
        ...

    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """Stop a running unit where it stands, for at most ``seconds``: the machine itself lets it go on then,
        even if the caller is dead. Nothing happens to one that does not run.
        """
        ...

    async def let_go_unit(self, machine: str, unit: str) -> None:
        """Let a held unit go on now, whoever asks. From then on the machine refuses whoever has an older fence: each
        driver begins with this.
        """
        ...

    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        """From its next start on the unit is one that ``needs`` this data (``UnitSpec.needs``), and ``boot_argv``
        (``--flag=value``) take the place of arguments of the same flags. What runs goes on running. Nothing happens to
        a unit that is not known.
        """
        ...

    async def remove_unit(self, machine: str, unit: str) -> None:
        """Stop the unit if it runs, forget it and delete its folder."""
        ...

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        """Write files that running units watch: each is replaced atomically (written beside, then renamed), and
        missing folders are made. The paths lie below ``folder``, and are no part of any spec's digest.
        """
        ...

    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        """Delete files that ``write_files`` wrote. Nothing happens for one that is not there."""
        ...

    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        """The last lines of what the unit wrote to stdout and stderr, of former starts too."""
        ...

    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        """The volume, made (0700) if it does not exist; raises Conflict if it exists with another class."""
        ...

    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        """All volumes on the machine."""
        ...

    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        """Names of the entries in a folder of a volume; empty when that folder does not exist."""
        ...

    async def delete_volume(self, machine: str, name: str) -> None:
        """Delete a volume with all that is in it. Nothing happens if there is none."""
        ...

    async def storage_classes(self) -> tuple[str, ...]:
        """The storage classes that the site offers, the default first."""
        ...

    async def free_bytes(self, machine: str, storage_class: str) -> int:
        """Free space for new volumes of that class."""
        ...

    async def free_memory(self, machines: tuple[str, ...]) -> int:
        """Bytes of memory that new units on each of these machines may take, if they take as much on all of them."""
        ...

    async def require_room(self, doing: str, replicas: int) -> str:
        """What is left, in words, of all else that programs of the site's hosts share (such as what one user may open
        there), if it is enough for so many replicas more. Raises PreconditionFailed.
        """
        ...

    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        """A seat on the machine for a replica: the one that it was given before, as long as it was not released, else
        one with ports of these names that nobody has been given and that nothing listens on: with these ports, if all
        of them are free.

        Raises Conflict if it has one with other ports, PreconditionFailed when there is none left, LeaseLost as
        ``fenced`` does.
        """
        ...

    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        """Have it known who has a seat that this machine's ledger may not know, whoever else is said to have it. Raises
        LeaseLost.
        """
        ...

    async def seats(self, machine: str) -> tuple[TakenSeat, ...]:
        """Who has which seat on the machine."""
        ...

    async def release(self, machine: str, plane: str, replica: str) -> None:
        """Let somebody else have a replica's seat. Nothing happens for one that has none. Raises LeaseLost."""
        ...

    async def ports_in_use(self, machine: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        """Those of ``ports`` that something already listens on at the machine's address."""
        ...

    async def round_trip(self, machine: str, address: str, port: int) -> float:
        """Seconds that a TCP connection from the machine to something that listens takes: the median of a few.

        Raises Unavailable when nothing answers there.
        """
        ...

    async def clock_offset(self, machine: str) -> float:
        """Seconds by which the machine's clock is ahead of the caller's (negative: behind)."""
        ...

    async def destroy(self) -> None:
        """End all that runs at the site and remove all that it has, volumes too: nobody uses it any more."""
        ...


class Faults(Protocol):
    """What test labs and drills can do to a site. Only the local driver offers it."""

    async def kill_machine(self, machine: str) -> None:
        """Kill every process of the machine at once (volumes stay), and keep it off."""
        ...

    async def boot_machine(self, machine: str) -> None:
        """Boot a machine that is off: its supervisor starts the units that ran before."""
        ...

    async def freeze_machine(self, machine: str) -> None:
        """Stop every process of the machine where it stands."""
        ...

    async def thaw_machine(self, machine: str) -> None:
        """Let them go on."""
        ...
