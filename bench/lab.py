"""What the benchmarks share: a temporary home, timing of whole commands, tables."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from support.leftovers import destroy, nothing_left

#: Seconds for a manager to end.
_ENDING = 60.0


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A QUARTERDECK_HOME that leaves nothing behind, however the block ends. Raises AssertionError if it does."""
    folder = Path(tempfile.mkdtemp(prefix="qdb."))
    os.environ["QUARTERDECK_HOME"] = str(folder)
    try:
        yield folder
    finally:
        try:
            asyncio.run(destroy(folder))
            nothing_left(folder)
        finally:
            del os.environ["QUARTERDECK_HOME"]
            shutil.rmtree(folder, ignore_errors=True)


def quarterdeck(*arguments: str, allowed: int = 0, timeout: float = 600.0) -> float:
    """Run the command line; the seconds it took. Raises CalledProcessError with what it said, unless it ended with 0
    or ``allowed`` (1: it was done, and clients saw more than they are meant to).
    """
    since = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "quarterdeck", *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode not in (0, allowed):
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, done.args)
    return time.monotonic() - since


@contextmanager
def manager() -> Iterator[subprocess.Popen[bytes]]:
    """``quarterdeck serve``, until the block ends."""
    argv = (sys.executable, "-m", "quarterdeck", "serve")
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_ENDING)


def this_machine() -> str:
    """One line on the machine."""
    return f"{len(os.sched_getaffinity(0))} cores, Linux {platform.release()}, Python {platform.python_version()}"


def spread(values: Sequence[float]) -> str:
    """``median (least - most)``."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} - {max(values):.2f})"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


class Noise:
    """What others of the same host do to this machine: noted at the beginning of a run, told at its end."""

    def __init__(self) -> None:
        self._stolen = _stolen()
        self._pace = _pace()

    def cells(self) -> list[str]:
        """Seconds of processor time that the hypervisor gave to others, and milliseconds of it that a fixed piece of
        work took (before and after the run, the mean): it takes longer where others share the cores.
        """
        return [f"{_stolen() - self._stolen:.1f}", f"{(self._pace + _pace()) / 2:.0f}"]


def _pace() -> float:
    since = time.process_time()
    for number in range(1_000_000):
        number * number
    return (time.process_time() - since) * 1e3


def _stolen() -> float:
    """Seconds since this machine's start (proc(5))."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")
