"""The command that keeps all planes: serve."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from enum import StrEnum
from typing import Annotated

import structlog
import typer

from quarterdeck.api.site import Isolation
from quarterdeck.app import Quarterdeck, asker, home_key, inside_argv
from quarterdeck.cli.context import INSIDE, here, run
from quarterdeck.cli.notify import notify

app = typer.Typer()


class LogFormat(StrEnum):
    """How ``serve`` writes its log."""

    TEXT = "text"
    JSON = "json"


@app.command()
def serve(
    log_format: Annotated[LogFormat, typer.Option("--log-format", help="How to write the log.")] = LogFormat.TEXT,
    metrics: Annotated[
        str, typer.Option("--metrics", metavar="ADDRESS:PORT", help="Tell Prometheus of the planes there.")
    ] = "",
    network: Annotated[Isolation, typer.Option("--network", hidden=True)] = Isolation.LOOPBACK,
) -> None:
    """Keep all planes until it is stopped: bring about what is wanted, and mend what breaks. They run on without it."""
    run(_serve(log_format, network, metrics))


async def _serve(log_format: LogFormat, network: Isolation, metrics: str) -> None:
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, task.cancel)
    log = _log(log_format)
    if network is not Isolation.LOOPBACK:
        loop.add_reader(sys.stdin.fileno(), task.cancel)  # whoever started it is gone

    async def inside() -> tuple[str, ...]:
        command = ("serve", "--network", str(Isolation.NETNS), "--log-format", str(log_format))
        argv = await inside_argv(here(), sys.executable, "-m", "quarterdeck", *command)
        return ("env", f"{INSIDE}=1", *argv)

    try:
        async with Quarterdeck.open(here(), key=home_key(os.environ), asker=asker("quarterdeck serve")) as quarterdeck:
            notify("READY=1")
            await quarterdeck.serve(
                network,
                log=log,
                alive=lambda: notify("WATCHDOG=1"),
                outposts={Isolation.NETNS: inside} if network is Isolation.LOOPBACK else {},
                metrics=metrics,
            )
    except asyncio.CancelledError:
        task.uncancel()
        notify("STOPPING=1")
        log.info("ended; planes run on")


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
