"""The probe's own process: ``python -m quarterdeck.probe.worker``, with commands on stdin (see ``protocol``).

It ends by itself, and deletes its objects, when its stdin ends: a probe never outlives its parent.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from typing_extensions import override

from quarterdeck.errors import InvalidInput, QuarterdeckError
from quarterdeck.linux.turns import use_short_time_slices
from quarterdeck.probe.network import Direct, Network
from quarterdeck.probe.protocol import (
    COMMAND,
    CONFIG,
    REPORT,
    Broken,
    Command,
    Failed,
    Finished,
    MarkCommand,
    Marked,
    ProbeProgress,
    Ready,
    Report,
    RetireCommand,
    Retired,
    StopCommand,
)
from quarterdeck.probe.run import ProbeRun
from quarterdeck.probe.target import ProbeConfig, Source

_LONGEST_LINE = 1 << 22  # bytes
_MOST_UNREAD = 1 << 22  # bytes: beyond that, summaries and failures are not sent (the result has them)
_SUMMARY_EVERY = 1.0  # seconds


class StdoutWriter(asyncio.BaseProtocol):
    """Lines to stdout that never delay the clients, even when nothing reads them."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._closed = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The pipe is there."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """The pipe is closed, from here or from the other end."""
        self._closed.set_result(None)

    def say(self, report: Report) -> None:
        """Send one message. Those that the result repeats are dropped when the other end does not read."""
        if self._transport is None or self._transport.is_closing():
            return
        if isinstance(report, ProbeProgress | Failed) and self._transport.get_write_buffer_size() > _MOST_UNREAD:
            return
        self._transport.write(REPORT.dump_json(report) + b"\n")

    async def close(self) -> None:
        """Returns when everything was read."""
        if self._transport is not None:
            self._transport.close()
            await self._closed


def anchored_clock() -> Callable[[], float]:
    """Unix seconds that never go back, whatever happens to the host's clock."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


async def work() -> int:
    """Run one probe from stdin to stdout; returns the exit code."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(limit=_LONGEST_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    _, output = await loop.connect_write_pipe(StdoutWriter, sys.stdout)
    try:
        result = await _serve(commands, output)
        if result is not None:
            output.say(result)
        return 0
    except QuarterdeckError as error:
        name = type(error).__name__
        output.say(Broken(error=name, doing=error.doing, seen=error.seen, next_step=error.next_step))
        return error.exit_code
    finally:
        await output.close()


async def _serve(commands: asyncio.StreamReader, output: StdoutWriter) -> Finished | None:
    try:
        config = CONFIG.validate_json(await commands.readline())
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, each["loc"])) for each in error.errors())  # never the values: secrets
        raise InvalidInput("reading the probe's config", f"not valid: {fields}") from None
    async with _opened(config.source) as network:
        return await _probe(config, network, commands, output)


async def _probe(
    config: ProbeConfig, network: Network, commands: asyncio.StreamReader, output: StdoutWriter
) -> Finished | None:
    now = anchored_clock()
    probe = ProbeRun(
        config,
        network=network,
        now=now,
        random_source=random.Random(config.settings.id),
        on_failure=lambda failure: output.say(Failed(failure=failure)),
    )
    try:
        await probe.prepare()
        await probe.start()
        output.say(Ready(at=now()))
        if await _obey(probe, commands, output):
            return Finished(result=await probe.finish())
    except BaseException:
        await probe.abandon()
        raise
    await probe.abandon()
    return None


async def _obey(probe: ProbeRun, commands: asyncio.StreamReader, output: StdoutWriter) -> bool:
    """Carry out commands; True at ``stop``, False at the end of the commands."""
    summaries = asyncio.create_task(_tell(probe, output), name="probe-summaries")
    line: asyncio.Task[bytes] | None = None
    try:
        while True:
            line = asyncio.create_task(commands.readline(), name="probe-commands")
            anything: tuple[asyncio.Future[Any], ...] = (line, probe.crashed, summaries)
            await asyncio.wait(anything, return_when=asyncio.FIRST_COMPLETED)
            if not line.done():
                await (probe.crashed if probe.crashed.done() else summaries)  # raises its error
            if not line.result():
                return False
            command = COMMAND.validate_json(line.result())
            if isinstance(command, StopCommand):
                return True
            await _carry_out(probe, command, output)
    finally:
        summaries.cancel()
        if line is not None:
            line.cancel()


async def _carry_out(probe: ProbeRun, command: Command, output: StdoutWriter) -> None:
    if isinstance(command, MarkCommand):
        output.say(Marked(label=command.label, at=probe.mark(command.label)))
    elif isinstance(command, RetireCommand):
        await probe.retire(command.kind)
        output.say(Retired(kind=command.kind))


async def _tell(probe: ProbeRun, output: StdoutWriter) -> None:
    while True:
        await asyncio.sleep(_SUMMARY_EVERY)
        output.say(ProbeProgress(summary=probe.summary()))


@asynccontextmanager
async def _opened(source: Source | None) -> AsyncIterator[Network]:
    """The place to probe from: that host, or this one. Raises the errors of entering a ``Tunnel``."""
    if source is None:
        yield Direct()
        return
    from quarterdeck.probe.tunnel import Tunnel  # the ssh library takes long to load

    async with Tunnel(source) as tunnel:
        yield tunnel


if __name__ == "__main__":
    use_short_time_slices()  # it represents clients on other machines
    sys.exit(asyncio.run(work()))
