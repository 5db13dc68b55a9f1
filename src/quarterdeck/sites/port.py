"""The site port: machines, units and volumes of any kind of site."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol, Self, runtime_checkable

from quarterdeck.components.traffic.keepalived import RouterSettings, Routing
from quarterdeck.model.capabilities import Capability, Found, Job, JobResult, Measure, Search
from quarterdeck.model.endpoints import ExternalLoadBalancer
from quarterdeck.model.faults import Fault, FaultKind
from quarterdeck.model.findings import Promise
from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.units import Fence, Machine, Priority, Program, UnitFile, UnitSpec, UnitStatus, Volume


class SitePort(Protocol):
    """One site. Every call is idempotent, has its own deadline, and raises Unavailable when the machine does
    not answer, NotFound for a machine, volume or storage class that the site does not have.
    """

    @property
    def name(self) -> str:
        """The site's name."""
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The optional capabilities of the site, besides the calls of this port."""
        ...

    def fenced(self, fence: Fence) -> Self:
        """The same site for the holder of a plane's lease. Each machine refuses with LeaseLost to write or remove files
        that units watch, to start, stop, hold or remove units, to fill, delete or move volumes and to change seats,
        once the holder of a higher token has done or requested such a thing there: also a request that was sent long
        before and arrives late.
        """
        ...

    async def machines(self) -> tuple[Machine, ...]:
        """All machines of the site with their state, also those that are down. Never raises Unavailable because of one
        machine.
        """
        ...

    async def facts(self, below: str = "") -> SiteFacts:
        """All machines with their units and volumes, in one observation that begins now or later. Of each volume it has
        the entries of its folder ``below``. Never raises Unavailable because of one machine or disk: what does not
        answer is unknown.
        """
        ...

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        """The absolute folder on that machine for a unit's files (not created yet)."""
        ...

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        """Every unit that the machine knows, in its supervisor's current state, and those with only files left
        (``UnitStatus.files_only``).
        """
        ...

    async def install(self, machine: str, program: Program) -> PurePosixPath:
        """Install a program on the machine; returns its ``argv[0]`` there: the same for the same program, for all
        callers. Raises Unavailable when it cannot be installed, PreconditionFailed when such a site runs no such
        programs (``capabilities``).
        """
        ...

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        """Write the files, then start the unit in its ``folder`` (starting the machine's supervisor if needed).

        A running unit with the same digest is left alone; one with another digest is stopped and started with the new
        spec. Returns when the process has been started (not when it is ready). ``boot_argv`` is passed after ``argv``
        always. A unit whose data is missing (``UnitSpec.needs``) is not started: this raises Unavailable, and it has
        FAILED with the reason in ``UnitStatus.refused`` until its data is back; then the machine starts it. Until its
        start is complete it may get less of the machine than its ``priority`` says.
        """
        ...

    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        """Give a running unit the files of ``spec``, each replaced atomically, without touching its process: for a
        program that reloads changed files by itself. From then on its digest is that of ``spec``. Raises Conflict for a
        unit that does not run, or differs in more than its files.
        """
        ...

    async def set_priority(self, machine: str, unit: str, priority: Priority) -> None:
        """Give a running unit this share of its machine from now on, even during its start; it has that of its spec
        again after a restart. Nothing happens to one that does not run.
        """
        ...

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        """SIGTERM (SIGKILL if ``kill``), wait up to the spec's stop_timeout, then SIGKILL; returns when the process has
        ended. Nothing happens to a unit that is not running or not known.
        """
        ...

    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        """From its next start on the unit ``needs`` this data (``UnitSpec.needs``), and ``boot_argv``
        (``--flag=value``) replace arguments of the same flags. A running process is not touched. Nothing happens to a
        unit that is not known.
        """
        ...

    async def remove_unit(self, machine: str, unit: str) -> None:
        """Stop the unit if it runs, remove it and delete its folder, also where only files are left."""
        ...

    async def run_job(self, machine: str, job: Job) -> JobResult:
        """Run a program to its end; returns its result. Nothing that it started outlives it, nor the call: it is killed
        when this is cancelled and when the caller dies.

        Raises TimedOut when its deadline is over (it is killed then), LeaseLost as ``fenced`` does.
        """
        ...

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        """Write files that running units watch: each is replaced atomically (written to a temporary file, then
        renamed), and missing folders are created. The paths are below ``folder``, and are not part of any spec's
        digest.
        """
        ...

    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        """Delete files that ``write_files`` wrote. Nothing happens for one that does not exist."""
        ...

    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        """The last lines of the unit's stdout and stderr, of former starts too."""
        ...

    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        """The volume, created (0700) if it does not exist; raises Conflict if it exists with another class."""
        ...

    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        """All volumes on the machine."""
        ...

    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        """Names of the entries in a folder of a volume; empty when that folder does not exist."""
        ...

    async def search_volume(self, machine: str, name: str, wanted: Search) -> Found:
        """Lines of files in a volume. Raises Unavailable also when its files were renamed during the call."""
        ...

    async def fill_volume(self, machine: str, name: str, file: str, source: Path) -> PurePosixPath:
        """Copy a file of this host into a volume as ``file`` (a plain name), in place of one of that name; returns its
        path there. It is there as a whole and on the disk, or not at all: 0600, of the user that has the volume, and
        nobody else can read any part of it on the way. One file at a time for each volume: what is left of an earlier
        attempt is removed, or continued where it was the same file.

        Raises NotFound, InvalidInput for another name, LeaseLost as ``fenced`` does, Unavailable also for a source that
        cannot be read, and when there is no room.
        """
        ...

    async def delete_volume(self, machine: str, name: str) -> None:
        """Delete a volume with all that is in it. Nothing happens if there is none."""
        ...

    async def attach_volume(self, machine: str, name: str, source: str) -> Volume:
        """Move a volume of a re-attachable class (``SiteFacts.reattachable``) here, with all its content, from the
        machine ``source``. It is taken from there for good: before it is here nothing at ``source`` can write to it any
        more, whatever runs, or is frozen, there. It never belongs to two machines; one that was taken and has not
        arrived goes to the next caller with the same ``machine``.

        Raises PreconditionFailed for a class whose volumes are local, NotFound where neither has such a volume,
        Conflict when ``source`` answers and still uses it, Unavailable when it is not certain that nothing there writes
        (then no machine has it), LeaseLost as ``fenced`` does.
        """
        ...

    async def storage_classes(self) -> tuple[str, ...]:
        """The storage classes of the site, the default first."""
        ...

    async def free_bytes(self, machine: str, storage_class: str) -> int:
        """Free space for new volumes of that class."""
        ...

    async def require_room(self, doing: str, replicas: int) -> str:
        """The remaining capacity, as text, of everything else that programs of the site's hosts share (such as limits
        of one user), if it is enough for that many more replicas. Raises PreconditionFailed.
        """
        ...

    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        """A seat on the machine for a replica: its existing one, as long as it was not released, else one with ports of
        these names that are neither allocated nor in use: with these ports, if all of them are free. Units of the
        replica will be started there soon, which the site may prepare for.

        Raises Conflict if it has one with other ports, PreconditionFailed when there is none left, LeaseLost as
        ``fenced`` does.
        """
        ...

    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        """Record a seat that this machine's ledger may not have, even if it is allocated to another replica there.
        Raises LeaseLost.
        """
        ...

    async def seats(self, machine: str) -> tuple[TakenSeat, ...]:
        """All seats on the machine."""
        ...

    async def release(self, machine: str, plane: str, replica: str) -> None:
        """Release a replica's seat. Nothing happens for a replica without one. Raises LeaseLost."""
        ...

    async def ports_in_use(self, machine: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        """Those of ``ports`` that something already listens on at the machine's address."""
        ...

    async def measure(self, machine: str, what: Measure) -> float:
        """The result of a measurement there: see ``model.capabilities``."""
        ...

    async def destroy(self) -> None:
        """Stop everything at the site and delete all its data, volumes too: no plane uses it any longer."""
        ...


@runtime_checkable
class Holds(Protocol):
    """Units that can be paused (``Capability.HOLDS``)."""

    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """Stop a running unit's process, for at most ``seconds``: the machine itself resumes it then, even if the
        caller is dead. Nothing happens to one that does not run.
        """
        ...

    async def let_go_unit(self, machine: str, unit: str) -> None:
        """Resume a paused unit now, for any caller. From then on the machine refuses an older fence: each driver begins
        with this.
        """
        ...


@runtime_checkable
class Routes(Protocol):
    """Machines that can temporarily have an address."""

    @property
    def cannot_route(self) -> str:
        """Why none of them can ("": they can, as far as that is known here), for people. No IO but a check of files."""
        ...

    def routing(self, machine: str, unit: str) -> Routing:
        """How keepalived runs there as that unit. No IO but cached reads."""
        ...


@runtime_checkable
class Floats(Routes, Protocol):
    """Edges that take over each other's addresses (``Capability.FLOATS``). The addresses are shared by all planes,
    which differ by port: a unit of the site's own manages them, and they move for all planes at once.
    """

    def floating(self, machine: str) -> str | None:
        """The address of an edge that leads to whichever edge of the site has it; None for another machine. No IO."""
        ...

    def router(self, machine: str) -> RouterSettings:
        """That unit's settings on an edge. No IO."""
        ...


@runtime_checkable
class LedFromOutside(Protocol):
    """Sites that can have the user's own load balancer in front."""

    @property
    def external(self) -> ExternalLoadBalancer | None:
        """That load balancer, if there is one. No IO."""
        ...


@runtime_checkable
class Leads(Routes, Protocol):
    """Addresses that any machine can temporarily have (``Capability.LEADS``)."""

    @property
    def led_addresses(self) -> tuple[str, ...]:
        """All of these: they lead to the site, and to the machine that has them. No IO."""
        ...


@runtime_checkable
class ChecksStorage(SitePort, Protocol):
    """Storage that is attached by users' commands, which can be tested."""

    def check_storage(self, storage_class: str, volume: str, first: str, second: str) -> AsyncIterator[Promise]:
        """Test them with a new volume, on two machines: each promise and its result. Nothing is left behind.

        Raises InvalidInput, NotFound, PreconditionFailed for what cannot be tested, Unavailable.
        """
        ...


class MakesFaults(Protocol):
    """Fault injection.

    A fault has an owner and an end: it is undone on request, when the process that made it ends, in whatever way, and
    when its time is over, whichever comes first. One at a time on each machine.
    """

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        """Make a fault, for at most that long. A corruption stays: the unit is stopped for that moment, so that nothing
        is written, and there is nothing to undo.

        Raises PreconditionFailed as ``cannot_make`` says, Conflict when the machine is off, frozen or has another fault
        already, NotFound for a unit, volume or text that does not exist. Nothing was done then.
        """
        ...

    async def undo_fault(self, fault: Fault) -> str:
        """Undo a fault that this process made, now. Nothing happens to one that is over. Returns what is left of it, as
        text ("": nothing).
        """
        ...


@runtime_checkable
class Faults(MakesFaults, Protocol):
    """The faults of drills (``Capability.FAULTS``)."""

    @property
    def whole_hosts(self) -> bool:
        """Whether a fault of a machine is one of all that is on its host; else machines of one host fail alone."""
        ...

    def cannot_make(self, kind: FaultKind) -> str:
        """Why such a site cannot make such a fault, and undo it again; "" if it can."""
        ...

    async def faults_made(self) -> tuple[Fault, ...]:
        """The current faults, whichever process made them."""
        ...


@runtime_checkable
class Switches(Protocol):
    """The operations of a test lab on the machines of a site."""

    async def kill_machine(self, machine: str) -> None:
        """Kill every process of the machine at once (volumes stay), and keep it off until it is booted."""
        ...

    async def boot_machine(self, machine: str) -> None:
        """Boot a machine that is off: its supervisor starts the units that ran before."""
        ...

    async def freeze_machine(self, machine: str) -> None:
        """Stop every process of the machine, until it is thawed."""
        ...

    async def thaw_machine(self, machine: str) -> None:
        """Resume them."""
        ...
