"""A separate user for units with data (CIS 1.1.12), where root can assign it.

The user is a number that no other process has, one for each home: no entry in /etc/passwd is needed. It owns the unit's
files and its volume, and may pass through the folders above them, without reading there. That is impossible where it
could not even reach them (a home below /root, for example): the unit then runs as the user of quarterdeck, as it does
without root.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.model.units import UnitSpec
from quarterdeck.sites.base.records import UnitRecord
from quarterdeck.sites.local.supervisor.records import FILES

#: The first of the ids that neither people nor containers get (systemd: docs/UIDS-GIDS.md), and how many of them are
#: used.
FIRST = 1_900_000_000
COUNT = 2**24

_EVERYBODY = "0 0 4294967295"
_NEEDED = (0, 1, 6, 7)  # CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_SETGID, CAP_SETUID (capability.h)


def user_of(home: Path) -> int:
    """The number of the user of a home's units, and of its group."""
    return FIRST + int.from_bytes(hashlib.sha256(os.fsencode(home)).digest()[:4], "big") % COUNT


def may_give_users() -> bool:
    """Whether this process may start others as any user: it is root, and not only of a user namespace."""
    if os.geteuid() != 0 or " ".join(Path("/proc/self/uid_map").read_text().split()) != _EVERYBODY:
        return False
    return has_rights(*_NEEDED)


def has_rights(*bits: int) -> bool:
    """Whether this process has all of these capabilities, by their numbers (capability.h), in its user namespace."""
    lines = Path("/proc/self/status").read_text().splitlines()
    effective = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))
    return all(effective >> bit & 1 for bit in bits)


def give_user(home: Path, folder: Path, spec: UnitSpec) -> int | None:
    """Give a unit's files and all that it ``owns`` to the user of the home, and return that; None where it is
    impossible.

    ``folder`` is the unit's, written already. May block; raises OSError.
    """
    if not spec.owns or not may_give_users():
        return None
    mine = [folder / FILES, *(Path(each) for each in spec.owns)]
    program = Path(spec.argv[0]).resolve()
    ours = {each for path in mine for each in _above(path) if each.is_relative_to(home)}
    ours |= {
        each for path in spec.owns for each in tuple(Path(path).parents)[:2]
    }  # a class's folder, the machine's in it
    foreign = {each for path in (*mine, program) for each in _above(path)} - ours
    if not all(_may_pass(each) for each in (program, *foreign)):
        return None
    for each in ours:
        mode = stat.S_IMODE(each.stat().st_mode)
        if not mode & stat.S_IXOTH:
            each.chmod(mode | stat.S_IXOTH)
    user = user_of(home)
    for path in mine:
        _give(path, user)
    return user


def _above(path: Path) -> Sequence[Path]:
    return path.parents


def _may_pass(path: Path) -> bool:
    """Whether any user may execute it, or pass through it; a missing one is reported by the unit's start."""
    return path.exists() and bool(path.stat().st_mode & stat.S_IXOTH)


def give_again(record: UnitRecord) -> None:
    """Give a unit what it ``owns`` once more: data that a person restored is often root's. Raises OSError."""
    if record.uid is not None:
        for path in record.owns:
            _give(Path(path), record.uid)


def _give(path: Path, user: int) -> None:
    """Everything that exists and is not the user's yet, but no link's target."""
    _give_one(path, user)
    for parent, folders, files in os.walk(path):
        for name in (*folders, *files):
            _give_one(Path(parent, name), user)


def _give_one(path: Path, user: int) -> None:
    found = path.lstat()
    if (found.st_uid, found.st_gid) != (user, user):
        os.chown(path, user, user, follow_symlinks=False)
