"""The folder of a home, and the key that seals its store, from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import platformdirs

from quarterdeck.errors import InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.files import why_untrusted
from quarterdeck.stores.key_seal import KEY_FILE, Key, read_key


def home_folder(environment: Mapping[str, str]) -> Path:
    """QUARTERDECK_HOME, or the XDG data folder."""
    given = environment.get("QUARTERDECK_HOME")
    return Path(given).absolute() if given else Path(platformdirs.user_data_dir("quarterdeck", appauthor=False))


def home_key(environment: Mapping[str, str]) -> Key | None:
    """The user's key, if any. Raises InvalidInput, and PreconditionFailed when it cannot be used."""
    path = key_file(environment)
    return read_key(path) if path is not None else None


def key_file(environment: Mapping[str, str]) -> Path | None:
    """The user's key file: absolute, because drivers run in other folders. Raises InvalidInput."""
    named = environment.get(KEY_FILE)
    if named and not Path(named).is_absolute():
        raise InvalidInput(f"reading {KEY_FILE}", f"{named!r} is not an absolute path", "give an absolute path")
    return Path(named) if named else None


def require_own(folder: Path) -> None:
    """Raises PreconditionFailed for a home that another user may write to: units are started from its files."""
    if why := why_untrusted(folder):
        raise PreconditionFailed(
            f"opening {folder}", why, f"chmod go-w {folder} if that was not meant, or set QUARTERDECK_HOME"
        )


def make_folder(folder: Path) -> None:
    """Create the folder of a home. Raises Unavailable where that fails, PreconditionFailed as ``require_own`` does."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        seen = str(error.strerror)
        raise Unavailable(f"opening {folder}", seen, "set QUARTERDECK_HOME to a folder that you own") from error
    require_own(folder)
