"""Driving a plane from a command: here with progress, watched by real clients, or by a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from quarterdeck.api.operation import Operation
from quarterdeck.api.output.base import NamedOutput
from quarterdeck.app import Hand, Quarterdeck, Watcher
from quarterdeck.cli.context import Output, err, here, out, read
from quarterdeck.cli.open_home import call
from quarterdeck.cli.operation_rows import changed, operation_result
from quarterdeck.cli.output import emit
from quarterdeck.cli.progress import LiveProgress
from quarterdeck.errors import Conflict, QuarterdeckError

if TYPE_CHECKING:  # probes and reports take long to load, and most commands need neither
    from quarterdeck.app import Failure, ProbeResult
    from quarterdeck.report.schema import Report

#: Has a change put down. The operation that it is.
Ask = Callable[[Quarterdeck], Awaitable[Operation]]


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation, except with ``yes``. Raises Conflict without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Conflict(question, "standard input is not a terminal", "add --yes")
    typer.confirm(question, abort=True, err=True)


def probed_drive(
    name: str,
    *,
    baseline: float,
    ask: Ask,
    host: str | None = None,
    action: str = "migrate",
    output: Output = Output.TABLE,
) -> Report:
    """Measure the plane for ``baseline`` seconds, have the change asked for, drive it, and report. ``host``: see
    ``Quarterdeck.probing``; ``action``: see ``ChangeResult``.

    Where the probe ends meanwhile the change goes on; then the report has none, and what ended it is raised.
    """
    from quarterdeck.app import Onlookers

    async def driven(face: Quarterdeck) -> Report:
        async with face.probing(name, host=host, on_failure=tell_failure) as probe:
            onlookers = Onlookers(probe)
            where = f" from host {host}" if host is not None else ""
            err.print(f"clients run{where}; measuring a baseline for {baseline:.0f} s", highlight=False)
            await onlookers.quiet(baseline)
            operation = await _drive_alone(face, name, (onlookers,), ask)
            try:
                result = await onlookers.result()
            except QuarterdeckError:
                await _report(face, operation, action, output)
                raise
        return await _report(face, operation, action, output, probe=result)

    return call(driven)


async def _drive_alone(face: Quarterdeck, name: str, watchers: Sequence[Watcher], ask: Ask) -> Operation:
    """Request something and drive the plane here, even where a manager drives it: for watchers that must see each step
    before it is taken.
    """
    with LiveProgress(err) as progress, ended_by(signal.SIGTERM, signal.SIGHUP):
        async with face.alone(name):
            operation = await ask(face)
            progress.begin()
            await face.carry_out(name, (progress, *watchers))
            return operation


def tell_failure(failure: Failure) -> None:
    """Print what a client saw fail."""
    err.print(f"[red]failed[/red] {failure.kind} {failure.request}: {failure.reason}", highlight=False)


def write_report(operation: Operation, action: str, output: Output) -> None:
    """Have the report's files made, and print the summary; for programs: what was changed."""
    call(lambda face: _report(face, operation, action, output))


async def _report(
    face: Quarterdeck, operation: Operation, action: str, output: Output, *, probe: ProbeResult | None = None
) -> Report:
    kept = await face.keep_report(operation.name, probe=probe)

    def text() -> None:
        from quarterdeck.report.text import render_text

        out.print(render_text(kept.report))
        out.print(f"report: {kept.folder / 'report.html'}", highlight=False, soft_wrap=True)

    plane = operation.spec.plane
    done = next(each for each in await face.history(plane) if each.name == operation.name)
    emit(changed(plane, action, operation_result(done, kept.report)), output, text)
    return kept.report


@contextmanager
def ended_by(*signals: signal.Signals) -> Iterator[None]:
    """Within the block these signals end the command as Ctrl-C does: what is held is let go first. The exit code is
    128 + the signal's number, as shells have it. One that is ignored (nohup) stays so.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    caught = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
    received: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        received.append(number)
        assert task is not None
        task.cancel()

    for each in caught:
        loop.add_signal_handler(each, end, each)
    try:
        yield
    except asyncio.CancelledError:
        if received:
            raise typer.Exit(128 + received[0]) from None
        raise
    finally:
        for each in caught:
            loop.remove_signal_handler(each)


def detach(name: str, output: Output) -> None:
    """Leave the plane to the manager that keeps it, or start a process that drives it and outlives this one. The
    message is on standard output, unless that has a result for programs.
    """
    tell = out if output.for_people else err
    if manager := read(lambda records: records.manager(name)):
        tell.print(f"plane {name} is kept by {manager}; follow it with 'quarterdeck wait {name}'")
        return
    folder = here() / "log"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{name}.log"
    with path.open("ab") as log:
        subprocess.Popen(  # not by ``runner``, which sees a program to its end: this one outlives the command
            [sys.executable, "-m", "quarterdeck", "wait", name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=_environment(),
        )
    tell.print(f"driving plane {name} in the background; follow it with 'quarterdeck wait {name}' (its log: {path})")


def _environment() -> dict[str, str]:
    source = str(Path(__file__).absolute().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))}


def gone(name: str) -> bool:
    """Whether there is no plane of that name any more."""
    return name not in {each.metadata.name for each in read(lambda records: records.planes())}


def follow(name: str, *, timeout: float | None = None) -> None:
    """Wait until the plane is up to date: follow the process that drives it, or drive it when none does."""
    call(lambda face: _follow(face, name, timeout))


def wait_for(result: NamedOutput, text: str, *, detached: bool, output: Output) -> None:
    """Wait until the plane that ``result`` is about is up to date, and print that, unless this command is to end
    now. ``text``: for people.
    """
    if detached:
        detach(result.name, output)
    else:
        follow(result.name)
    emit(result, output, lambda: None if detached else out.print(text, soft_wrap=True))


async def _follow(face: Quarterdeck, name: str, timeout: float | None) -> None:
    with ExitStack() as stack:
        progress = stack.enter_context(LiveProgress(err))

        def report(hand: Hand) -> None:
            if hand.ours:
                stack.enter_context(ended_by(signal.SIGTERM, signal.SIGHUP))
            else:
                err.print(f"driven by {hand.holder}: {hand.operation or 'no operation'}")
            progress.begin()

        await face.follow(name, timeout=timeout, report=report, watchers=(progress,), onlooker=progress)
