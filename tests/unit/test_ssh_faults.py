"""What makes faults is no part of a host's script: it comes with the request for one, and only as it is known here."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from support.host_script import functions

from quarterdeck.sites.ssh.wire import faults, script

#: What any script has, whatever it does.
_ORDINARY = {
    *("", "}", "{", "done", "fi", "esac", "local pid", "return 0", "uptime_now", "exec {LOCK}>&-"),
    *('require_name "$1"', 'pid=$(main_pid "$1")'),
    *('for name in "$UNITS"/*/record; do', "name=${name%/record}; name=${name##*/}"),
}
_INVALID = 16


def lines(text: bytes) -> set[str]:
    stripped = {line.strip() for line in text.decode().splitlines()}
    return {each for each in stripped if not each.startswith("#")} - _ORDINARY


def test_the_script_of_each_host_has_no_line_of_what_makes_faults() -> None:
    assert len(lines(faults())) > 100
    assert lines(faults()) & lines(script()) == set()
    for program in (b"strace", b"nft ", b"-STOP", b"ENOSPC"):
        assert program in faults()
    for program in (b"strace", b"ENOSPC"):
        assert program not in script()


def test_the_script_takes_nothing_else_for_it() -> None:
    assert script().count(hashlib.sha256(faults()).hexdigest().encode()) == 1


def asked(tmp_path: Path, sent: bytes) -> tuple[int, str]:
    """How a host answers when it is to undo a fault with that, of which there is none."""
    (tmp_path / "locks").mkdir(exist_ok=True)
    (tmp_path / "body").write_bytes(sent)
    code = f'{functions()}LIB=$1 FAULT=$1/fault FAULTS=$1/faults BODY=$1/body; ask_undo_fault "$2"; ls "$FAULTS" >&2'
    done = subprocess.run(
        ("/bin/bash", "-c", code, "bash", str(tmp_path), str(len(sent))), capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_what_was_sent_is_there_while_it_is_used_and_not_afterwards(tmp_path: Path) -> None:
    code, output = asked(tmp_path, faults())
    assert (code, output) == (0, f"{tmp_path}/faults\n")
    assert not (tmp_path / "faults").exists()
    assert asked(tmp_path, faults()) == (code, output), "each request brings it again"


@pytest.mark.parametrize("sent", [b"", b"touch /tmp/anything\n", faults() + b"\n", faults()[:-1]])
def test_whoever_may_only_serve_does_not_choose_what_runs_as_root(tmp_path: Path, sent: bytes) -> None:
    code, output = asked(tmp_path, sent)
    assert (code, output) == (_INVALID, "these are not the faults of this quarterdeck")
    assert not (tmp_path / "faults").exists()


@pytest.mark.parametrize("made", [True, False])
def test_a_session_that_begins_removes_what_was_left_where_no_fault_is_made(tmp_path: Path, made: bool) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "faults").write_bytes(faults())
    if made:
        (tmp_path / "fault").mkdir()
        (tmp_path / "fault/about").touch()
    code = f"{functions()}LIB=$1 FAULT=$1/fault FAULTS=$1/faults; forget_faults"
    subprocess.run(("/bin/bash", "-c", code, "bash", str(tmp_path)), check=True)
    assert (tmp_path / "faults").exists() is made
