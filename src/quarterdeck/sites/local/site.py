"""The local driver: machines on this host, each with a supervisord that outlives the process that started it."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import ParamSpec, Self, TypeVar

from quarterdeck.errors import LeaseLost, NotFound, Unavailable
from quarterdeck.files import file_errors, remove_folder
from quarterdeck.model.seats import Seat, TakenSeat
from quarterdeck.model.site_facts import SiteFacts
from quarterdeck.model.units import Fence, Machine, UnitFile, UnitSpec, UnitState, UnitStatus, Volume
from quarterdeck.sites.isolation import Isolation
from quarterdeck.sites.ledger import Ledger
from quarterdeck.sites.local.kept_ledger import change_ledger, read_ledger
from quarterdeck.sites.local.kept_stands import keep_stand, kept_stands
from quarterdeck.sites.local.limits import available_memory, require_inotify
from quarterdeck.sites.local.listening import TABLES, listening_ports
from quarterdeck.sites.local.logs import last_lines
from quarterdeck.sites.local.look import Looks
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.numbers import site_number
from quarterdeck.sites.local.records import FILES, LOG, UnitRecord
from quarterdeck.sites.local.round_trip import round_trip_command
from quarterdeck.sites.local.settings import LocalSiteSettings, require_entry_name, stands
from quarterdeck.sites.local.supervisor_client import Outdated
from quarterdeck.sites.local.unit_files import (
    Staged,
    check_watched,
    drop_staged,
    is_at_it,
    keep_record,
    known_record,
    put_staged,
    remove_unit_folder,
    remove_watched,
    settle_staged,
    stage_watched,
    want_no_longer,
    write_unit,
)
from quarterdeck.sites.local.volumes import VolumeFolders

P = ParamSpec("P")
T = TypeVar("T")


class LocalSite:
    """A site below ``home``/sites; offers the Site and the Faults port. All it knows is on disk.

    ``number`` is the site's own in its home (``numbers.site_number``); ``patience`` how many seconds a machine
    has to answer before it counts as unreachable.
    """

    def __init__(
        self,
        home: Path,
        settings: LocalSiteSettings,
        isolation: Isolation,
        *,
        number: int,
        patience: float = 2.0,
    ) -> None:
        self._home = home.resolve()
        self._settings = settings
        self._isolation = isolation
        self._stands = kept_stands(self._site_folder / "machines", stands(settings, number), number)
        for name, stand in self._stands.items():
            # A disk that is full must not keep anybody from looking: the next command tries again.
            with suppress(OSError):
                keep_stand(self._folder_of(name), stand)
        self._machines = {
            name: LocalMachine(self._folder_of(name), each, isolation, patience) for name, each in self._stands.items()
        }
        self._looks = Looks(self._machines, {name: self._volumes(name) for name in self._machines})
        self._fence: Fence | None = None
        self._unit_locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def name(self) -> str:
        """See Site."""
        return self._settings.name

    def fenced(self, fence: Fence) -> Self:
        """See Site."""
        view = copy.copy(self)
        view._fence = fence  # noqa: SLF001 - of its own class
        return view

    async def machines(self) -> tuple[Machine, ...]:
        """See Site."""
        return tuple(await asyncio.gather(*(each.seen() for each in self._machines.values())))

    async def facts(self, below: str = "") -> SiteFacts:
        """See Site. All planes of a process share their looks: views for their fences are of one site."""
        machines = await self._looks(below)
        return SiteFacts(name=self.name, machines=machines, storage_classes=await self.storage_classes())

    def folder(self, machine: str, unit: str) -> PurePosixPath:
        """See Site."""
        return PurePosixPath(self._unit_folder(self._machine(machine), unit) / FILES)

    async def units(self, machine: str) -> tuple[UnitStatus, ...]:
        """See Site."""
        return await self._machine(machine).units()

    async def wake(self, machine: str) -> None:
        """See Site."""
        await self._machine(machine).started()

    async def rest(self, machine: str) -> None:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        await where.rest()

    async def start_unit(self, machine: str, spec: UnitSpec) -> None:
        """See Site."""
        where = self._machine(machine)
        folder = self._unit_folder(where, spec.name)
        async with self._unit_locks[machine, spec.name]:
            status = _of(spec.name, await where.started())
            await where.admit(self._fence)
            known = await _on_disk(where.name, known_record, folder)
            wanted = UnitRecord.of(spec)
            if is_at_it(status, known, wanted):
                uid = None if known is None else known.uid  # its files stay with whom they belong to
                await _on_disk(where.name, keep_record, folder, known, replace(wanted, fresh=False, uid=uid))
                return
            await _on_disk(where.name, write_unit, self._home, folder, spec)
            if status.state not in (UnitState.ABSENT, UnitState.STOPPED):
                stop_timeout = spec.stop_timeout if known is None else known.stop_timeout
                await where.client.stop(spec.name, self._fence, kill=False, stop_timeout=stop_timeout)
            await where.client.start(spec.name, self._fence)

    async def stop_unit(self, machine: str, unit: str, *, kill: bool = False) -> None:
        """See Site."""
        where = self._machine(machine)
        folder = self._unit_folder(where, unit)
        # no lock: a kill must not wait for the stop that takes too long
        await where.admit(self._fence)
        known = await _on_disk(where.name, known_record, folder)
        stop_timeout = 0.0 if known is None else known.stop_timeout
        # the signal does not wait for the disk: clients may be waiting for the signal
        writing = asyncio.create_task(_on_disk(where.name, want_no_longer, folder, known))
        try:
            stopped = await where.ask(
                lambda client: client.stop(unit, self._fence, kill=kill, stop_timeout=stop_timeout)
            )
        finally:
            await writing
        if not stopped and _of(unit, await where.units()).state is not UnitState.ABSENT:
            await where.client.stop(unit, self._fence, kill=kill, stop_timeout=stop_timeout)

    async def favour_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        await self._machine(machine).ask(lambda client: client.favour(unit))

    async def hold_unit(self, machine: str, unit: str, seconds: float) -> None:
        """See Site."""
        await self._machine(machine).ask(lambda client: client.hold(unit, seconds, self._fence))

    async def let_go_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        where = self._machine(machine)
        await where.ask(lambda client: client.let_go(unit))
        if self._fence is not None:
            with suppress(LeaseLost):  # an older driver may let go as well: it helps whoever waits
                await where.admit(self._fence)

    async def guard_unit(self, machine: str, unit: str, needs: PurePosixPath, boot_argv: tuple[str, ...] = ()) -> None:
        """See Site."""
        where = self._machine(machine)
        folder = self._unit_folder(where, unit)
        await where.admit(self._fence)
        async with self._unit_locks[machine, unit]:
            known = await _on_disk(where.name, known_record, folder)
            if known is not None:
                await _on_disk(where.name, keep_record, folder, known, known.guarded(str(needs), boot_argv))

    async def remove_unit(self, machine: str, unit: str) -> None:
        """See Site."""
        where = self._machine(machine)
        folder = self._unit_folder(where, unit)
        await self.stop_unit(machine, unit)
        async with self._unit_locks[machine, unit]:
            if _of(unit, await where.units()).state is not UnitState.ABSENT:
                await where.client.forget(unit, self._fence)
            await _on_disk(where.name, remove_unit_folder, folder)

    async def write_files(self, machine: str, files: tuple[UnitFile, ...]) -> None:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        staged = await _on_disk(where.name, stage_watched, where.units_folder, files)
        try:
            if not await self._fenced_by(where, lambda fence: where.client.put(_as_json(staged), fence)):
                await _on_disk(where.name, put_staged, staged)
            await _on_disk(where.name, settle_staged, staged)
        finally:
            await _on_disk(where.name, drop_staged, staged)

    async def remove_files(self, machine: str, paths: tuple[PurePosixPath, ...]) -> None:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        check_watched(where.units_folder, paths)
        if not await self._fenced_by(where, lambda fence: where.client.take(_as_json(paths), fence)):
            await _on_disk(where.name, remove_watched, where.units_folder, paths)

    async def _fenced_by(self, where: LocalMachine, call: Callable[[Fence], Awaitable[None]]) -> bool:
        """Have the machine's supervisor do it, which refuses an older fence. False: nothing was done, since there is no
        fence, or that supervisor was started by a quarterdeck that knew none.
        """
        if self._fence is None:
            return False
        await where.started()
        try:
            await call(self._fence)
        except Outdated:
            return False
        return True

    async def logs(self, machine: str, unit: str, *, lines: int = 200) -> str:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        return await _on_disk(where.name, last_lines, self._unit_folder(where, unit) / LOG, lines)

    async def create_volume(self, machine: str, name: str, storage_class: str) -> Volume:
        """See Site."""
        await self._machine(machine).reach()
        return await _on_disk(machine, self._volumes(machine).create, name, storage_class)

    async def volumes(self, machine: str) -> tuple[Volume, ...]:
        """See Site."""
        await self._machine(machine).reach()
        return await _on_disk(machine, self._volumes(machine).all)

    async def list_volume(self, machine: str, name: str, below: str = "") -> tuple[str, ...]:
        """See Site."""
        await self._machine(machine).reach()
        return await _on_disk(machine, self._volumes(machine).entries, name, below)

    async def delete_volume(self, machine: str, name: str) -> None:
        """See Site."""
        await self._machine(machine).admit(self._fence)
        await _on_disk(machine, self._volumes(machine).delete, name)

    async def storage_classes(self) -> tuple[str, ...]:
        """See Site."""
        return tuple(self._settings.storage_classes)

    async def free_bytes(self, machine: str, storage_class: str) -> int:
        """See Site."""
        await self._machine(machine).reach()
        return await _on_disk(machine, self._volumes(machine).free, storage_class)

    async def free_memory(self, machines: tuple[str, ...]) -> int:
        """See Site: all machines share this host's memory."""
        await asyncio.gather(*(self._machine(each).reach() for each in machines))
        return await _on_disk(self.name, available_memory) // len(machines)

    async def require_room(self, doing: str, replicas: int) -> str:
        """See Site: all machines share this host's limits."""
        left = await _on_disk(self.name, require_inotify, doing, replicas)
        return f"{left} inotify instances left"

    async def allocate(self, machine: str, plane: str, replica: str, ports: Mapping[str, int]) -> Seat:
        """See Site."""
        where = self._machine(machine)
        await where.admit(self._fence)
        listening = await _listening(where)

        def allocated(ledger: Ledger) -> tuple[Ledger, Seat]:
            return ledger.allocated(
                machine=machine, host=where.address, plane=plane, replica=replica, ports=ports, listening=listening
            )

        return await self._in_ledger(where, allocated)

    async def occupy(self, machine: str, taken: TakenSeat) -> None:
        """See Site."""
        where = self._machine(machine)
        await where.admit(self._fence)
        await self._in_ledger(where, lambda ledger: (ledger.occupied(taken), None))

    async def seats(self, machine: str) -> tuple[TakenSeat, ...]:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        return (await _on_disk(machine, read_ledger, where.folder)).taken

    async def release(self, machine: str, plane: str, replica: str) -> None:
        """See Site."""
        where = self._machine(machine)
        await where.admit(self._fence)
        await self._in_ledger(where, lambda ledger: (ledger.released(plane, replica), None))

    async def _in_ledger(self, where: LocalMachine, change: Callable[[Ledger], tuple[Ledger, T]]) -> T:
        """The ledger knows the fences as well: two processes may be at it at once, and no supervisor need run."""
        fence = self._fence
        return await _on_disk(where.name, change_ledger, where.folder, lambda ledger: change(ledger.admitting(fence)))

    async def ports_in_use(self, machine: str, ports: tuple[int, ...]) -> tuple[int, ...]:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        taken = await _listening(where)
        return tuple(port for port in ports if port in taken)

    async def round_trip(self, machine: str, address: str, port: int) -> float:
        """See Site."""
        where = self._machine(machine)
        await where.reach()
        said = await where.inside(*round_trip_command(address, port))
        try:
            return float(said)
        except ValueError:
            doing = f"measuring the round trip from machine {machine} to {address}:{port}"
            raise Unavailable(doing, f"nothing answers there: {said.decode().strip()}") from None

    async def clock_offset(self, machine: str) -> float:
        """See Site: all machines share this host's clock."""
        await self._machine(machine).reach()
        return 0.0

    async def kill_machine(self, machine: str) -> None:
        """See Faults."""
        await self._machine(machine).cut_power()

    async def boot_machine(self, machine: str) -> None:
        """See Faults."""
        await self._machine(machine).boot()

    async def freeze_machine(self, machine: str) -> None:
        """See Faults."""
        await self._machine(machine).freeze()

    async def thaw_machine(self, machine: str) -> None:
        """See Faults."""
        await self._machine(machine).thaw()

    async def processes(self, machine: str) -> tuple[int, ...]:
        """The process ids of everything that runs on a machine, its supervisord among them."""
        return await self._machine(machine).processes()

    async def destroy(self) -> None:
        """See Site: its networks, files and number as well."""
        for name, machine in self._machines.items():
            if machine.folder.exists():
                await machine.cut_power()
            await self._isolation.release(machine.stand.place)
            await _on_disk(name, self._volumes(name).delete_all)
        if self._site_folder.exists():
            await _on_disk(self.name, remove_folder, self._site_folder)

    @property
    def _site_folder(self) -> Path:
        return self._home / "sites" / self.name

    def _folder_of(self, machine: str) -> Path:
        return self._site_folder / "machines" / machine

    def _machine(self, name: str) -> LocalMachine:
        try:
            return self._machines[name]
        except KeyError:
            offered = ", ".join(self._machines)
            raise NotFound(f"using machine {name}", f"site {self.name} has only: {offered}") from None

    def _unit_folder(self, machine: LocalMachine, unit: str) -> Path:
        require_entry_name(f"using a unit on machine {machine.name}", unit)
        return machine.units_folder / unit

    def _volumes(self, machine: str) -> VolumeFolders:
        shared = PurePosixPath(f"quarterdeck-{self.name}", machine)
        return VolumeFolders.of(machine, self._folder_of(machine), shared, self._settings.storage_classes)


def open_local_site(
    home: Path, settings: LocalSiteSettings, isolation: Isolation, *, patience: float = 2.0
) -> LocalSite:
    """The site of that name in ``home``, which gets its number now if it is new. May block for a moment."""
    return LocalSite(home, settings, isolation, number=site_number(home, settings.name), patience=patience)


def _of(unit: str, statuses: tuple[UnitStatus, ...]) -> UnitStatus:
    return next((each for each in statuses if each.name == unit), UnitStatus(name=unit, state=UnitState.ABSENT))


async def _listening(where: LocalMachine) -> frozenset[int]:
    """The ports that something listens on at a machine's address."""
    return listening_ports((await where.inside("/bin/cat", *TABLES)).decode(), where.address)


async def _on_disk(owner: str, call: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """``call`` in a thread, since it may block on the disk of that machine or site. Raises Unavailable for OSError."""
    with file_errors(f"using the disk of {owner}"):
        return await asyncio.to_thread(call, *given, **named)


def _as_json(paths: tuple[PurePosixPath, ...] | Staged) -> str:
    return json.dumps(paths, default=str)
