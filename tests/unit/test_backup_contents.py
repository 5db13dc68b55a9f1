"""What is in a database, and how two of them differ."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.databases import database, history, put

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.bolt.pages import BRANCH, BRANCH_ELEMENT, HEADER
from quarterdeck.backup.contents import (
    DatabaseMoment,
    DifferenceKind,
    count_keys,
    differences,
    keys_at,
)
from quarterdeck.backup.database import newest_revision
from quarterdeck.backup.records import RevisionChange, removed
from quarterdeck.errors import Corrupt, NotFound

WRITES: list[Mapping[str, bytes | None]] = [
    {"/registry/pods/a/1": b"one", "/registry/pods/b/1": b"two"},
    {"/registry/minions/n1": b"node"},
    {"/registry/pods/a/1": None},
    {"/registry/pods/a/2": b"three", "/registry/minions/n1": b"node again"},
    {"/registry/pods/a/1": b"back"},
]


def read(path: Path, prefix: bytes = b"", revision: int = 0) -> dict[str, bytes]:
    return {each.key.decode(): each.value for each in keys_at(path, prefix=prefix, revision=revision)}


def test_a_database_is_read_at_any_revision_and_below_any_prefix(tmp_path: Path) -> None:
    path = database(tmp_path / "db", history(WRITES))
    state: dict[str, bytes] = {}
    for revision, write in enumerate(WRITES, 2):
        state |= {name: value for name, value in write.items() if value is not None}
        state = {name: value for name, value in state.items() if write.get(name, b"") is not None}
        assert read(path, revision=revision) == state
        assert [*read(path, revision=revision)] == sorted(state)
        pods = {name: value for name, value in state.items() if name.startswith("/registry/pods/")}
        assert read(path, b"/registry/pods/", revision) == pods
        assert count_keys(path, prefix=b"/registry/pods/", revision=revision) == len(pods)
    assert read(path) == state


def test_a_large_database_is_read_in_order(tmp_path: Path) -> None:
    lots = random.Random(3)
    writes = [{f"/k/{lots.randrange(500)}": lots.randbytes(lots.randrange(3000))} for _ in range(2000)]
    path = database(tmp_path / "db", history(writes))
    expected = {name: value for each in writes for name, value in each.items()}
    assert read(path) == expected
    assert [*read(path)] == sorted(expected)


@pytest.mark.parametrize("revision", [4, 7])
def test_a_revision_that_it_does_not_have_is_refused(tmp_path: Path, revision: int) -> None:
    compacted = (5).to_bytes(8, "big") + b"_" + bytes(8)
    path = database(tmp_path / "db", history(WRITES), {b"meta": {b"finishedCompactRev": compacted}})
    assert read(path, revision=5)
    with pytest.raises(NotFound, match="it has revisions 5 to 6"):
        read(path, revision=revision)


def test_a_row_without_a_key_is_none(tmp_path: Path) -> None:
    """What ``etcdutl snapshot restore --bump-revision`` writes."""
    path = database(tmp_path / "db", history([*WRITES, {"": b""}]))
    assert "" not in read(path)


def test_two_databases_differ_by_what_was_added_removed_and_changed(tmp_path: Path) -> None:
    before = DatabaseMoment(database(tmp_path / "before", history(WRITES)))
    more: list[Mapping[str, bytes | None]] = [
        {"/registry/pods/a/1": None, "/registry/pods/0": b"new", "/registry/minions/n1": b"node again"},
        {"/registry/pods/b/1": b"changed", "/registry/zz": b"last"},
    ]
    after = DatabaseMoment(database(tmp_path / "after", history([*WRITES, *more])))
    found = [
        (DifferenceKind.ADDED, b"/registry/pods/0"),
        (DifferenceKind.REMOVED, b"/registry/pods/a/1"),
        (DifferenceKind.CHANGED, b"/registry/pods/b/1"),
        (DifferenceKind.ADDED, b"/registry/zz"),
    ]
    assert [(each.kind, each.key) for each in differences(before, after)] == found
    assert [each.kind for each in differences(after, before, prefix=b"/registry/z")] == [DifferenceKind.REMOVED]
    assert not [*differences(before, before)]
    earlier = replace(after, revision=len(WRITES) + 1)
    assert [(each.kind, each.key) for each in differences(earlier, after)] == found, "two revisions of one database"


def test_a_key_that_was_created_again_is_told_from_one_that_was_written_again(tmp_path: Path) -> None:
    first = [put("/registry/pods/a/1", b"one", 2), put("/registry/pods/a/2", b"two", 2)]
    second = [removed(b"/registry/pods/a/1"), put("/registry/pods/a/2", b"three", 3, created=2)]
    third = [put("/registry/pods/a/1", b"again", 4)]
    changes = [RevisionChange(revision, 0, tuple(keys)) for revision, keys in enumerate((first, second, third), 2)]
    path = database(tmp_path / "db", changes)
    found = {each.key[-1:]: each.recreated for each in differences(DatabaseMoment(path, 2), DatabaseMoment(path))}
    assert found == {b"1": True, b"2": False}


def test_a_tree_with_a_circle_ends(tmp_path: Path) -> None:
    """A branch that leads to itself, whose children would never end."""
    path = database(tmp_path / "db", history([{f"/k/{number}": b"x" * 3000} for number in range(500)]))
    content = bytearray(path.read_bytes())
    with BoltFile(path) as file:
        pages = file.meta.pages
    branches = [number for number in range(2, pages) if content[number * 4096 + 8] == BRANCH]
    top = max(branches)
    at = top * 4096 + HEADER.size
    for index in range(int.from_bytes(content[top * 4096 + 10 : top * 4096 + 12], "little")):
        place = at + index * BRANCH_ELEMENT.size
        content[place + 8 : place + 16] = top.to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(Corrupt, match=r"its tree has a circle|is in its tree twice"):
        read(path)
    with pytest.raises(Corrupt, match="its tree has a circle"):
        newest_revision(path)
