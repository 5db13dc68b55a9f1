"""One machine of a local site: its folder, its supervisord, and its power state."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.files import file_errors, write_atomic
from quarterdeck.model.units import Fence, Machine, MachineState, UnitStatus, with_files
from quarterdeck.package import SOURCE, isolated
from quarterdeck.runner import run, start
from quarterdeck.sites.isolation import MachineIsolation
from quarterdeck.sites.local import processes
from quarterdeck.sites.local.settings import MachineEntry
from quarterdeck.sites.local.supervisor import machine_init
from quarterdeck.sites.local.supervisor.client import NotRunning, SupervisorClient
from quarterdeck.sites.local.supervisor.records import folder_names, unit_folders

HOST = "here"  # all machines of all local sites share this one
START_DEADLINE = 20.0  # seconds
RESTART_PATIENCE = 3.0  # seconds for machine_init to restart a supervisord that died
SUPERVISORD_CONF = b"""\
[unix_http_server]
file = /proc/self/cwd/supervisor.sock
chmod = 0600

[supervisord]
nodaemon = true
silent = true
nocleanup = true
umask = 077
logfile = /proc/self/cwd/supervisord.log
logfile_maxbytes = 1MB
logfile_backups = 1
pidfile = /proc/self/cwd/supervisord.pid

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface

[rpcinterface:quarterdeck]
supervisor.rpcinterface_factory = quarterdeck.sites.local.supervisor.plugin:make
"""
KEPT_VARIABLES = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR")


class LocalMachine:
    """A machine below ``folder``. Nothing about it is kept in memory: another process may change it as well.

    ``patience``: seconds that its supervisord has to answer before it counts as unreachable.
    """

    def __init__(self, folder: Path, stand: MachineEntry, isolation: MachineIsolation, patience: float) -> None:
        self.folder = folder
        self.stand = stand
        self.name = stand.place.machine
        self.client = SupervisorClient(self.name, folder, patience)
        self._isolation = isolation
        self._lock = asyncio.Lock()

    @property
    def units_folder(self) -> Path:
        """The parent of its units' folders."""
        return self.folder / "units"

    @property
    def address(self) -> str:
        """Its IP address."""
        return self._isolation.address(self.stand.place)

    async def addresses(self) -> tuple[str, ...]:
        """Its IP address, and then the additional ones of its seats."""
        place = self.stand.place
        await self._isolation.prepare(place)
        return self.address, *(await self._isolation.more_addresses(place))

    @property
    def is_off(self) -> bool:
        """Whether it was switched off, and not booted since."""
        return self._off.exists()

    async def seen(self) -> Machine:
        """The machine with its state. One that was never started is up: it starts when it is needed."""
        if self.is_off:
            return self._as(MachineState.DOWN)
        try:
            await self.reach()
        except Unavailable:
            return self._as(MachineState.UNREACHABLE)
        return self._as(MachineState.UP)

    async def facts(self) -> tuple[Machine, tuple[UnitStatus, ...] | None]:
        """``seen`` and ``units`` in one; None for the units of a machine that does not answer."""
        if not self.folder.is_dir():
            return self._as(MachineState.UP), ()  # it was never used, like most machines of a site
        if self.is_off:
            return self._as(MachineState.DOWN), None
        try:
            units = await self.units()
        except Unavailable:
            return self._as(MachineState.UNREACHABLE), None
        return self._as(MachineState.UP), units

    def _as(self, state: MachineState) -> Machine:
        place = self.stand.place
        return Machine(
            name=self.name,
            site=place.site,
            zone=place.zone,
            address=self.address,
            role=self.stand.role,
            state=state,
            declared=self.stand.declared,
            host=HOST,
        )

    async def reach(self) -> None:
        """Raise Unavailable unless the machine is on and answers, or has nothing yet that could answer."""
        self._refuse_off()
        try:
            await self.client.units()
        except NotRunning:
            return

    async def admit(self, fence: Fence | None) -> None:
        """``reach``, for a caller that is about to change something. Raises LeaseLost for an older fence."""
        if fence is None:
            await self.reach()
            return
        self._refuse_off()
        with suppress(NotRunning):
            await self.client.admit(fence)

    async def ask(self, call: Callable[[SupervisorClient], Awaitable[None]]) -> bool:
        """Call its supervisord. False when there is none, and so no running unit."""
        self._refuse_off()
        try:
            await call(self.client)
        except NotRunning:
            return False
        return True

    async def units(self) -> tuple[UnitStatus, ...]:
        """Its units; after the host itself has booted this starts them again."""
        self._refuse_off()
        # As fast as a check whether it is off.
        folders = folder_names(self.units_folder)
        try:
            known = await self.client.units()
        except NotRunning:
            known = await self.started() if unit_folders(self.units_folder) else ()
        return with_files(known, folders)

    async def started(self) -> tuple[UnitStatus, ...]:
        """Its units, once its supervisord runs: it is started if needed. Raises Unavailable if it does not start, or if
        the machine is off.
        """
        self._refuse_off()
        try:
            return await self.client.units()
        except NotRunning:
            async with self._locked():
                self._refuse_off()
                await self._start()
            return await self.client.units()

    async def rest(self) -> None:
        """Stop its supervisord, if it has no unit and runs no job."""
        async with self._locked():
            if not self.is_off and not await asyncio.to_thread(self._is_used):
                await asyncio.to_thread(processes.kill_all, self.mark)

    def _is_used(self) -> bool:
        return bool(unit_folders(self.units_folder)) or processes.runs_job(self.mark)

    async def cut_power(self) -> None:
        """Kill every process at once, and stay off until ``boot``."""
        async with self._locked():
            with file_errors(f"switching machine {self.name} off"):
                write_atomic(self._off, b"")
            await self._isolation.unplug(self.stand.place)
            await asyncio.to_thread(processes.kill_all, self.mark)

    async def boot(self) -> None:
        """Start again after ``cut_power``; nothing happens to a machine that is on."""
        async with self._locked():
            if self.is_off:
                # The process that switched it off may have died in between: frozen processes do not answer.
                await asyncio.to_thread(processes.kill_all, self.mark)
                await self._start()
                self._off.unlink()

    async def freeze(self) -> None:
        """Stop every process (SIGSTOP); nothing happens to a machine that is off."""
        async with self._locked():
            if self.is_off:
                return
            if not await asyncio.to_thread(processes.processes_of, self.mark):
                await self._start()
            await self._isolation.unplug(self.stand.place)
            await asyncio.to_thread(processes.freeze_all, self.mark)

    async def thaw(self) -> None:
        """Resume them."""
        async with self._locked():
            if not self.is_off:
                await self._isolation.plug(self.stand.place)
                await asyncio.to_thread(processes.thaw_all, self.mark)

    async def unplug(self) -> None:
        """Cut it off: no packets leave it, and none arrive."""
        await self._isolation.unplug(self.stand.place)

    async def deafen(self) -> None:
        """Drop all packets to it; its own packets arrive."""
        await self._isolation.deafen(self.stand.place)

    async def plug(self) -> None:
        """Undo both; nothing happens to a machine that is off."""
        async with self._locked():
            if not self.is_off:
                await self._isolation.plug(self.stand.place)

    async def processes(self) -> tuple[int, ...]:
        """The process ids of everything that runs on it, its supervisord among them."""
        return tuple(each.pid for each in await asyncio.to_thread(processes.processes_of, self.mark))

    async def inside(self, *argv: str) -> str:
        """The output of a short command that runs inside the machine."""
        return await self._run(argv, b"")

    @property
    def _off(self) -> Path:
        return self.folder / "off"

    @property
    def mark(self) -> str:
        """The mark of all its processes."""
        return f"{self.name}-{hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]}"

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        """Only one process at a time starts or stops the machine."""
        with file_errors(f"using the folder of machine {self.name}"):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(self.folder / "power.lock", blocking=False)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + START_DEADLINE
        async with self._lock:
            while not lock.is_locked:
                try:
                    lock.acquire()
                except Timeout as error:
                    if loop.time() > deadline:
                        raise TimedOut(
                            f"starting or stopping machine {self.name}",
                            f"another process has been doing so for {START_DEADLINE:.0f} s",
                        ) from error
                    await asyncio.sleep(0.01)
            try:
                yield
            finally:
                lock.release()

    def _refuse_off(self) -> None:
        if self.is_off:
            raise Unavailable(f"reaching machine {self.name}", "it is off")

    async def _start(self) -> None:
        if await self._answers():
            return
        await asyncio.to_thread(processes.kill_all, self.mark)
        place = self.stand.place
        await self._isolation.plug(place)
        with file_errors(f"starting machine {self.name}"):
            self.units_folder.mkdir(exist_ok=True, mode=0o700)
            write_atomic(self.folder / "supervisord.conf", SUPERVISORD_CONF, mode=0o600)
        search_path = [*sys.path, str(SOURCE)]
        try:
            await self._run(isolated(machine_init.__name__, str(self.folder)), json.dumps(search_path).encode())
        except BaseException:
            await asyncio.to_thread(processes.kill_all, self.mark)
            raise

    async def _answers(self) -> bool:
        """Whether a supervisord answers, or will do so shortly because machine_init is restarting it."""
        deadline = asyncio.get_running_loop().time() + RESTART_PATIENCE
        while True:
            try:
                await self.client.units()
            except NotRunning:
                left = await asyncio.to_thread(processes.processes_of, self.mark)
                if not left or asyncio.get_running_loop().time() > deadline:
                    return False
                await asyncio.sleep(0.01)
            else:
                return True

    async def launch(
        self,
        *argv: str,
        stdin: int = asyncio.subprocess.PIPE,
        stdout: int = asyncio.subprocess.PIPE,
        stderr: int | None = asyncio.subprocess.PIPE,
        env: Mapping[str, str] | None = None,
    ) -> asyncio.subprocess.Process:
        """Start a process inside the machine. ``env`` is its whole environment."""
        await self._isolation.prepare(self.stand.place)
        environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        begin = start(environment=environment | dict(env or {}) | {processes.MARK: self.mark})
        prefix = self._isolation.launch_prefix(self.stand.place)
        return await begin(*prefix, *argv, stdin=stdin, stdout=stdout, stderr=stderr)

    async def _run(self, argv: tuple[str, ...], stdin: bytes) -> str:
        doing = f"running {Path(argv[0]).name} on machine {self.name}"
        logs = f"see {self.folder}/*.log"
        try:
            ended = await run(argv, doing=doing, deadline=START_DEADLINE, by=self.launch, given=stdin)
        except TimedOut as error:
            raise TimedOut(doing, error.seen, logs) from error
        if ended.code != 0:
            raise Unavailable(doing, ended.errors.strip() or ended.how, logs)
        return ended.output
