"""The site port: machines, units and volumes, wherever they are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import PurePosixPath
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
        """What such a site can do besides the calls of this port."""
        ...

    def fenced(self, fence: Fence) -> Self:
        """The same site for the holder of a plane's lease. Each machine refuses it, with LeaseLost, to write or remove
        files that units watch, to start, stop, hold or remove units, to delete or move volumes and to change who sits
        where, once the holder of a higher token has done or asked such a thing there: also what was asked long before
        and only arrives now.
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
        """Every unit that the machine knows, as its supervisor sees it now, and those of which only files are there
        (``UnitStatus.files_only``).
        """
        ...

    async def install(self, machine: str, program: Program) -> PurePosixPath:
        """Have a program on the machine, and say what its ``argv[0]`` is there: the same for the same program, whoever
        asks. Raises Unavailable when it cannot be had, PreconditionFailed when such a site runs no such programs
        (``capabilities``).
        """
        ...

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        """Write the files, then start the unit in its ``folder`` (starting the machine's supervisor if need be).

        A unit that runs with the same digest is left alone; one with another digest is stopped and started with
        the new spec. Returns when the process has been started (not when it is ready). ``boot_argv`` is passed
        after ``argv`` always. A unit whose data is not there (``UnitSpec.needs``) is not started: this raises
        Unavailable, and it has FAILED with the reason in ``UnitStatus.refused`` until its data is back; then the
        machine starts it. Until its start is done it may get less of the machine than its ``priority`` says.
        """
        ...

    async def reload_unit(self, machine: str, spec: UnitSpec) -> None:
        """Have a unit that runs have the files of ``spec``, each replaced atomically, and leave its process alone: for
        a program that takes changed files up by itself. From then on its digest is that of ``spec``. Raises Conflict
        for a unit that does not run, or differs in more than its files.
        """
        ...

    async def set_priority(self, machine: str, unit: str, priority: Priority) -> None:
        """Give a running unit this share of its machine from now on, however far its start has come; it has that of
        its spec again when it is started anew. Nothing happens to one that does not run.
        """
        ...

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        """SIGTERM (SIGKILL if ``kill``), wait up to the spec's stop_timeout, then SIGKILL; returns when the
        process is gone. Nothing happens to a unit that is not running or not known.
        """
        ...

    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        """From its next start on the unit is one that ``needs`` this data (``UnitSpec.needs``), and ``boot_argv``
        (``--flag=value``) take the place of arguments of the same flags. What runs goes on running. Nothing happens to
        a unit that is not known.
        """
        ...

    async def remove_unit(self, machine: str, unit: str) -> None:
        """Stop the unit if it runs, forget it and delete its folder, also where there is no more of it than files."""
        ...

    async def run_job(self, machine: str, job: Job) -> JobResult:
        """Run a program to its end, and say how it ended. Nothing that it started outlives it, nor the wait for it: it
        is killed when this is cancelled and when the caller dies.

        Raises TimedOut when its deadline is over (it is killed then), LeaseLost as ``fenced`` does.
        """
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

    async def search_volume(self, machine: str, name: str, wanted: Search) -> Found:
        """Lines of files in a volume. Raises Unavailable also when its files were renamed while they were read."""
        ...

    async def delete_volume(self, machine: str, name: str) -> None:
        """Delete a volume with all that is in it. Nothing happens if there is none."""
        ...

    async def attach_volume(self, machine: str, name: str, source: str) -> Volume:
        """Have a volume of a re-attachable class (``SiteFacts.reattachable``) here, with all that is in it, that was
        the machine ``source``'s. It is taken from there for good: from before it is here nothing at ``source`` can
        write to it any more, whatever runs, or stands still, there. It is never two machines'; one that was taken and
        is nowhere yet goes on to whoever asks next with the same ``machine``.

        Raises PreconditionFailed for a class whose volumes are local, NotFound where there is no such volume at either,
        Conflict when ``source`` answers and still uses it, Unavailable when it cannot be made sure of that nothing
        there writes (then nobody has it), LeaseLost as ``fenced`` does.
        """
        ...

    async def storage_classes(self) -> tuple[str, ...]:
        """The storage classes that the site offers, the default first."""
        ...

    async def free_bytes(self, machine: str, storage_class: str) -> int:
        """Free space for new volumes of that class."""
        ...

    async def require_room(self, doing: str, replicas: int) -> str:
        """What is left, in words, of all else that programs of the site's hosts share (such as what one user may open
        there), if it is enough for so many replicas more. Raises PreconditionFailed.
        """
        ...

    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        """A seat on the machine for a replica: the one that it was given before, as long as it was not released, else
        one with ports of these names that nobody has been given and that nothing listens on: with these ports, if all
        of them are free. Units of the replica will be started there soon, which the site may prepare for.

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

    async def measure(self, machine: str, what: Measure) -> float:
        """What is measured there now: see ``model.capabilities``."""
        ...

    async def destroy(self) -> None:
        """End all that runs at the site and remove all that it has, volumes too: nobody uses it any more."""
        ...


@runtime_checkable
class Holds(Protocol):
    """Units that can be held where they stand (``Capability.HOLDS``)."""

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


@runtime_checkable
class Routes(Protocol):
    """Machines that can have an address for a while."""

    @property
    def cannot_route(self) -> str:
        """Why none of them can ("": they can, as far as that is known here), for people. No IO but a look at files."""
        ...

    def routing(self, machine: str, unit: str) -> Routing:
        """How keepalived runs there as that unit. No IO but for what is read once."""
        ...


@runtime_checkable
class Floats(Routes, Protocol):
    """Edges that take over each other's addresses (``Capability.FLOATS``). These are those of all planes, which differ
    by port: a unit of the site's own has them, and they go over for all planes at once.
    """

    def floating(self, machine: str) -> str | None:
        """The address of an edge that leads to whichever edge of the site has it; None for another machine. No IO."""
        ...

    def router(self, machine: str) -> RouterSettings:
        """That unit's settings on an edge. No IO."""
        ...


@runtime_checkable
class LedFromOutside(Protocol):
    """Sites that can have a load balancer of the user's own in front."""

    @property
    def external(self) -> ExternalLoadBalancer | None:
        """That one, if there is one. No IO."""
        ...


@runtime_checkable
class Leads(Routes, Protocol):
    """Addresses of which any machine can have one for a while (``Capability.LEADS``)."""

    @property
    def led_addresses(self) -> tuple[str, ...]:
        """All that there are: they lead to the site, and to whichever of its machines has them. No IO."""
        ...


@runtime_checkable
class ChecksStorage(SitePort, Protocol):
    """Storage that is attached by commands of people's, which can be tried."""

    def check_storage(self, storage_class: str, volume: str, first: str, second: str) -> AsyncIterator[Promise]:
        """Try them with a volume that there is not yet, on two machines: each promise as it was tried. Nothing is left.

        Raises InvalidInput, NotFound, PreconditionFailed for what cannot be tried, Unavailable.
        """
        ...


class MakesFaults(Protocol):
    """Where faults are made.

    A fault that is *made* has an owner and an end: it is undone when it is told to be, when the process that made it
    ends, however that ends, and when its time is over, whichever comes first. One at a time on each machine.
    """

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        """Make a fault, for at most so long. What is corrupt stays so: the unit stands still for that moment, so that
        nothing is written meanwhile, and there is nothing to undo.

        Raises PreconditionFailed as ``cannot_make`` says, Conflict when the machine is off, stands still or has another
        fault already, NotFound for a unit, volume or text that is not there. Nothing was done then.
        """
        ...

    async def undo_fault(self, fault: Fault) -> str:
        """Undo a fault that this process made, now. Nothing happens to one that is over. What is left of it, in words
        ("": nothing).
        """
        ...


@runtime_checkable
class Faults(MakesFaults, Protocol):
    """What drills can do to a site (``Capability.FAULTS``)."""

    @property
    def whole_hosts(self) -> bool:
        """Whether a fault of a machine is one of all that is on its host; else machines of one host fail alone."""
        ...

    def cannot_make(self, kind: FaultKind) -> str:
        """Why such a site cannot make such a fault, and undo it again; "" if it can."""
        ...

    async def faults_made(self) -> tuple[Fault, ...]:
        """The faults that are made now, whoever made them."""
        ...


@runtime_checkable
class Switches(Protocol):
    """What a test lab can do to the machines of a site."""

    async def kill_machine(self, machine: str) -> None:
        """Kill every process of the machine at once (volumes stay), and keep it off until it is booted."""
        ...

    async def boot_machine(self, machine: str) -> None:
        """Boot a machine that is off: its supervisor starts the units that ran before."""
        ...

    async def freeze_machine(self, machine: str) -> None:
        """Stop every process of the machine where it stands, until it is thawed."""
        ...

    async def thaw_machine(self, machine: str) -> None:
        """Let them go on."""
        ...
