"""Running a program to its end, with a deadline, leaving nothing of it behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from quarterdeck.concurrency import whole
from quarterdeck.errors import TimedOut
from quarterdeck.linux import job_init
from quarterdeck.package import isolated


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The result of a program. ``code``: its exit code, or minus the signal that killed it. ``output`` and ``errors``:
    its stdout and stderr.
    """

    code: int
    output: str
    errors: str

    @property
    def how(self) -> str:
        """How it ended, as text."""
        return f"ended with {self.code}" if self.code >= 0 else f"was killed by signal {-self.code}"

    @property
    def last_words(self) -> str:
        """The last line that it wrote, to stderr if it wrote anything there; else how it ended."""
        return last_line(self.errors) or last_line(self.output) or self.how


class ProcessStarter(Protocol):
    """Starts a process, in its own session."""

    def __call__(
        self, *argv: str, stdin: int, stdout: int, stderr: int | None
    ) -> Awaitable[asyncio.subprocess.Process]:
        """``stderr`` None: that of this process. Raises OSError where it cannot be started."""
        ...


def start(
    *, folder: Path | None = None, environment: Mapping[str, str] | None = None, longest_line: int = 1 << 16
) -> ProcessStarter:
    """Starts it in ``folder`` with ``environment``, by default those of this process. ``longest_line``: bytes of a line
    that can be read from its output.
    """

    async def started(*argv: str, stdin: int, stdout: int, stderr: int | None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=None if environment is None else dict(environment),
            limit=longest_line,
            start_new_session=True,  # so that the whole group can be killed, and Ctrl-C reaches only this process
        )

    return started


async def run(
    argv: Sequence[str],
    *,
    doing: str,
    deadline: float,
    by: ProcessStarter | None = None,
    given: bytes | None = None,
    wholly: bool = False,
) -> ProcessResult:
    """Run ``argv`` for at most ``deadline`` seconds, with ``given`` on its standard input.

    Its process group is killed when the time is up and when the caller is cancelled; ``wholly``: also when it has ended
    by itself. Its output goes to files, so that a child which it left behind, and which still has them open, does not
    delay this call. Raises TimedOut, with ``doing``, and OSError when it cannot be started.
    """
    stdin = asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = await (by or start())(*argv, stdin=stdin, stdout=output.fileno(), stderr=errors.fileno())
        try:
            async with asyncio.timeout(deadline):
                await process.communicate(given)
        except TimeoutError:
            raise _overdue(doing, argv, deadline, _text(errors) or _text(output)) from None
        finally:
            if wholly or process.returncode is None:
                kill_group(process.pid)
            await process.wait()
        assert process.returncode is not None
        return ProcessResult(process.returncode, _text(output), _text(errors))


@asynccontextmanager
async def held(argv: Sequence[str], *, output: int, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``argv`` in ``folder`` for the block, with its stdout and stderr going to the descriptor ``output``.

    It runs below a parent (``job_init``), which is the process that is given, and ends as it does. That parent kills it
    and all that it started when the block ends, and also when this process is killed. Raises OSError where that parent
    cannot be started; a program that cannot be ends with ``job_init.EX_NOT_STARTED``.
    """
    below = isolated(job_init.__name__, *argv)
    process: asyncio.subprocess.Process | None = None

    async def begin() -> asyncio.subprocess.Process:
        nonlocal process
        process = await start(folder=folder)(*below, stdin=asyncio.subprocess.PIPE, stdout=output, stderr=output)
        return process

    try:
        yield await whole(begin())  # a parent that is killed while it starts would leave the program behind
    finally:
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            await whole(process.wait())


def run_blocking(argv: Sequence[str], *, doing: str, deadline: float, given: str = "") -> ProcessResult:
    """The same without an event loop, and in the session of this process: systemctl may prompt at the terminal. Only
    the program itself is killed when the time is up.
    """
    try:
        done = subprocess.run(argv, input=given.encode(), capture_output=True, timeout=deadline, check=False)
    except subprocess.TimeoutExpired as error:
        output = (error.stderr or error.stdout or b"").decode(errors="replace")
        raise _overdue(doing, argv, deadline, output) from None
    return ProcessResult(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def kill_group(pid: int) -> None:
    """Kill a process that leads a process group, and all of its group. No error if it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def last_line(output: str) -> str:
    """The last line of an output that is not blank."""
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "")


def _overdue(doing: str, argv: Sequence[str], deadline: float, output: str) -> TimedOut:
    last = last_line(output)
    seen = f"{argv[0]} has not ended within {deadline:g} s: it was killed"
    return TimedOut(doing, f"{seen} ({last})" if last else seen)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
