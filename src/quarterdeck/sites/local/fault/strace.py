"""Faults by strace: a machine's programs get the answers of a slow, or full, disk to their system calls.

It is attached to each program that has a volume. The calls are real ones, so the programs react as they would to such a
disk. The tracers are children of the guard of the fault, and end with it; a program that a tracer releases, also by its
death, continues normally. While it is traced all of its calls take longer.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

from quarterdeck.errors import QuarterdeckError, TimedOut, Unavailable
from quarterdeck.files import on_disk
from quarterdeck.linux.calls import end_with_parent
from quarterdeck.model.faults import SLOW_SYNC, FaultKind
from quarterdeck.model.units import UnitStatus
from quarterdeck.runner import last_line
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.processes import processes_of
from quarterdeck.sites.local.supervisor.own_user import has_rights
from quarterdeck.sites.local.supervisor.records import read_record

#: The mark of a machine's tracers, in their environment.
TRACER = "QUARTERDECK_TRACER"
_STRACE = "strace"
#: Calls that wait for the disk.
_SYNCS = "fsync,fdatasync"
#: Calls that need space on the disk, and that only files get: sockets, pipes and logs are written with write(2), as are
#: etcd's logs into space that was allocated before.
_ROOM = "pwrite64,pwritev,pwritev2,fallocate,ftruncate,truncate"
#: The tampered calls of each fault (strace(1): "Tampering").
_ANSWERS: Mapping[FaultKind, tuple[str, str]] = {
    FaultKind.SLOW_DISK: (_SYNCS, f"delay_enter={SLOW_SYNC * 1e6:.0f}"),
    FaultKind.FILL_DISK: (_ROOM, "error=ENOSPC"),
}
#: The faults that strace makes.
TRACED = frozenset(_ANSWERS)
_PTRACE = 19  # CAP_SYS_PTRACE (capability.h)
_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_NOBODY = 3  # Documentation/admin-guide/LSM/Yama.rst
#: Seconds for a tracer to attach; between two searches for programs that were started since, and while one is starting;
#: for a tracer to detach by itself, and to end.
_ATTACHING = 10.0
_PACE = 0.5
_SOON = 0.1
_GENTLY = 3.0
_LEAVING = 10.0


def cannot_trace() -> str:
    """Why programs cannot be traced here, and what to do about it; "" if they can, as far as that is known in
    advance.
    """
    if shutil.which(_STRACE) is None:
        return "strace, which this fault needs, is not on the path: install it (apt-get install strace)"
    return why_forbidden(int(_YAMA.read_text()) if _YAMA.exists() else 0, privileged=has_rights(_PTRACE))


def why_forbidden(scope: int, *, privileged: bool) -> str:
    """Why Yama forbids attaching to running programs, by kernel.yama.ptrace_scope; "" if it does not."""
    if scope >= _NOBODY:
        return (
            f"no user may attach strace to a program on this host: kernel.yama.ptrace_scope is {scope} until it boots"
        )
    if scope and not privileged:
        return (
            f"this user may not attach strace to programs (kernel.yama.ptrace_scope is {scope}): be root, or allow it"
            " (sysctl -w kernel.yama.ptrace_scope=0)"
        )
    return ""


@asynccontextmanager
async def traced(machine: LocalMachine, kind: FaultKind) -> AsyncIterator[None]:
    """Trace all programs of a machine that have a volume until the block ends, also those that are started later.
    Raises Unavailable when a running one cannot be traced: then none is.
    """
    tracing = _Tracing(machine, kind)
    following: asyncio.Task[None] | None = None
    try:
        await tracing.strike()
        following = asyncio.create_task(tracing.follow())
        yield
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait((following,))
        await asyncio.to_thread(let_go, machine.mark)


def let_go(mark: str) -> None:
    """End all tracers of a machine, whichever process started them. Raises TimedOut. May block.

    A tracer that is asked to end lets its programs finish the current call; a killed one may not.
    """
    since = time.monotonic()
    while found := processes_of(mark, TRACER):
        took = time.monotonic() - since
        if took > _LEAVING:
            pids = ", ".join(str(each.pid) for each in found)
            raise TimedOut("releasing traced programs", f"strace is still running after {_LEAVING:.0f} s: {pids}")
        for each in found:
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGTERM if took < _GENTLY else signal.SIGKILL)
        time.sleep(0.01)


class _Tracing:
    """The tracers of one machine, by the programs that they are attached to."""

    def __init__(self, machine: LocalMachine, kind: FaultKind) -> None:
        self._machine = machine
        self._calls, self._answer = _ANSWERS[kind]
        self._tracers: dict[int, asyncio.subprocess.Process] = {}
        self._spared: set[int] = set()

    async def strike(self) -> bool:
        """Attach to all that have a volume and are not traced yet. Whether none is still starting."""
        try:
            units = await self._machine.client.units()
        except Unavailable:
            return False
        self._tracers = {pid: each for pid, each in self._tracers.items() if each.returncode is None}
        calm = True
        for unit in units:
            if unit.pid in self._tracers or unit.pid in self._spared:
                continue
            if not await self._has_volume(unit):
                self._spared |= {unit.pid} if unit.pid is not None else set()
            elif unit.pid is None:
                calm = False
            else:
                await self._attach(unit.pid)
        return calm

    async def follow(self) -> None:
        """Attach to newly started ones, for ever."""
        while True:
            calm = False
            with suppress(QuarterdeckError):  # it has just ended, or the machine is no longer there
                calm = await self.strike()
            await asyncio.sleep(_PACE if calm else _SOON)

    async def _has_volume(self, unit: UnitStatus) -> bool:
        record = await on_disk(self._machine.name, read_record, self._machine.units_folder / unit.name)
        return record is not None and record.wanted and bool(record.owns or record.needs)

    async def _attach(self, pid: int) -> None:
        doing = f"attaching strace to process {pid} on machine {self._machine.name}"
        tracer = await asyncio.create_subprocess_exec(
            *(_STRACE, "-qq", "-f", "-p", str(pid), "-o", os.devnull),
            *("-e", f"trace={self._calls}", "-e", f"inject={self._calls}:{self._answer}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, TRACER: self._machine.mark},
            preexec_fn=partial(end_with_parent, os.getpid(), signal.SIGTERM),
        )
        self._tracers[pid] = tracer
        clock = asyncio.get_running_loop().time
        end = clock() + _ATTACHING
        while not _is_traced(pid, tracer.pid):
            if tracer.returncode is not None:
                if not Path("/proc", str(pid)).exists():
                    return  # its restart is looked for soon
                assert tracer.stderr is not None
                reason = last_line((await tracer.stderr.read()).decode(errors="replace"))
                raise Unavailable(doing, reason or f"it ended with {tracer.returncode}")
            if clock() > end:
                tracer.terminate()
                raise TimedOut(doing, f"not done after {_ATTACHING:.0f} s")
            await asyncio.sleep(0.005)


def _is_traced(pid: int, tracer: int) -> bool:
    """Whether all threads of a process are traced by this one."""
    wanted = f"TracerPid:\t{tracer}\n"
    try:
        return all(wanted in (each / "status").read_text() for each in Path("/proc", str(pid), "task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return False  # it, or a thread, has just ended
