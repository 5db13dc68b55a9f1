"""Volumes as folders: classes elsewhere, limits, and deletions that were cut short."""

from __future__ import annotations

import errno
import os
from pathlib import Path, PurePosixPath

import pytest
from support.golden import Golden

from quarterdeck.errors import InvalidInput, Unavailable
from quarterdeck.files import write_atomic
from quarterdeck.sites.local import class_roots
from quarterdeck.sites.local.settings import LocalStorageClass
from quarterdeck.sites.local.volumes import VolumeFolders


def volumes(tmp_path: Path, machine: str = "east-a1", **classes: LocalStorageClass) -> VolumeFolders:
    (tmp_path / "ssd").mkdir(exist_ok=True)
    found = {"standard": LocalStorageClass(), "fast": LocalStorageClass(folder=tmp_path / "ssd")} | classes
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


def test_what_was_taken_from_a_machine_is_nobodys_until_it_is_settled(tmp_path: Path) -> None:
    first, second = volumes(tmp_path), volumes(tmp_path, "east-b1")
    (Path(first.create("data", "fast").path) / "file").write_text("x")
    second.take("data", "fast", first)
    second.take("data", "fast", first)  # somebody was faster
    assert (first.folder_of("data"), second.folder_of("data")) == (None, None)
    assert second.all() == ()
    assert [(each.name, each.arriving, each.entries) for each in second.facts("").volumes] == [
        ("data", True, ("file",))
    ]
    assert second.class_of("data") == "fast"
    second.settle("data")
    second.settle("data")
    assert [each.arriving for each in second.facts("").volumes] == [False]
    assert (Path(second.volume("data").path) / "file").read_text() == "x"
    first.take("data", "fast", second)
    first.delete("data")
    assert (first.facts("").volumes, second.facts("").volumes) == ((), ())


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
    found = volumes(tmp_path, tiny=LocalStorageClass(limit_bytes=10_000))
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


def unmounted(tmp_path: Path) -> Path:
    """The disk's folder is there, and nothing of what is on the disk: where it was put instead."""
    elsewhere = (tmp_path / "ssd").rename(tmp_path / "drawer")
    (tmp_path / "ssd").mkdir()
    return elsewhere


def mounted_again(tmp_path: Path) -> None:
    (tmp_path / "ssd").rmdir()
    (tmp_path / "drawer").rename(tmp_path / "ssd")


def test_the_folder_of_a_class_is_never_made(tmp_path: Path, golden: Golden) -> None:
    found = volumes(tmp_path)
    (tmp_path / "ssd").rmdir()
    for call in (lambda: found.create("data", "fast"), lambda: found.free("fast")):
        with golden.raises(Unavailable):
            call()
    assert not (tmp_path / "ssd").exists()
    found.create("data", "standard")


def test_a_disk_that_is_not_mounted_is_no_lost_data(tmp_path: Path, golden: Golden) -> None:
    found = volumes(tmp_path)
    path = Path(found.create("data", "fast").path)
    (path / "file").write_text("x")
    found.create("other", "standard")
    unmounted(tmp_path)
    found = volumes(tmp_path)
    calls = (
        lambda: found.entries("data", ""),
        lambda: found.create("data", "fast"),
        lambda: found.create("more", "fast"),
        lambda: found.delete("data"),
        lambda: found.free("fast"),
        found.all,
    )
    for call in calls:
        with golden.raises(Unavailable):
            call()
    assert found.entries("other", "") == ()
    assert list((tmp_path / "ssd").iterdir()) == []
    mounted_again(tmp_path)
    assert found.entries("data", "") == ("file",)
    found.delete("data")


def test_another_disk_in_its_place_is_not_taken_for_the_one_that_was_used(tmp_path: Path, golden: Golden) -> None:
    found = volumes(tmp_path)
    found.create("data", "fast")
    unmounted(tmp_path)
    stranger = VolumeFolders.of(
        "east-a1",
        tmp_path / "home-2",
        PurePosixPath("east/east-a1"),
        {"fast": LocalStorageClass(folder=tmp_path / "ssd")},
    )
    stranger.create("data", "fast")
    with golden.raises(Unavailable):
        found.entries("data", "")
    found.delete_all()
    assert stranger.entries("data", "") == ()


@pytest.mark.parametrize("writes", [1, 2])
def test_a_first_use_that_was_cut_short_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    found = volumes(tmp_path)
    left = [writes]

    def write(path: Path, content: bytes, *, mode: int) -> None:
        if not left[0]:
            raise OSError(errno.EIO, "the power failed")
        left[0] -= 1
        write_atomic(path, content, mode=mode)

    with monkeypatch.context() as patched:
        patched.setattr(class_roots, "write_atomic", write)
        with pytest.raises(OSError, match="the power failed"):
            found.create("data", "fast")
    assert volumes(tmp_path).create("data", "fast") == found.create("data", "fast")
