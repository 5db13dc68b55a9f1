"""Programs are run to their end, and nothing of them stays behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.conditions import eventually

from quarterdeck.errors import TimedOut
from quarterdeck.runner import ProcessResult, run, run_blocking, start


def shell(text: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", text)


def gone(pid: str) -> bool:
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


async def all_gone(file: Path) -> bool:
    pids = file.read_text().split()
    return bool(pids) and all(map(gone, pids))


async def test_it_is_told_how_a_program_ended_and_what_it_wrote() -> None:
    ended = await run(shell("cat; echo no >&2; exit 3"), doing="it", deadline=10, given=b"yes")
    assert ended == ProcessResult(3, "yes", "no\n")
    assert (ended.how, ended.last_words) == ("ended with 3", "no")
    killed = await run(shell("kill -9 $$"), doing="it", deadline=10)
    assert (killed.code, killed.last_words) == (-9, "was killed by signal 9")
    assert (await run(shell("echo a; echo b; echo"), doing="it", deadline=10)).last_words == "b"


async def test_without_anything_given_its_input_is_empty() -> None:
    assert await run(("/bin/cat",), doing="it", deadline=10) == ProcessResult(0, "", "")


async def test_it_is_started_where_and_with_what_it_is_told(tmp_path: Path) -> None:
    by = start(folder=tmp_path, environment={"ONE": "1"})
    assert (await run(shell('pwd; echo "$ONE$HOME"'), doing="it", deadline=10, by=by)).output == f"{tmp_path}\n1\n"


async def test_a_program_that_is_not_there_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="nowhere"):
        await run(("/proc/nowhere",), doing="it", deadline=10)


async def test_when_the_time_is_up_all_that_it_started_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    with pytest.raises(TimedOut, match=r"doing it: /bin/sh has not ended within 0.5 s: it was killed \(waiting\)"):
        await run(shell(f"sleep 1000 & echo $! $$ > {pids}; echo waiting; wait"), doing="doing it", deadline=0.5)
    await eventually(lambda: all_gone(pids), bool)


async def test_when_nobody_waits_any_more_all_that_it_started_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    task = asyncio.create_task(run(shell(f"sleep 1000 & echo $! $$ > {pids}; wait"), doing="it", deadline=60))
    await eventually(lambda: asyncio.to_thread(lambda: pids.exists() and pids.read_text()), bool)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: all_gone(pids), bool)


@pytest.mark.parametrize("wholly", [True, False])
async def test_what_it_left_behind_keeps_nobody_waiting_and_ends_with_it_if_asked(tmp_path: Path, wholly: bool) -> None:
    pid = tmp_path / "pid"
    left = shell(f"sleep 1000 & echo $! > {pid}; echo done")
    ended = await run(left, doing="it", deadline=20, wholly=wholly)
    assert ended.output == "done\n"
    try:
        if wholly:
            await eventually(lambda: all_gone(pid), bool)
        else:
            assert not await all_gone(pid)
    finally:
        await run(("kill", "-9", pid.read_text().strip()), doing="ending it", deadline=10)


def test_without_a_loop_it_is_the_same() -> None:
    assert run_blocking(shell("cat; echo no >&2; exit 3"), doing="it", deadline=10, given="yes") == ProcessResult(
        3, "yes", "no\n"
    )
    with pytest.raises(TimedOut, match=r"doing it: /bin/sh has not ended within 0.2 s: it was killed \(soon\)"):
        run_blocking(shell("echo soon >&2; exec sleep 1000"), doing="doing it", deadline=0.2)
