"""What is in a database of etcd, read without etcd: its keys at one revision, and how those of two databases differ.

A database has its rows in the order of their revisions, not of their keys. So the newest row of each key is noted
first, in a temporary file of SQLite: names and hashes of keys, and no values. Memory is bounded by its cache.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from quarterdeck.backup.bolt.file import BoltFile
from quarterdeck.backup.bolt.pages import damaged
from quarterdeck.backup.database import KEYS, compacted_revision, newest_of
from quarterdeck.backup.records import is_deletion, name_of, revision_of, stored_key
from quarterdeck.errors import NotFound
from quarterdeck.etcd.facts import KeyValue

#: KiB that SQLite keeps in memory.
_CACHE_KB = 16_000
_HASH_BYTES = 16


def keys_at(path: Path, *, prefix: bytes = b"", revision: int = 0) -> Iterator[KeyValue]:
    """The keys below ``prefix`` that a database has at ``revision`` (0: its newest), in order.

    Raises NotFound for a revision that it does not have, Corrupt, and OSError.
    """
    with BoltFile(path) as file, closing(_noted(file, prefix, revision, lambda row, _: row)) as noted:
        for (row,) in noted.execute("SELECT content FROM keys ORDER BY name"):
            stored = file.get(KEYS, row)
            if stored is None:
                raise damaged(f"the row {row.hex()} is not where its order says")
            yield stored_key(stored)


def count_keys(path: Path, *, prefix: bytes = b"", revision: int = 0) -> int:
    """How many keys ``keys_at`` has."""
    with BoltFile(path) as file, closing(_noted(file, prefix, revision, lambda row, _: row)) as noted:
        return int(noted.execute("SELECT count(*) FROM keys").fetchone()[0])


class DifferenceKind(StrEnum):
    """What differs between two databases."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """A key that two databases do not have alike. ``recreated``: it is CHANGED, and was deleted and created again."""

    kind: DifferenceKind
    key: bytes
    recreated: bool = False


@dataclass(frozen=True, slots=True)
class DatabaseMoment:
    """A database at one of its revisions (0: its newest)."""

    path: Path
    revision: int = 0


def differences(before: DatabaseMoment, after: DatabaseMoment, *, prefix: bytes = b"") -> Iterator[KeyDifference]:
    """What is added, removed or changed from one database to another one, or from one revision to another one of the
    same database, in the order of the keys. A key that was written again with the same value is not changed. Raises as
    ``keys_at`` does.
    """
    with (
        BoltFile(before.path) as old_file,
        BoltFile(after.path) as new_file,
        closing(_noted(old_file, prefix, before.revision, _content)) as old,
        closing(_noted(new_file, prefix, after.revision, _content)) as new,
    ):
        query = "SELECT name, content FROM keys ORDER BY name"
        olds, news = old.execute(query), new.execute(query)
        was: Any = olds.fetchone()
        now: Any = news.fetchone()
        while was is not None or now is not None:
            if was is not None and (now is None or was[0] < now[0]):
                yield KeyDifference(DifferenceKind.REMOVED, was[0])
                was = olds.fetchone()
            elif now is not None and (was is None or now[0] < was[0]):
                yield KeyDifference(DifferenceKind.ADDED, now[0])
                now = news.fetchone()
            else:
                assert was is not None, "one of the two has a row"
                assert now is not None, "one of the two has a row"
                if was[1][:_HASH_BYTES] != now[1][:_HASH_BYTES]:
                    yield KeyDifference(DifferenceKind.CHANGED, now[0], was[1][_HASH_BYTES:] != now[1][_HASH_BYTES:])
                was, now = olds.fetchone(), news.fetchone()


def _noted(
    file: BoltFile, prefix: bytes, revision: int, content_of: Callable[[bytes, bytes], bytes]
) -> sqlite3.Connection:
    """The keys below a prefix at a revision, each with its ``content_of`` (of its row and its value)."""
    to = _checked(file, revision)
    noted = sqlite3.connect("", isolation_level=None)  # a temporary file that nobody else can open
    try:
        noted.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        noted.execute("PRAGMA journal_mode = OFF")
        noted.execute("CREATE TABLE keys (name BLOB PRIMARY KEY, content BLOB) WITHOUT ROWID")
        noted.execute("BEGIN")
        for row, stored in file.rows(KEYS):
            if revision_of(row) > to:
                break
            name = name_of(stored)
            if not name or not name.startswith(prefix):
                continue
            if is_deletion(row):
                noted.execute("DELETE FROM keys WHERE name = ?", (name,))
            else:
                noted.execute("INSERT OR REPLACE INTO keys VALUES (?, ?)", (name, content_of(row, stored)))
        noted.execute("COMMIT")
    except BaseException:
        noted.close()
        raise
    return noted


def _checked(file: BoltFile, revision: int) -> int:
    newest, oldest = newest_of(file), compacted_revision(file)
    if not revision:
        return newest
    if not oldest <= revision <= newest:
        seen = f"it has revisions {max(oldest, 1):,} to {newest:,}"
        raise NotFound(f"looking for revision {revision:,} in a database of etcd", seen, "choose one of these")
    return revision


def _content(_: bytes, stored: bytes) -> bytes:
    """The hash of a key's value, and behind it the revision at which the key was created."""
    key = stored_key(stored)
    return hashlib.blake2b(key.value, digest_size=_HASH_BYTES).digest() + key.create_revision.to_bytes(8, "big")
