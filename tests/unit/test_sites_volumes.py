"""Volumes as folders: classes elsewhere, limits, and deletions that were cut short."""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath

import pytest

from quarterdeck.errors import InvalidInput
from quarterdeck.sites.local.settings import StorageClass
from quarterdeck.sites.local.volumes import VolumeFolders


def volumes(tmp_path: Path, machine: str = "east-a1", **classes: StorageClass) -> VolumeFolders:
    found = {"standard": StorageClass(), "fast": StorageClass(folder=tmp_path / "ssd")} | classes
    return VolumeFolders.of(machine, tmp_path / machine, PurePosixPath("east", machine), found)


def test_machines_do_not_share_volumes_of_a_class_with_a_folder(tmp_path: Path) -> None:
    first, second = volumes(tmp_path), volumes(tmp_path, "east-b1")
    path = first.create("data", "fast").path
    assert Path(path).is_relative_to(tmp_path / "ssd")
    assert Path(path).stat().st_mode & 0o777 == 0o700
    assert second.all() == ()
    assert second.create("data", "fast").path != path


def test_a_deletion_that_was_cut_short_is_not_seen_and_is_finished_by_the_next(tmp_path: Path) -> None:
    found = volumes(tmp_path)
    root = Path(found.create("data", "standard").path).parent
    (root / "data/file").write_text("x")
    (root / "data").rename(root / ".deleted-0")  # and here the power failed
    assert found.all() == ()
    found.delete("another")
    assert list(root.iterdir()) == []


def test_what_is_deleted_shrinks_bit_by_bit_and_takes_nothing_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = volumes(tmp_path)
    data = Path(found.create("data", "standard").path)
    (data / "wal").mkdir()
    with (data / "wal/0.wal").open("wb") as large:
        large.truncate(64 << 20)
    kept = tmp_path / "kept"
    kept.write_bytes(b"x" * (9 << 20))
    (data / "second-name").hardlink_to(kept)
    (data / "elsewhere").symlink_to(kept)
    (data / "folder-elsewhere").symlink_to(tmp_path)
    sizes: list[int] = []
    truncate = os.ftruncate
    monkeypatch.setattr(os, "ftruncate", lambda file, size: (sizes.append(size), truncate(file, size)))
    found.delete("data")
    assert sizes[:2] == [60 << 20, 56 << 20]
    assert sizes[-1] == 4 << 20
    assert list(data.parent.iterdir()) == []
    assert kept.stat().st_size == 9 << 20


def test_a_deletion_that_fails_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = volumes(tmp_path)
    (Path(found.create("data", "standard").path) / "file").write_text("x")

    def refuse(_: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only"):
        found.delete("data")


def test_space_is_never_less_than_none(tmp_path: Path) -> None:
    found = volumes(tmp_path, tiny=StorageClass(limit_bytes=10_000))
    assert found.free("tiny") == 10_000
    Path(found.create("data", "tiny").path, "file").write_bytes(b"x" * 50_000)
    assert found.free("tiny") == 0
    assert found.free("fast") > 10_000


def test_listing_stays_inside_the_volume(tmp_path: Path) -> None:
    found = volumes(tmp_path)
    found.create("data", "standard")
    for below in ("..", "a/../..", "/etc"):
        with pytest.raises(InvalidInput):
            found.entries("data", below)


def test_deleting_all_leaves_the_folder_of_the_class_alone(tmp_path: Path) -> None:
    found = volumes(tmp_path)
    found.create("data", "fast")
    found.create("data-2", "standard")
    found.delete_all()
    assert found.all() == ()
    assert (tmp_path / "ssd").is_dir()
