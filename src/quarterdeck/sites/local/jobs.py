"""Jobs on a local machine: below their own parent (``job_init``), which ends with them."""

from __future__ import annotations

import asyncio
import secrets
import sys

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.linux import job_init
from quarterdeck.model.capabilities import Job, JobResult, RoundTrip
from quarterdeck.package import isolated
from quarterdeck.sites.local.machine import LocalMachine
from quarterdeck.sites.local.processes import JOB, kill_all

#: Seconds that its parent has to end it; a frozen machine does not.
_ENDING = 2.0
_PIECE = 64 * 1024


async def run_job(where: LocalMachine, job: Job) -> JobResult:
    """See Site.run_job."""
    mark = secrets.token_hex(8)
    argv = isolated(job_init.__name__, *job.argv)
    process = await where.launch(*argv, env={**dict(job.env), JOB: mark}, stderr=asyncio.subprocess.STDOUT)
    try:
        async with asyncio.timeout(job.deadline):
            output, cut = await _last(process, job.most_output)
            code = await process.wait()
    except TimeoutError:
        doing = f"running job {job.name} on machine {where.name}"
        raise TimedOut(doing, f"not done within {job.deadline:g} s: it was killed") from None
    finally:
        # To its end, whatever else is cancelled.
        await asyncio.shield(asyncio.ensure_future(_ended(process, mark)))
    return JobResult(exit_code=code, output=output.decode(errors="replace"), cut=cut)


async def _last(process: asyncio.subprocess.Process, most: int) -> tuple[bytes, bool]:
    """The last part of its output, and whether it was longer."""
    assert process.stdout is not None
    output, cut = bytearray(), False
    while piece := await process.stdout.read(_PIECE):
        output += piece
        if len(output) > most:
            del output[: len(output) - most]
            cut = True
    return bytes(output), cut


async def _ended(process: asyncio.subprocess.Process, mark: str) -> None:
    """End it, if it has not ended: no caller waits for it any more."""
    if process.returncode is not None:
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        async with asyncio.timeout(_ENDING):
            await asyncio.gather(_last(process, 0), process.wait())
    except TimeoutError:
        await asyncio.to_thread(kill_all, mark, JOB)
        await asyncio.gather(_last(process, 0), process.wait())


# Measuring a round trip from inside a machine.

#: Prints the median time of a few TCP connections, or why one failed.
_ROUND_TRIP = """
import socket, sys, time
times = []
for _ in range(5):
    since = time.monotonic()
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2.0).close()
    except OSError as error:
        print(error)
        break
    times.append(time.monotonic() - since)
else:
    print(sorted(times)[2])
"""


async def round_trip(where: LocalMachine, to: RoundTrip) -> float:
    """See ``measures.RoundTrip``."""
    printed = await where.inside(sys.executable, "-I", "-S", "-c", _ROUND_TRIP, to.address, str(to.port))
    try:
        return float(printed)
    except ValueError:
        doing = f"measuring the round trip from machine {where.name} to {to.address}:{to.port}"
        raise Unavailable(doing, f"nothing answers there: {printed.strip()}") from None
