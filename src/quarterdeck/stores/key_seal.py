"""The keys of planes, sealed in the store's file: a copy of the file alone gives no access to any plane.

The whole document of each kind that holds keys is sealed with AES-256-GCM, under a key that scrypt derives from the
content of a key file (random bytes, or a passphrase). A row in the same file records whether a store is sealed, and
with which key, so both change in one transaction; that also keeps an empty store sealed. The authenticated data of each
document name it: it cannot replace another one.
"""

from __future__ import annotations

import base64
import json
import secrets
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.api.belongings import AddonManifests, PlaneSecrets
from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.input_files import PIPE_SILENCE_S, UnreadableFileError, private, read_bytes
from quarterdeck.stores.sqlite_file import in_words, opened, transaction

if TYPE_CHECKING:
    from quarterdeck.stores.cipher import Cipher

#: The environment variable with the path of the key file.
KEY_FILE = "QUARTERDECK_KEY_FILE"
#: The kinds whose documents are sealed.
SEALED_KINDS = frozenset({PlaneSecrets.__name__, AddonManifests.__name__})

_KIND, _NAME = "Seal", "store"
_CHECK = "quarterdeck"
#: scrypt's cost: 32 MiB and 0.1 s, once for each command (RFC 7914; OWASP's minimum is half of it).
_COST = {"n": 2**15, "r": 8, "p": 1}
_SHORTEST, _LONGEST = 16, 2**20


@dataclass(frozen=True, slots=True)
class Key:
    """The content of a key file."""

    path: Path
    secret: bytes = field(repr=False)


def read_key(path: Path) -> Key:
    """The key in a file. Raises PreconditionFailed unless the file is the user's own and no other user may read it."""
    doing = f"reading the key file {path}"
    try:
        secret = read_bytes(path, _LONGEST, pipe_silence_s=PIPE_SILENCE_S, require=private(path, doing)).strip()
    except UnreadableFileError as error:
        raise PreconditionFailed(doing, str(error), f"put it there, or unset {KEY_FILE}") from error
    if len(secret) < _SHORTEST:
        raise PreconditionFailed(
            doing, f"it holds {len(secret)} bytes, too few to protect anything", f"give {_SHORTEST} or more"
        )
    return Key(path, secret)


def random_key() -> bytes:
    """The content of a new key file."""
    return base64.b64encode(secrets.token_bytes(32)) + b"\n"


class Seal:
    """The seal of one open store: none, or a key. ``row`` is the store's record of it."""

    def __init__(self, row: str | None, cipher: Cipher | None) -> None:
        self._row = row
        self._cipher = cipher

    def close(self, db: sqlite3.Connection, kind: str, name: str, body: str) -> str:
        """``body`` in stored form. Raises PreconditionFailed if the store was sealed in another way since."""
        if kind not in SEALED_KINDS:
            return body
        self._require_unchanged(db)
        return body if self._cipher is None else self._cipher.close(kind, name, body)

    def open(self, db: sqlite3.Connection, kind: str, name: str, body: str) -> str:
        """The document that ``close`` sealed. Raises Corrupt for any other content."""
        if kind not in SEALED_KINDS:
            return body
        self._require_unchanged(db)
        return body if self._cipher is None else self._cipher.open(kind, name, body)

    def _require_unchanged(self, db: sqlite3.Connection) -> None:
        if _row(db) != self._row:
            raise PreconditionFailed(
                "using the keys in the store", "it was sealed in another way in the meantime", "run the command again"
            )


def unlocked(db: sqlite3.Connection, path: Path, key: Key | None) -> Seal:
    """The seal of an open store. A store without keys is sealed from now on, if there is a ``key``.

    Raises PreconditionFailed when the store is sealed and the key is missing or wrong, and when there is a key and the
    store has unsealed keys.
    """
    doing = "opening the store"
    row = _row(db)
    if key is None:
        if row is not None:
            raise PreconditionFailed(doing, f"{path} is sealed", f"name its key file in {KEY_FILE}")
        return Seal(None, None)
    if row is None:
        with transaction(db):
            row = _row(db)
            if row is None and not _documents(db):
                row = _write_row(db, key)
    if row is None:
        raise PreconditionFailed(
            doing, f"{KEY_FILE} is set, but {path} is not sealed", "seal it with 'quarterdeck home seal', or unset it"
        )
    return Seal(row, _cipher(row, key, path))


def reseal(path: Path, old: Key | None, new: Key | None) -> int:
    """Seal all keys in a store's file with ``new``; None: unseal them. ``old`` is the current key.

    All or none, in one transaction; processes that have the store open are refused from then on, and must start again.
    The old content of the file is overwritten (its write-ahead log once no other process has it open). Returns the
    number of planes with keys. Raises PreconditionFailed, Corrupt, Unavailable.
    """
    with in_words("sealing the store", path):
        db = opened(path, busy_timeout=5.0)
        try:
            with transaction(db):
                row = _row(db)
                if row is None and old is not None:
                    raise PreconditionFailed("sealing the store", f"{path} is not sealed", "see 'home seal --help'")
                if row is not None and old is None:
                    raise PreconditionFailed("sealing the store", f"{path} is sealed already", "see 'home rekey'")
                before = Seal(row, _cipher(row, old, path) if row is not None and old is not None else None)
                plain = [(kind, name, before.open(db, kind, name, body)) for kind, name, body in _documents(db)]
                db.execute("DELETE FROM resources WHERE kind = ?", (_KIND,))
                written = None if new is None else _write_row(db, new)
                after = Seal(written, _cipher(written, new, path) if written is not None and new is not None else None)
                for kind, name, body in plain:
                    values = (after.close(db, kind, name, body), kind, name)
                    db.execute("UPDATE resources SET body = ? WHERE kind = ? AND name = ?", values)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            db.close()
    return sum(kind == PlaneSecrets.__name__ for kind, _, _ in plain)


def _documents(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    marks = ", ".join("?" for _ in SEALED_KINDS)
    query = f"SELECT kind, name, body FROM resources WHERE kind IN ({marks})"  # noqa: S608 - question marks only
    return db.execute(query, tuple(SEALED_KINDS)).fetchall()


def _row(db: sqlite3.Connection) -> str | None:
    found = db.execute("SELECT body FROM resources WHERE kind = ? AND name = ?", (_KIND, _NAME)).fetchone()
    return None if found is None else str(found[0])


def _write_row(db: sqlite3.Connection, key: Key) -> str:
    salt = secrets.token_bytes(16)
    check = _derived(key, salt, **_COST).close(_KIND, _NAME, _CHECK)
    row = json.dumps({"version": 1, "salt": base64.b64encode(salt).decode(), **_COST, "check": check})
    db.execute("INSERT INTO resources (kind, name, body) VALUES (?, ?, ?)", (_KIND, _NAME, row))
    return row


def _cipher(row: str, key: Key, path: Path) -> Cipher:
    """Raises PreconditionFailed for a wrong key, Corrupt for an invalid row."""
    try:
        seal = json.loads(row)
        if seal["version"] != 1:
            raise Corrupt("opening the store", f"{path} was sealed by a newer quarterdeck", "use that version")
        cipher = _derived(key, base64.b64decode(seal["salt"]), n=seal["n"], r=seal["r"], p=seal["p"])
        check = str(seal["check"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt("opening the store", f"the seal of {path} cannot be read", "restore it from a backup") from error
    try:
        cipher.open(_KIND, _NAME, check)
    except Corrupt:
        raise PreconditionFailed(
            "opening the store", f"{path} is sealed by another key than that in {key.path}", f"set {KEY_FILE}"
        ) from None
    return cipher


def _derived(key: Key, salt: bytes, *, n: int, r: int, p: int) -> Cipher:
    # Loaded only for sealed stores: the library takes as long as all other work of opening one.
    from quarterdeck.stores.cipher import Cipher

    return Cipher(key.secret, salt, n=n, r=r, p=p)
