"""Who uses a folder is found by what is open, and ended; who is no machine's is never killed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.errors import Unavailable
from quarterdeck.sites.local.attachment import end_users, uses
from quarterdeck.sites.local.processes import MARK

Run = Callable[..., subprocess.Popen[bytes]]
MINE = f"of-a-test-{os.getpid()}"


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs a script that says when it has come far enough, as a process of a machine or as nobody's."""
    started: list[subprocess.Popen[bytes]] = []

    def made(script: str, folder: Path, mark: str = "") -> subprocess.Popen[bytes]:
        env = {"PATH": os.environ["PATH"], **({MARK: mark} if mark else {})}
        process = subprocess.Popen(
            ("sh", "-c", f"{script}; echo ready; exec sleep 60"), cwd=folder, env=env, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield made
    for each in started:
        each.kill()
        each.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A volume with a log in it, beside an empty folder."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "data/log").mkdir(parents=True)
    (tmp_path / "data/log/1.wal").write_text("x")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("script", "where"),
    [("exec 3>>{}/log/1.wal", "beside"), ("exec 3<{}/log", "beside"), ("true", "data/log")],
    ids=["writes a file", "holds a folder", "stands in it"],
)
def test_whoever_of_a_machine_uses_it_is_ended_also_when_it_was_renamed(
    run: Run, folder: Path, script: str, where: str
) -> None:
    process = run(script.format(folder), folder.parent / where, MINE)
    assert uses(folder, (MINE,))
    renamed = folder.rename(folder.with_name("arriving"))
    end_users("a test", renamed, (MINE,))
    assert process.wait(5) == -9
    assert not uses(renamed, (MINE,))


def test_what_stands_still_is_ended_as_well(run: Run, folder: Path) -> None:
    process = run(f"exec 3>>{folder}/log/1.wal", folder.parent, MINE)
    os.kill(process.pid, 19)
    end_users("a test", folder, (MINE,))
    assert process.wait(5) == -9


def test_who_uses_something_else_goes_on(run: Run, folder: Path) -> None:
    other = run(f"exec 3>>{folder.parent}/beside/1.wal", folder.parent / "beside", MINE)
    assert not uses(folder, (MINE,))
    end_users("a test", folder, (MINE,))
    assert other.poll() is None


def test_a_stranger_that_writes_is_named_and_never_killed_and_one_that_reads_is_let_be(run: Run, folder: Path) -> None:
    reader = run(f"exec 3<{folder}/log/1.wal", folder.parent)
    end_users("a test", folder, (MINE,))
    writer = run(f"exec 3>>{folder}/log/1.wal", folder.parent)
    with pytest.raises(Unavailable, match=f"process {writer.pid}, which belongs to no machine, writes to it"):
        end_users("a test", folder, (MINE,))
    assert (reader.poll(), writer.poll()) == (None, None)
