"""Opening the store of a home's folder. No client of a plane is loaded for it, so that commands which only read the
store start quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.port import Store
from quarterdeck.stores.sqlite import SqliteStore


def store_file(folder: Path) -> Path:
    """The path of a home's SQLite store."""
    return folder / "quarterdeck.db"


def _sqlite(folder: Path, key: Key | None) -> Store:
    return SqliteStore(store_file(folder), key=key)


STORE_DRIVERS: Mapping[str, Callable[[Path, Key | None], Store]] = {"sqlite": _sqlite}


def open_store(folder: Path, *, key: Key | None = None, kind: str = "sqlite") -> Store:
    """The store of the home in ``folder``. ``key`` seals its secrets. Raises Corrupt for a damaged one or one of a
    newer version, Unavailable when it cannot be written, PreconditionFailed when it is sealed with another key.
    """
    return STORE_DRIVERS[kind](folder, key)
