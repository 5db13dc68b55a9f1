"""Kinds of stores: from a home's folder to the store port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from quarterdeck.stores.port import Store
from quarterdeck.stores.sealing import Key
from quarterdeck.stores.sqlite import SqliteStore


def store_file(folder: Path) -> Path:
    """Where the SQLite store of a home is."""
    return folder / "quarterdeck.db"


def _sqlite(folder: Path, key: Key | None) -> Store:
    return SqliteStore(store_file(folder), key=key)


STORE_DRIVERS: Mapping[str, Callable[[Path, Key | None], Store]] = {"sqlite": _sqlite}


def open_store(folder: Path, *, key: Key | None = None, kind: str = "sqlite") -> Store:
    """The store of the home in ``folder``. ``key``: what its secrets are sealed by. Raises Corrupt for a damaged one or
    one of a newer version, Unavailable when it cannot be written, PreconditionFailed when it is sealed by another key.
    """
    return STORE_DRIVERS[kind](folder, key)
