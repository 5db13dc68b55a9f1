"""Driving a plane from a command: in the foreground with progress, or in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from quarterdeck.app import Hand, Watcher
from quarterdeck.cli.context import err, here, looking, out
from quarterdeck.cli.opening import opened
from quarterdeck.cli.progress import LiveProgress
from quarterdeck.errors import Conflict

T = TypeVar("T")


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless told not to. Without a terminal there is nobody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Conflict(question, "there is nobody to ask", "add --yes")
    typer.confirm(question, abort=True, err=True)


async def drive_alone(name: str, watchers: Sequence[Watcher], ask: Callable[[], Awaitable[T]]) -> T:
    """Have something asked for and drive the plane here, also where a manager keeps it: for watchers that must be told
    of each step before it is taken.
    """
    with LiveProgress(err) as progress, ended_by(signal.SIGTERM, signal.SIGHUP):
        async with opened() as quarterdeck, quarterdeck.alone(name):
            asked = await ask()
            progress.begin()
            await quarterdeck.carry_out(name, (progress, *watchers))
            return asked


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


def detach(name: str, *, tell: Console = out) -> None:
    """Leave the plane to the manager that keeps it, or start a process that drives it and outlives this one."""
    if manager := asyncio.run(_manager(name)):
        tell.print(f"plane {name} is kept by {manager}; follow it with 'quarterdeck wait {name}'")
        return
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
    tell.print(f"driving plane {name} in the background; follow it with 'quarterdeck wait {name}' (its log: {path})")


async def _manager(name: str) -> str:
    async with looking() as looks:
        return await looks.manager(name)


def _environment() -> dict[str, str]:
    source = str(Path(__file__).absolute().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))}


async def gone(name: str) -> bool:
    """Whether there is no plane of that name any more."""
    async with looking() as looks:
        return name not in {each.metadata.name for each in await looks.planes()}


async def follow(name: str, *, timeout: float | None = None) -> None:
    """Be there until the plane is as wanted: follow the process that drives it, or drive it when none does."""
    with ExitStack() as stack:
        progress = stack.enter_context(LiveProgress(err))

        def told(hand: Hand) -> None:
            if hand.ours:
                stack.enter_context(ended_by(signal.SIGTERM, signal.SIGHUP))
            else:
                err.print(f"driven by {hand.holder}: {hand.operation or 'no operation'}")
            progress.begin()

        async with opened() as quarterdeck:
            await quarterdeck.follow(name, timeout=timeout, told=told, watchers=(progress,), onlooker=progress)
