"""Whether somebody else has changed how a unit is started, or a file of it, as its machine finds it on its disk."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

import pytest

from quarterdeck.model.units import UnitFile, UnitSpec, hashes_of
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.local.supervisor.records import RECORD, is_altered, read_record, write_record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A unit as it is written before it starts."""
    file = UnitFile(PurePosixPath(tmp_path / "conf"), b"one")
    (tmp_path / "conf").write_bytes(file.content)
    spec = UnitSpec(name="etcd", argv=("/bin/etcd", "--quota=1"), boot_argv=("--initial=a",), files=(file,))
    write_record(tmp_path, UnitRecord.of(spec))
    return tmp_path


def test_what_nobody_touched_is_as_it_was(folder: Path) -> None:
    assert not is_altered(folder)
    known = read_record(folder)
    assert known is not None
    write_record(folder, known.guarded("/data/*.wal", ("--initial=b",)))
    assert not is_altered(folder), "what we change of it is no change of somebody else's"


def test_a_file_or_a_flag_that_was_changed_by_hand_is_found(folder: Path) -> None:
    (folder / "conf").write_bytes(b"two")
    assert is_altered(folder)
    (folder / "conf").write_bytes(b"one")
    assert not is_altered(folder)
    (folder / "conf").unlink()
    assert is_altered(folder)
    (folder / "conf").write_bytes(b"one")
    text = (folder / RECORD).read_text()
    (folder / RECORD).write_text(text.replace("--quota=1", "--quota=2"))
    assert is_altered(folder)
    (folder / RECORD).write_text("{")
    assert is_altered(folder)


def test_a_record_without_its_seal_was_changed(folder: Path) -> None:
    found = json.loads((folder / RECORD).read_text())
    del found["seal"]
    (folder / RECORD).write_text(json.dumps(found))
    assert is_altered(folder)


def test_files_are_known_by_their_content() -> None:
    one, same, other = (hashes_of((UnitFile(PurePosixPath("/x"), text),)) for text in (b"1", b"1", b"2"))
    assert one == same != other
