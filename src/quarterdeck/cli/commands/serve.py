"""The command that keeps all planes: serve. Its log, and what it tells the service manager of the host."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import structlog
import typer

from quarterdeck.api.site import Isolation
from quarterdeck.app import RESTARTED_BY, Parent, Quarterdeck, home_key, inside_argv, requester
from quarterdeck.cli.context import INSIDE, here, run
from quarterdeck.cli.groups import command, group

app = group()


class LogFormat(StrEnum):
    """How ``serve`` writes its log."""

    TEXT = "text"
    JSON = "json"


@command(app, "serve", "serve --log-format json --metrics 127.0.0.1:9640")
def serve(
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="Format of the log.")] = LogFormat.TEXT,
    metrics: Annotated[
        str, typer.Option("--metrics", metavar="ADDRESS:PORT", help="Serve Prometheus metrics at this address.")
    ] = "",
    network: Annotated[Isolation, typer.Option("--network", hidden=True)] = Isolation.LOOPBACK,
) -> None:
    """Run the manager: reconcile and heal all planes until stopped. Planes keep running without it."""
    run(_serve(log_format, network, metrics))


async def _serve(log_format: LogFormat, network: Isolation, metrics: str) -> None:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, task.cancel)
    log = _log(log_format)
    alone = network is Isolation.LOOPBACK

    async def inside() -> tuple[str, ...]:
        flags = ("--metrics", "-") if metrics else ()
        command = ("serve", "--network", str(Isolation.NETNS), "--log-format", str(log_format))
        argv = await inside_argv(here(), sys.executable, "-m", "quarterdeck", *command, *flags)
        return ("env", f"{INSIDE}=1", f"{RESTARTED_BY}=quarterdeck serve", *argv)

    try:
        async with Quarterdeck.open(
            here(), key=home_key(os.environ), requester=requester("quarterdeck serve"), progress=LoggedProgress(log)
        ) as quarterdeck:
            notify("READY=1")
            await quarterdeck.serve(
                network,
                log=log,
                alive=lambda: notify("WATCHDOG=1"),
                outposts={Isolation.NETNS: inside} if alone else {},
                metrics=metrics,
                parent=None if alone else _parent(),
            )
        log.info("ended: whoever started it is gone; planes run on")
    except asyncio.CancelledError:
        task.uncancel()
        notify("STOPPING=1")
        log.info("ended; planes run on")


def _parent() -> Parent:
    """The streams of the process that started this one. From now on nothing else uses them: child processes have no
    standard input, and their output goes to standard error.
    """
    found = Parent(asks=os.dup(sys.stdin.fileno()), answers=os.dup(sys.stdout.fileno()))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return found


def _log(log_format: LogFormat) -> structlog.typing.FilteringBoundLogger:
    if log_format is LogFormat.JSON:
        last: structlog.typing.Processor = structlog.processors.JSONRenderer()
    else:
        last = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            last,
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    made: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return made


@dataclass
class LoggedProgress:
    """A ``Progress`` for the log: that programs are fetched, or sent to hosts, and how it ended. ``clock``: seconds."""

    log: structlog.typing.FilteringBoundLogger
    clock: Callable[[], float] = time.monotonic
    _since: dict[str, float] = field(default_factory=dict)

    def start(self, task: str, total: int | None) -> None:
        """See ``Progress``."""
        self._since[task] = self.clock()
        self.log.info(task, **({} if total is None else {"bytes": total}))

    def resize(self, task: str, total: int) -> None:
        """See ``Progress``: how it ended says it."""

    def advance(self, task: str, done: int) -> None:
        """See ``Progress``: a log has no bars."""

    def finish(self, task: str, outcome: str) -> None:
        """See ``Progress``."""
        self.log.info(task, outcome=outcome, seconds=round(self.clock() - self._since.pop(task), 1))

    def note(self, line: str) -> None:
        """See ``Progress``."""
        self.log.info(line)


def notify(state: str) -> None:
    """Tell the service manager how this process is (sd_notify(3)): ``READY=1``, ``WATCHDOG=1``, ... Without
    NOTIFY_SOCKET there is no service manager.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
