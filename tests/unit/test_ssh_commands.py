"""The commands that attach volumes: how they are run, and what they are told."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.sites.ssh.hosts import VolumeRequest, filled, run_command

ASKED = VolumeRequest(volume="v1", storage_class="san", host="h1", address="10.0.0.1", path="/mnt/san/v1")


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "command"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_a_command_is_told_all_that_it_is_about() -> None:
    argv = (
        "x",
        "{volume}@{host}",
        "{storageClass}",
        "{address}:{path}",
        "{make}",
        "{snapshot}",
        "{}",
        "{other}",
        "a b",
    )
    assert filled(argv, ASKED) == ("x", "v1@h1", "san", "10.0.0.1:/mnt/san/v1", "no", "", "{}", "{other}", "a b")
    made = VolumeRequest(volume="v1", storage_class="san", host="h1", address="a", path="p", make=True, snapshot="s")
    assert filled(("{make}", "{snapshot}"), made) == ("yes", "s")


async def test_no_shell_reads_what_a_command_is_told(tmp_path: Path, golden: Golden) -> None:
    written = tmp_path / "told"
    odd = VolumeRequest(volume="v1", storage_class="$(id)", host="h; id", address="*", path="a b")
    argv = (script(tmp_path, f'printf "%s|" "$@" > {written}'), "{storageClass}", "{host}", "{address}", "{path}")
    assert await run_command("attaching", argv, odd)
    golden(written.read_text())


async def test_exit_3_says_that_there_is_no_such_volume(tmp_path: Path) -> None:
    assert not await run_command("attaching", (script(tmp_path, "exit 3"),), ASKED)


@pytest.mark.parametrize(
    "text",
    [
        "echo first; echo; echo the last >&2; echo; exit 1",
        "exit 4",
        "kill -9 $$",
        "seq 100000; exit 2",
    ],
)
async def test_any_other_end_is_told_with_the_last_that_was_said(tmp_path: Path, text: str, golden: Golden) -> None:
    with pytest.raises(Unavailable) as error:
        await run_command("attaching", (script(tmp_path, text),), ASKED)
    golden(error.value.seen)


async def test_a_command_that_cannot_be_run_is_named(tmp_path: Path, golden: Golden) -> None:
    with golden.raises(Unavailable):
        await run_command("attaching", (str(tmp_path / "nowhere"),), ASKED)


async def test_what_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    argv = (script(tmp_path, f"sleep 1000 & echo $! $$ > {pids}; echo waiting; wait"),)
    with pytest.raises(TimedOut, match="waiting"):
        await run_command("attaching", argv, ASKED, deadline=0.5)
    assert all(map(gone, pids.read_text().split()))


async def test_what_nobody_waits_for_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    task = asyncio.create_task(
        run_command("attaching", (script(tmp_path, f"sleep 1000 & echo $! $$ > {pids}; wait"),), ASKED)
    )
    end = time.monotonic() + 10
    while not (pids.exists() and pids.read_text()):
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert all(map(gone, pids.read_text().split()))


def gone(pid: str) -> bool:
    """Whether it has ended within a moment; nobody may have waited for it yet."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
