"""The guard that ends a fault: ``python -m quarterdeck.sites.local.fault.guard HOME ISOLATION SITE MACHINE``.

A separate process for each fault, started before the fault is made. It undoes the fault when its standard input ends,
which its owner closes, also by dying, or when the fault's time is over. It prints ``ready`` when it has started, and at
the end what is left of the fault, if anything is. A fault that needs a running tracer is made by the guard itself,
before it is ready.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Self

from quarterdeck.errors import NotFound, QuarterdeckError, TimedOut, Unavailable
from quarterdeck.package import python_path
from quarterdeck.runner import last_line, start
from quarterdeck.sites.isolation import MachineIsolation
from quarterdeck.sites.local.fault.fault_book import FaultBook, MadeFault, undo
from quarterdeck.sites.local.fault.strace import TRACED, traced
from quarterdeck.sites.local.loopback import open_loopback
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.site_files import kept_stands, site_number
from quarterdeck.sites.netns.lab import NetnsIsolation

_READY = b"ready\n"
#: Seconds for it to start, for it to undo a fault, and between two attempts of that.
_STARTING = 20.0
_UNDOING = 60.0
_AGAIN = 1.0
_PATIENCE = 2.0


class FaultGuard:
    """The owner's side."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, home: Path, isolation: str, site: str, machine: str, doing: str) -> Self:
        """Start one for the recorded fault of a machine. Raises Unavailable with ``doing``."""
        argv = (sys.executable, "-P", "-m", "quarterdeck.sites.local.fault.guard", str(home), isolation, site, machine)
        begin, pipe = start(environment={**os.environ, "PYTHONPATH": python_path()}), asyncio.subprocess.PIPE
        process = await begin(*argv, stdin=pipe, stdout=pipe, stderr=pipe)
        guard = cls(process)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_STARTING):
                line = await process.stdout.readline()
        except BaseException as error:
            process.kill()
            await process.wait()
            if isinstance(error, TimeoutError):
                raise TimedOut(doing, f"the process that undoes it has not started after {_STARTING:.0f} s") from error
            raise
        if line != _READY:
            await guard.end(doing)  # which has its last output
            raise Unavailable(doing, "the process that undoes it ended at once")
        return guard

    async def end(self, doing: str = "undoing a fault") -> str:
        """Undo the fault, unless it is undone. Returns what is left of it, as text. Raises Unavailable when that
        failed.
        """
        process = self._process
        try:
            async with asyncio.timeout(_UNDOING):
                output, complaint = await process.communicate(b"")  # this closes its standard input
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise TimedOut(doing, f"not done after {_UNDOING:.0f} s") from error
        if process.returncode != 0:
            last = last_line(complaint.decode(errors="replace")) or f"exit code {process.returncode}"
            raise Unavailable(doing, last)
        return output.decode().strip()


def _network(isolation: str, home: Path) -> MachineIsolation:
    return open_loopback(home) if isolation == "loopback" else NetnsIsolation(home)


def _machine(home: Path, isolation: str, site: str, name: str) -> LocalMachine:
    machines = home / "sites" / site / "machines"
    known = kept_stands(machines, {}, site_number(home, site))
    if name not in known:
        raise NotFound(f"undoing a fault on machine {name}", f"site {site} has no machine of that name")
    return LocalMachine(machines / name, known[name], _network(isolation, home), _PATIENCE)


def _made_here(machine: LocalMachine, made: MadeFault | None) -> AbstractAsyncContextManager[None]:
    """A fault that a guard makes itself, for as long as the block lasts; nothing for any other."""
    if made is None or made.fault.kind not in TRACED:
        return nullcontext()
    return traced(machine, made.fault.kind)


async def _until_it_ends(book: FaultBook, machine: str) -> None:
    """Return when the owner has closed the standard input, or the fault's time is over."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    closed = loop.create_task(reader.read())
    closed.add_done_callback(lambda _: over.set())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    made = book.of(machine)
    try:
        async with asyncio.timeout(max(0.0, made.left) if made is not None else 0.0):
            await over.wait()
    except TimeoutError:
        return
    finally:
        closed.cancel()


async def watch(home: Path, isolation: str, site: str, name: str) -> int:
    """Guard a fault until it is undone; returns the exit code."""
    machine, book = _machine(home, isolation, site, name), FaultBook(home / "sites" / site / "faults")
    async with _made_here(machine, book.of(name)):
        sys.stdout.buffer.write(_READY)
        sys.stdout.flush()
        await _until_it_ends(book, name)
    deadline = asyncio.get_running_loop().time() + _UNDOING
    while (made := book.of(name)) is not None:
        try:
            left = await undo(machine, made)
        except QuarterdeckError as error:
            if asyncio.get_running_loop().time() > deadline:
                sys.stderr.write(f"{error}\n")
                return error.exit_code
            await asyncio.sleep(_AGAIN)
        else:
            book.end(name)
            _say(left)
    return 0


def _say(left: str) -> None:
    try:
        sys.stdout.write(f"{left}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # its owner has died: the fault is undone nevertheless
        sys.stdout = None


def _main(home: str, *where: str) -> int:
    try:
        return asyncio.run(watch(Path(home), *where))
    except QuarterdeckError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:5]))
