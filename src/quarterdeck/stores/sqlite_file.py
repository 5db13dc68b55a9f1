"""The SQLite file: created atomically and private, checked before it is opened for writing, with readable errors."""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from quarterdeck.errors import Corrupt, Unavailable
from quarterdeck.files import sync_folder, write_secret

# The format of a store's file: that of a new one, that of an existing one, and the migrations of older ones. The file
# has a format number. Each change that an older quarterdeck must not ignore increases the number, with a migration. A
# process that has opened a file of one format refuses to write to it once another process has migrated it:
# ``require_current``.

#: Changes a file of one format to the next one, with plain SQL inside the caller's transaction. Documents with keys may
#: be sealed: a migration leaves them as they are.
Migration = Callable[[sqlite3.Connection], None]

#: The migrations by the format that they start from. The first format is that of version 0.1.0.
MIGRATIONS: Mapping[int, Migration] = MappingProxyType({})

#: An empty store's file, in the newest format.
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
    """The format after the last of these migrations."""
    return 1 + max(migrations, default=0)


def create(db: sqlite3.Connection, number: int) -> None:
    """Create the tables, inside the caller's transaction."""
    for statement in SCHEMA.split(";"):
        db.execute(statement)
    db.execute("INSERT INTO schema_version VALUES (?)", (number,))


def format_of(db: sqlite3.Connection, path: Path, migrations: Mapping[int, Migration]) -> int:
    """The format of an open file, which this quarterdeck knows. Raises Corrupt for a file that is not a store, for one
    of a newer quarterdeck, and for one from before the first migration.
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
    was checked. Raises Corrupt as ``format_of`` does.
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


_RESTORE = "put a copy from a backup in its place, or move it away to start with an empty store"
#: Seconds for which a check of the whole file is valid, and the identity of the host's boot.
_CHECK_EVERY = 86_400.0
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BAD = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def opened(path: Path, *, busy_timeout: float, migrations: Mapping[int, Migration] = MIGRATIONS) -> sqlite3.Connection:
    """A connection to the store's file, created if it does not exist, and migrated if its format is an older one.

    The file, and so the -wal and -shm that SQLite creates next to it, are 0600 from their creation: they contain keys.
    Raises Corrupt, without any change, if the file is damaged or has an unknown format; Unavailable.
    """
    with in_words("opening the store", path):
        if not path.exists():
            _create(path, newest(migrations))
        is_older = _check(path, busy_timeout, migrations) < newest(migrations)
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
        connection = _connected(path, "rw", busy_timeout)
        # FULL: a commit is on the disk when it returns. secure_delete: deleted keys do not stay in free pages.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA secure_delete=ON")
        if is_older:
            try:
                with transaction(connection):
                    migrate(connection, path, migrations)
            except BaseException:
                connection.close()
                raise
        return connection


@contextlib.contextmanager
def in_words(doing: str, path: Path) -> Iterator[None]:
    """Turn the errors of SQLite and of the file system into Corrupt and Unavailable."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # The primary code is in the low byte (https://sqlite.org/rescode.html).
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _BAD:
            raise Corrupt(doing, f"{path} is damaged ({error})", _RESTORE) from error
        if code in _BUSY:
            raise Unavailable(doing, f"another process keeps {path} busy", "try again") from error
        if code == sqlite3.SQLITE_FULL:
            raise Unavailable(doing, f"no space left for {path}", "make room on that disk") from error
        if code in _READ_ONLY:
            raise Unavailable(doing, f"{path} is read-only", "make it and its folder writable") from error
        # The last of these: SQLite lost a race for its locks, or was interrupted or out of memory.
        if code in {
            *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR),
            *(sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM),
        }:
            raise Unavailable(doing, f"{path}: {error}", "check its folder's permissions and its disk") from error
        raise
    except OSError as error:
        seen = f"{error.filename or path}: {error.strerror}"
        raise Unavailable(
            doing, seen, "check the folder's permissions and its disk, or set QUARTERDECK_HOME"
        ) from error


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the only writer from its start on."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _create(path: Path, number: int) -> None:
    """Create the whole file under another name and link it in place: no process ever sees half of it, and of two
    creators one wins.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    aside = path.parent / f".{path.name}.{secrets.token_hex(6)}"
    os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with contextlib.closing(_connected(aside, "rw", 0.0)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            with transaction(connection):
                create(connection, number)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(aside)
    finally:
        aside.unlink()
    sync_folder(path.parent)


def _check(path: Path, busy_timeout: float, migrations: Mapping[int, Migration]) -> int:
    """The format of the file. Raises Corrupt. Reads only, through SQLite: closing the file directly would drop SQLite's
    locks on it.
    """
    doing = "opening the store"
    if not path.is_file():
        raise Corrupt(doing, f"{path} is not a file", "move it away")
    with contextlib.closing(_connected(path, "ro", busy_timeout)) as connection:
        if not _checked_lately(path):
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                raise Corrupt(doing, f"{path} is damaged ({' '.join(found.split())})", _RESTORE)
            _note_checked(path)
        return format_of(connection, path, migrations)


def _checked_lately(path: Path) -> bool:
    """Whether the whole file was checked within a day, and since the host's boot: a power failure is what damages
    files. Later damage shows when it is read (``in_words``).
    """
    try:
        note = _note_of(path)
        return note.read_text() == _life(path) and 0 <= time.time() - note.stat().st_mtime < _CHECK_EVERY
    except FileNotFoundError:
        return False


def _note_checked(path: Path) -> None:
    with contextlib.suppress(OSError):  # then it is checked again the next time
        write_secret(_note_of(path), _life(path).encode())


def _note_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-checked")


def _life(path: Path) -> str:
    """The identity of this boot of the host, and of this file as opposed to a copy in its place."""
    return f"{_BOOT_ID.read_text().strip()} {path.stat().st_ino}"


def _connected(path: Path, mode: str, busy_timeout: float) -> sqlite3.Connection:
    # Used by one thread at a time, but not always the one that opened it.
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
    )
