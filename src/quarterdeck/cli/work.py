"""Driving a plane from a command: in the foreground with progress, or in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from quarterdeck.cli.context import engine, err, here, opened, out
from quarterdeck.cli.progress import LiveProgress
from quarterdeck.engine import operations
from quarterdeck.engine.drive import lease_name
from quarterdeck.engine.watchers import Watcher
from quarterdeck.errors import Conflict, NotFound, Unavailable
from quarterdeck.turns import take_short_turns

#: Seconds between two looks at what another process does.
_LOOK = 0.3


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless told not to. Without a terminal there is nobody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Conflict(question, "there is nobody to ask", "add --yes")
    typer.confirm(question, abort=True, err=True)


async def drive(name: str, watchers: Sequence[Watcher] = (), *, wait: float = 12.0) -> None:
    """Drive a plane here until it is as wanted. ``wait``: seconds to wait for another driver to end, or to die."""
    take_short_turns()  # clients wait for it while they are held, and two sites need each other in a swap
    with ended_by(signal.SIGTERM, signal.SIGHUP):
        async with opened() as home:
            with LiveProgress(err) as progress:
                async with engine(home, progress, *watchers) as driving:
                    await driving.drive(name, wait=wait)


@contextmanager
def ended_by(*signals: signal.Signals) -> Iterator[None]:
    """Within the block these signals end the command as Ctrl-C does: what is held is let go first. The exit code is
    128 + the signal's number, as shells have it. One that is ignored (nohup) stays so.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    caught = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    told: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        told.append(number)
        assert task is not None
        task.cancel()

    for each in caught:
        loop.add_signal_handler(each, end, each)
    try:
        yield
    except asyncio.CancelledError:
        if told:
            raise typer.Exit(128 + told[0]) from None
        raise
    finally:
        for each in caught:
            loop.remove_signal_handler(each)


def detach(name: str) -> None:
    """Start a process that drives the plane, and outlives this one."""
    folder = here() / "log"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{name}.log"
    with path.open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "quarterdeck", "wait", name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=_environment(),
        )
    out.print(f"driving plane {name} in the background; follow it with 'quarterdeck wait {name}' (its log: {path})")


def _environment() -> dict[str, str]:
    source = str(Path(__file__).absolute().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))}


async def follow(name: str, *, timeout: float | None) -> None:
    """Be there until the plane is as wanted: follow the process that drives it, or drive it when none does."""
    deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
    told = ""
    while True:
        async with opened() as home:
            try:
                await operations.existing(home.store, name)
            except NotFound:
                if told:
                    return  # it was deleted while it was followed
                raise
            held = await home.store.lease(lease_name(name))
            operation = await operations.current(home.store, name)
        if held is None:
            left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
            try:
                await asyncio.wait_for(drive(name), left)
            except TimeoutError:
                raise Unavailable(f"waiting for plane {name}", "it is not yet as wanted", "wait again") from None
            return
        if held.holder != told:
            told = held.holder
            err.print(f"driven by {held.holder}: {operation.metadata.name if operation else 'no operation'}")
        if deadline is not None and asyncio.get_running_loop().time() > deadline:
            raise Unavailable(f"waiting for plane {name}", f"{held.holder} is still at it", "wait again")
        await asyncio.sleep(_LOOK)
