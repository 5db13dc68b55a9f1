"""The format of a store's file: what a new one looks like, which one a file has, and how an older one is brought here.

The file names its format by a number. Each change of what is in it that an older quarterdeck must not pass over raises
the number, with a migration. A process that has opened a file of one format refuses to write to it once another process
has migrated it: ``require_current``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from quarterdeck.errors import Corrupt

#: Changes a file of one format to the next one, with plain SQL inside the caller's transaction. Documents with keys may
#: be sealed: a migration leaves them as they are.
Migration = Callable[[sqlite3.Connection], None]

#: The migrations by the format that they start from. The first format is that of version 0.1.0.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})

#: The file of a store with nothing in it, in the newest format.
SCHEMA = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE resource_version (newest INTEGER NOT NULL);
CREATE TABLE resources (
  kind TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, name)
);
CREATE TABLE journal (
  id INTEGER PRIMARY KEY AUTOINCREMENT, plane TEXT NOT NULL, time REAL NOT NULL, kind TEXT NOT NULL,
  text TEXT NOT NULL, outcome TEXT NOT NULL, operation TEXT NOT NULL, site TEXT NOT NULL,
  replica TEXT NOT NULL, detail TEXT NOT NULL
);
CREATE INDEX journal_of_plane ON journal (plane, id);
CREATE TABLE events (
  plane TEXT NOT NULL, type TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
  first REAL NOT NULL, last REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (plane, type, reason, message)
);
CREATE TABLE leases (
  name TEXT PRIMARY KEY, holder TEXT NOT NULL, token INTEGER NOT NULL, ttl REAL NOT NULL, expires REAL NOT NULL
);
INSERT INTO resource_version VALUES (0);
"""

_FORMAT = "SELECT max(version) FROM schema_version"


def newest(migrations: Mapping[int, Migration]) -> int:
    """The format that the last of these migrations leads to."""
    return 1 + max(migrations, default=0)


def create(db: sqlite3.Connection, number: int) -> None:
    """Make the tables, inside the caller's transaction."""
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.execute("INSERT INTO schema_version VALUES (?)", (number,))


def format_of(db: sqlite3.Connection, path: Path, migrations: Mapping[int, Migration]) -> int:
    """The format of an open file, which this quarterdeck knows. Raises Corrupt for a file that is no store, for one of
    a newer quarterdeck, and for one from before the first migration.
    """
    doing = "opening the store"
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    row = db.execute(_FORMAT).fetchone() if "schema_version" in tables else None
    if row is None or not isinstance(row[0], int):
        raise Corrupt(doing, f"{path} is not a store of quarterdeck", "move it away, or set QUARTERDECK_HOME")
    found, known = row[0], newest(migrations)
    if found > known:
        raise _newer(doing, path, found, known)
    if found < min(migrations, default=known):
        raise Corrupt(
            doing,
            f"{path} has format {found}, and this quarterdeck reads {min(migrations, default=known)} to {known}",
            "open it with an older version that still reads it first",
        )
    return int(found)


def migrate(db: sqlite3.Connection, path: Path, migrations: Mapping[int, Migration]) -> None:
    """Bring the file to the newest format, inside the caller's transaction: another process may have done so since it
    was looked at. Raises Corrupt as ``format_of`` does.
    """
    for number in range(format_of(db, path, migrations), newest(migrations)):
        migrations[number](db)
        db.execute("UPDATE schema_version SET version = ?", (number + 1,))


def require_current(db: sqlite3.Connection, path: Path, known: int) -> None:
    """Raise Corrupt if another process has migrated the file since it was opened with the format ``known``."""
    (found,) = db.execute(_FORMAT).fetchone()
    if found != known:
        raise _newer("writing to the store", path, found, known)


def _newer(doing: str, path: Path, found: int, known: int) -> Corrupt:
    return Corrupt(
        doing, f"{path} has format {found}, and this quarterdeck knows {known}", "use the newer version that wrote it"
    )
