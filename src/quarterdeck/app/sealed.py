"""Sealing the keys of all planes of a home with a key file, while no other process has the home open."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.drivers.stores import store_file
from quarterdeck.engine.workspace.home_folder import require_own
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.files import write_secret
from quarterdeck.stores.key_seal import KEY_FILE, Key, random_key, read_key, reseal

__all__ = ["KEY_FILE", "Key", "make_key_file", "read_key", "rekey", "seal", "unseal"]


def make_key_file(path: Path) -> None:
    """Create a key file (0600) with random bytes. Raises InvalidInput if it exists."""
    if path.exists():
        raise InvalidInput(f"making the key file {path}", "it exists", "omit --make, or name another file")
    write_secret(path, random_key())


def seal(folder: Path, key_file: Path) -> int:
    """Seal the home in ``folder``; the number of planes whose keys were sealed. Raises what ``reseal`` does."""
    return reseal(_store(folder), None, read_key(key_file))


def unseal(folder: Path, key: Key) -> int:
    """Store all keys unencrypted again; returns how many."""
    return reseal(_store(folder), key, None)


def rekey(folder: Path, key: Key, new: Key) -> int:
    """Seal all keys with another key; returns how many."""
    return reseal(_store(folder), key, new)


def _store(folder: Path) -> Path:
    path = store_file(folder)
    if not path.exists():
        raise NotFound(f"opening {folder}", "there is no home yet", f"with {KEY_FILE} set, a new one is sealed at once")
    require_own(folder)
    return path
