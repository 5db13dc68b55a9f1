from __future__ import annotations

import subprocess
from pathlib import Path

from quarterdeck.sites.local.processes import MARK, kill_all, processes_of


def test_a_process_that_is_just_replaced_by_another_program_is_seen(tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.write_text('#!/bin/sh\nexec "$0"\n')
    again.chmod(0o700)
    mark = f"again-{tmp_path}"
    process = subprocess.Popen([again], env={MARK: mark})
    try:
        assert [each.pid for _ in range(50) for each in processes_of(mark)] == 50 * [process.pid]
        kill_all(mark)
        assert process.wait(timeout=10) == -9
    finally:
        process.kill()
        process.wait()


def test_a_process_without_any_environment_is_not_waited_for() -> None:
    process = subprocess.Popen(["/bin/sleep", "100"], env={})
    try:
        assert all(each.pid != process.pid for each in processes_of("nobody"))
    finally:
        process.kill()
        process.wait()
