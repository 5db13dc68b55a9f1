"""The ledger of a machine, kept in its folder. Plain calls that may block on the disk; run them in a thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from quarterdeck.errors import TimedOut
from quarterdeck.files import write_atomic
from quarterdeck.sites.ledger import Ledger, ledger_of, ledger_text

T = TypeVar("T")

_FILE = "ledger.json"
#: Seconds to wait for another process that is just writing.
_PATIENCE = 10.0


def read_ledger(machine: Path) -> Ledger:
    """The ledger in a machine's folder; an empty one before its first seat. Raises Corrupt, OSError."""
    file = machine / _FILE
    try:
        return ledger_of(f"reading {file}", machine.name, file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return Ledger()


def change_ledger(machine: Path, change: Callable[[Ledger], tuple[Ledger, T]]) -> T:
    """Change it, one process after another: what ``change`` makes of it is on the disk when this returns. Raises what
    ``change`` and ``read_ledger`` do, and TimedOut when another process does not come to an end.
    """
    machine.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with FileLock(machine / "ledger.lock", timeout=_PATIENCE):
            before = read_ledger(machine)
            after, result = change(before)
            if after != before:
                write_atomic(machine / _FILE, ledger_text(after), mode=0o600)
            return result
    except Timeout as error:
        doing = f"changing who sits where on machine {machine.name}"
        raise TimedOut(doing, f"another process has been at it for {_PATIENCE:.0f} s") from error
