"""What a local machine writes into a unit's output: where each run begins, how it ended, why there is none."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from supervisor.options import NotFound
from supervisor.process import Subprocess
from supervisor.states import ProcessStates
from support.golden import Golden

from quarterdeck.sites.local.supervisor import unit as supervised_unit
from quarterdeck.sites.local.supervisor.unit import UnitProcess

BEGINS = "quarterdeck: starting"
EXITED, KILLED = 3 << 8, int(signal.SIGKILL)  # as wait(2) says it


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def process(log: Path, monkeypatch: pytest.MonkeyPatch) -> UnitProcess:
    """A unit whose program is never really started."""
    config = SimpleNamespace(
        stdout_logfile=str(log), folder=log.parent, record=None, marked=True, read_again=lambda: None
    )

    def nothing(*_: object) -> str:
        return ""

    monkeypatch.setattr(supervised_unit, "refused", lambda *_, **__: "")
    monkeypatch.setattr(supervised_unit, "_not_given", nothing)
    monkeypatch.setattr(os, "killpg", nothing)
    monkeypatch.setattr(Subprocess, "get_execv_args", lambda _: ("/bin/x", ["x"]))
    monkeypatch.setattr(Subprocess, "finish", nothing)
    monkeypatch.setattr(Subprocess, "record_spawnerr", nothing)
    made = UnitProcess(config=config)
    made.state = ProcessStates.BACKOFF
    return made


def cannot(words: str) -> Callable[[object], object]:
    def raises(_: object) -> object:
        raise NotFound(words)

    return raises


def test_each_run_has_a_beginning_and_an_ending(process: UnitProcess, log: Path) -> None:
    process.get_execv_args()
    process.finish(4711, EXITED)
    process.get_execv_args()
    process.finish(4712, KILLED)
    exited, killed = "quarterdeck: ended: exit code 3", "quarterdeck: ended: killed by SIGKILL"
    assert log.read_text().splitlines() == [BEGINS, exited, BEGINS, killed]


def test_why_it_cannot_be_started_is_said_once_and_again_after_it_ran(
    process: UnitProcess, log: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Subprocess, "get_execv_args", cannot("no /bin/x"))
        for _ in range(3):
            with pytest.raises(NotFound):
                process.get_execv_args()
            process.record_spawnerr("no /bin/x")
    golden(log.read_text().splitlines())
    process.get_execv_args()
    process.finish(4711, EXITED)
    process.record_spawnerr("no /bin/x")
    golden(log.read_text().splitlines()[-1])


def test_a_disk_without_room_for_a_line_ends_no_supervisor(process: UnitProcess, log: Path) -> None:
    log.mkdir()
    process.get_execv_args()
    process.finish(4711, EXITED)
    process.record_spawnerr("no /bin/x")
