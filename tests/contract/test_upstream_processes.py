"""Faults that need a process of their own: killed while fetching, two at once, no room on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.upstream_lab import AMD64, elf

from quarterdeck.upstream.cache import Cache, State
from quarterdeck.upstream.catalog import UpstreamProgram, Versions

# Fetches etcd into the cache at argv[1] from a source that tells of itself on stdout, and then, by argv[2],
# goes on at a line on stdin, or writes more than the limit on the size of files allows.
WORKER = """
import asyncio, resource, sys
from pathlib import Path
from support.upstream_lab import AMD64, elf
from quarterdeck.errors import QuarterdeckError
from quarterdeck.upstream import Upstream, UpstreamProgram, Versions
from quarterdeck.upstream.cache import Cache

class Slow:
    name = "slow"
    async def fetch(self, order, progress):
        path = order.folder / "etcd"
        path.write_bytes(elf(b"half")[:60])
        print("fetching", flush=True)
        if sys.argv[2] == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            path.write_bytes(elf(bytes(1_000_000)))
        await asyncio.to_thread(sys.stdin.readline)
        path.write_bytes(elf(sys.argv[2].encode()))
        return {UpstreamProgram.ETCD: path}

try:
    root = Path(sys.argv[1])
    asyncio.run(Upstream(Cache(root, AMD64), [Slow()]).ensure([UpstreamProgram.ETCD], Versions()))
    print("done", flush=True)
except QuarterdeckError as error:
    print(type(error).__name__, error, flush=True)
"""
V = Versions().etcd


def worker(root: Path, kind: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(root), kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


def test_a_process_killed_while_fetching_neither_blocks_nor_harms_the_next(tmp_path: Path) -> None:
    first = worker(tmp_path, "first")
    second = None
    try:
        assert line(first) == "fetching"
        first.send_signal(signal.SIGKILL)
        second = worker(tmp_path, "second")
        assert line(second) == "fetching"
        assert Cache(tmp_path, AMD64).look(UpstreamProgram.ETCD, V).state is State.MISSING
        second.communicate("\n", timeout=60)
    finally:
        end(*filter(None, (first, second)))
    entry = Cache(tmp_path, AMD64).look(UpstreamProgram.ETCD, V)
    assert entry.state is State.READY
    assert entry.path.read_bytes() == elf(b"second")


def test_a_second_process_waits_and_takes_what_the_first_fetched(tmp_path: Path) -> None:
    first = worker(tmp_path, "first")
    second = None
    try:
        assert line(first) == "fetching"
        second = worker(tmp_path, "second")
        first_output, _ = first.communicate("\n", timeout=60)
        second_output, _ = second.communicate(timeout=60)
    finally:
        end(*filter(None, (first, second)))
    assert first_output.split() == ["done"]
    assert second_output.split() == ["done"]  # and it never said "fetching"
    assert Cache(tmp_path, AMD64).look(UpstreamProgram.ETCD, V).path.read_bytes() == elf(b"first")


def test_no_room_is_said_and_nothing_half_done_stays(tmp_path: Path) -> None:
    process = worker(tmp_path, "full")
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        end(process)
    assert output.splitlines()[1].startswith(f"PreconditionFailed fetching etcd {V}: no room in")
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
