"""The number of each site of a home: given once, kept in the site's folder, free again when that is removed."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from quarterdeck.errors import Corrupt, PreconditionFailed
from quarterdeck.files import write_atomic

MOST_SITES = 254


def site_number(home: Path, site: str) -> int:
    """The number of ``site``, 1 to 254; the lowest that is free if it has none yet. May block for a moment.

    Raises PreconditionFailed when all are taken, Corrupt when one cannot be read.
    """
    sites = home / "sites"
    sites.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(sites / ".numbers.lock", timeout=10):
        taken = {each.parent.name: _read(each) for each in sites.glob("*/number")}
        if site in taken:
            return taken[site]
        free = next((each for each in range(1, MOST_SITES + 1) if each not in taken.values()), None)
        if free is None:
            raise PreconditionFailed(f"adding site {site}", f"there are {MOST_SITES} already", "remove one")
        (sites / site).mkdir(exist_ok=True, mode=0o700)
        write_atomic(sites / site / "number", f"{free}\n".encode())
        return free


def _read(path: Path) -> int:
    text = path.read_text()
    if not text.strip().isdigit():
        raise Corrupt(f"reading {path}", f"{text[:40]!r} is not a number")
    return int(text)
