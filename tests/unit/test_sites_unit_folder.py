"""What a local machine keeps of a unit on disk: its record and its log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quarterdeck.errors import Corrupt
from quarterdeck.model.units import Priority, UnitSpec
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.local.logs import last_lines
from quarterdeck.sites.local.supervisor.own_user import COUNT, FIRST, may_give_users, user_of
from quarterdeck.sites.local.supervisor.records import folder_names, read_record, unit_folders, write_record
from quarterdeck.sites.local.supervisor.unit_files import remove_unit_folder

SPEC = UnitSpec(
    name="etcd",
    argv=("/bin/etcd", "--x"),
    boot_argv=("--y",),
    env=(("KEY", "secret"),),
    stop_timeout=3,
    priority=Priority.BACKGROUND,
)


def test_a_record_comes_back_as_it_was_written_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    record = replace(UnitRecord.of(SPEC), wanted=False)
    write_record(tmp_path / "etcd", record)
    assert read_record(tmp_path / "etcd") == record
    assert record.argv == ("/bin/etcd", "--x", "--y")
    assert (tmp_path / "etcd/unit.json").stat().st_mode & 0o777 == 0o600


def test_only_real_root_gives_units_users_and_each_home_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = user_of(Path("/var/lib/a")), user_of(Path("/var/lib/b"))
    assert first != second
    assert FIRST <= min(first, second) < max(first, second) < FIRST + COUNT < 2**31
    monkeypatch.setattr("quarterdeck.sites.local.supervisor.own_user.os.geteuid", lambda: 1000)
    assert not may_give_users()


def test_a_guarded_unit_has_other_arguments_at_its_next_start_and_is_the_same_program() -> None:
    record = UnitRecord.of(replace(SPEC, boot_argv=("--state=new", "--token=a"), fresh=True))
    guarded = record.guarded("/volume/*.wal", ("--state=existing",))
    assert guarded.argv == ("/bin/etcd", "--x", "--token=a", "--state=existing")
    assert (guarded.needs, guarded.digest, guarded.fresh) == ("/volume/*.wal", record.digest, False)
    assert guarded.differs_in_files_alone(SPEC)


def test_where_there_is_no_record_there_is_no_unit(tmp_path: Path) -> None:
    assert read_record(tmp_path / "etcd") is None
    assert unit_folders(tmp_path / "units") == ()


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"name": "etcd", "argv": 3}', b"\xff"])
def test_a_spoilt_record_is_corrupt(tmp_path: Path, content: bytes) -> None:
    write_record(tmp_path, UnitRecord.of(SPEC))
    (tmp_path / "unit.json").write_bytes(content)
    with pytest.raises(Corrupt, match="not a unit's record"):
        read_record(tmp_path)


def test_units_being_removed_are_not_units_and_there_is_something_of_them(tmp_path: Path) -> None:
    for name in ("b", "a", ".removed-c"):
        (tmp_path / name).mkdir()
    assert [each.name for each in unit_folders(tmp_path)] == ["a", "b"]
    assert folder_names(tmp_path) == ("a", "b", "c")
    remove_unit_folder(tmp_path / "c")
    assert folder_names(tmp_path) == ("a", "b")
    assert folder_names(tmp_path / "nowhere") == ()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.2").write_text("1\n2\n")
    (tmp_path / "log.1").write_text("3\n4\n")
    (tmp_path / "log").write_text("5\n6\nunfinished")
    return tmp_path / "log"


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        (0, ""),
        (1, "unfinished"),
        (2, "6\nunfinished"),
        (4, "4\n5\n6\nunfinished"),
        (6, "2\n3\n4\n5\n6\nunfinished"),
        (99, "1\n2\n3\n4\n5\n6\nunfinished"),
    ],
)
def test_the_last_lines_go_back_into_rotated_logs(log: Path, lines: int, seen: str) -> None:
    assert last_lines(log, lines) == seen


def test_the_last_lines_of_a_large_log_are_whole(tmp_path: Path) -> None:
    text = "".join(f"line {number} {'x' * 200}\n" for number in range(5_000))
    (tmp_path / "log").write_text(text)
    for lines in (1, 1_000, 4_999, 5_000, 6_000):
        assert last_lines(tmp_path / "log", lines) == "".join(text.splitlines(keepends=True)[-lines:])


def test_no_log_is_an_empty_log_and_bytes_that_are_no_text_do_no_harm(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "log", 10) == ""
    (tmp_path / "log").write_bytes(b"\xff\n")
    assert last_lines(tmp_path / "log", 10) == "\ufffd\n"
