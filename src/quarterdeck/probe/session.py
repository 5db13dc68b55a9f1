"""The parent's side of a probe: starts the worker, sends it commands, and receives its result."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from pydantic import ValidationError

from quarterdeck import errors
from quarterdeck.errors import QuarterdeckError, TimedOut, Unavailable
from quarterdeck.package import python_path
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
from quarterdeck.probe.result import ProbeResult, Summary
from quarterdeck.probe.schema import Failure
from quarterdeck.probe.target import ClientKind, ProbeConfig, ProbeSettings, ProbeTarget, Source
from quarterdeck.runner import start

_LONGEST_LINE = 1 << 26  # bytes: a result with all its samples
_READY = 60.0  # seconds
_ANSWER = 30.0  # seconds
_RESULT = 90.0  # seconds: the audit may take 30, and so may clients that wait for an answer
_GOODBYE = 15.0  # seconds for the worker to clean up when the result is not needed

A = TypeVar("A", Ready, Marked, Retired, Finished)


class ProbeSession:
    """``async with ProbeSession(target, settings) as probe: ...; result = await probe.stop()``.

    Entering returns when all clients are running; leaving without ``stop`` discards the result. When the worker dies,
    every call raises Unavailable with its last line. ``source``: the host that makes the clients' connections, if it is
    not this one; losing it ends the probe with its error. ``on_summary`` is called each second, ``on_failure`` at once.
    """

    def __init__(
        self,
        target: ProbeTarget,
        settings: ProbeSettings,
        *,
        source: Source | None = None,
        on_summary: Callable[[Summary], None] | None = None,
        on_failure: Callable[[Failure], None] | None = None,
    ) -> None:
        self._config = ProbeConfig(target=target, settings=settings, source=source)
        self._on_summary = on_summary
        self._on_failure = on_failure
        self._process: asyncio.subprocess.Process | None = None
        self._died: asyncio.Future[QuarterdeckError] = asyncio.get_running_loop().create_future()
        self._answers: asyncio.Queue[Ready | Marked | Retired | Finished | QuarterdeckError] = asyncio.Queue()
        self._stderr: deque[str] = deque(maxlen=10)
        self._reading: asyncio.Task[None] | None = None
        self._asking = asyncio.Lock()
        self._summary: Summary | None = None

    @property
    def summary(self) -> Summary | None:
        """The last summary, None in the first second."""
        return self._summary

    @property
    def pid(self) -> int | None:
        """The worker's process id."""
        return None if self._process is None else self._process.pid

    async def __aenter__(self) -> Self:
        environment, pipe = {**os.environ, "PYTHONPATH": python_path()}, asyncio.subprocess.PIPE
        begin = start(environment=environment, longest_line=_LONGEST_LINE)
        worker = (sys.executable, "-m", "quarterdeck.probe.worker")
        # In its own session: Ctrl-C is for the parent, which then ends the worker in good order.
        self._process = await begin(*worker, stdin=pipe, stdout=pipe, stderr=pipe)
        self._reading = asyncio.create_task(self._read(self._process), name="probe-session")
        try:
            await self._send(CONFIG.dump_json(self._config))
            await self._answer(Ready, _READY)
        except BaseException:
            await self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def look(self, seconds: float | None) -> None:
        """Returns after that time, None: never. Raises the error that ends the probe before that."""
        await asyncio.wait((self._died,), timeout=seconds)
        if self._died.done():
            raise self._died.result()

    async def mark(self, label: str) -> float:
        """Begin a new period; returns when (Unix seconds)."""
        return (await self._ask(MarkCommand(label=label), Marked, _ANSWER)).at

    async def retire(self, kind: ClientKind) -> None:
        """End the clients of a kind: returns when they sent their last request."""
        await self._ask(RetireCommand(kind=kind), Retired, _ANSWER)

    async def stop(self) -> ProbeResult:
        """End all clients, audit their writes, clean up; returns the result."""
        return (await self._ask(StopCommand(), Finished, _RESULT)).result

    async def _ask(self, command: Command, answer: type[A], patience: float) -> A:
        async with self._asking:
            await self._send(COMMAND.dump_json(command))
            return await self._answer(answer, patience)

    async def _send(self, line: bytes) -> None:
        stdin = None if self._process is None else self._process.stdin
        if stdin is None:
            raise Unavailable("communicating with the probe", "it was not started")
        # When the worker is dead, its answer is the error.
        with contextlib.suppress(ConnectionError):
            stdin.write(line + b"\n")
            await stdin.drain()

    async def _answer(self, wanted: type[A], patience: float) -> A:
        try:
            async with asyncio.timeout(patience):
                answer = await self._answers.get()
        except TimeoutError as error:
            raise TimedOut("waiting for the probe", f"no answer within {patience:g} s") from error
        if isinstance(answer, QuarterdeckError):
            self._answers.put_nowait(answer)  # it stays dead
            raise answer
        if not isinstance(answer, wanted):
            raise Unavailable(
                "communicating with the probe", f"it answered {answer.type} where {wanted.__name__} was due"
            )
        return answer

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        """Process the worker's messages until it ends, and then the reason of its end."""
        if process.stdout is None or process.stderr is None:
            raise Unavailable("starting the probe", "its pipes are missing")
        complaints = asyncio.create_task(self._keep_last_words(process.stderr))
        try:
            async for line in process.stdout:
                self._take(REPORT.validate_json(line))
        except ValidationError as error:
            self._die(Unavailable("reading from the probe", f"it sent an invalid message: {error}"))
        code = await process.wait()
        await complaints
        words = " | ".join(self._stderr) or "no output"
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self._die(Unavailable("probing", f"the probe's process {how}: {words}", "run the probe again"))

    def _die(self, error: QuarterdeckError) -> None:
        """The first error is the cause; the others follow from it."""
        if not self._died.done():
            self._died.set_result(error)
            self._answers.put_nowait(error)

    async def _keep_last_words(self, stderr: asyncio.StreamReader) -> None:
        async for line in stderr:
            self._stderr.append(line.decode(errors="replace").strip())

    def _take(self, report: Report) -> None:
        if isinstance(report, ProbeProgress):
            self._summary = report.summary
            if self._on_summary is not None:
                self._on_summary(report.summary)
        elif isinstance(report, Failed):
            if self._on_failure is not None:
                self._on_failure(report.failure)
        elif isinstance(report, Broken):
            kind = getattr(errors, report.error, Unavailable)
            self._die(kind(report.doing, report.seen, report.next_step))
        else:
            self._answers.put_nowait(report)

    async def _leave(self) -> None:
        """End the worker: by closing its stdin, then SIGTERM, then SIGKILL."""
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        for end in (process.terminate, process.kill, None):
            done, _ = await asyncio.wait([reading], timeout=_GOODBYE)
            if done or end is None:
                break
            with contextlib.suppress(ProcessLookupError):
                end()
        reading.result()
