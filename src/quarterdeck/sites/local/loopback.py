"""The isolation without requirements: each machine is an address 127.H.S.M of this host.

H is the home's own, S the site's number and M the machine's, so that homes on one host never collide. All of
127.0.0.0/8 may be bound without any preparation, but every program must bind its own address: one that listens on
0.0.0.0 takes the port from all.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from quarterdeck.errors import Conflict, Corrupt, PreconditionFailed, Unavailable
from quarterdeck.files import write_atomic
from quarterdeck.sites.isolation import MachinePlace

HIGHEST = 254


@dataclass(frozen=True, slots=True)
class Loopback:
    """Addresses 127.``home_number``.S.M. No preparation is needed, and no machine can be cut off."""

    home_number: int
    name: str = "loopback"
    cannot_cut: str = "its machines share this host's own network; sites of isolation netns can be cut"

    def address(self, place: MachinePlace) -> str:
        """The address of a machine."""
        return f"127.{self.home_number}.{place.site_number}.{place.machine_number}"

    async def more_addresses(self, place: MachinePlace) -> tuple[str, ...]:
        """None: Kubernetes keeps no Endpoints of loopback addresses, so ports need not be the same."""
        return ()

    def led_addresses(self, site_number: int) -> tuple[str, ...]:
        """None: an address of the loopback network is everywhere."""
        return ()

    def floating_address(self, place: MachinePlace) -> str | None:
        """None: the addresses are the host's, which answers at all of them."""
        return None

    async def prepare(self, place: MachinePlace) -> None:
        """Nothing is needed."""

    async def plug(self, place: MachinePlace) -> None:
        """Nothing is needed."""

    def launch_prefix(self, place: MachinePlace) -> tuple[str, ...]:
        """Nothing is needed."""
        return ()

    async def unplug(self, place: MachinePlace) -> None:
        """Cannot be done: the kernel answers for dead programs with a reset."""

    async def deafen(self, place: MachinePlace) -> None:
        """Cannot be done."""

    async def release(self, place: MachinePlace) -> None:
        """Nothing is kept."""


def default_registry() -> Path:
    """The registry of home numbers of this user on this host; not in a home, and the same in every session."""
    return Path(f"/tmp/quarterdeck-{os.getuid()}/loopback")  # noqa: S108 - created 0700, and its owner is checked


def open_loopback(home: Path, registry: Path | None = None) -> Loopback:
    """The isolation of ``home``, with its number, which is claimed now if it has none. May block for a moment.

    A number is claimed when a file of its name in ``registry`` names the home and the home has the same number: claims
    of deleted homes lapse, and those of homes without a site when numbers run out. Raises Conflict when another home
    has taken the number of this one (for example, a copy of it), PreconditionFailed when all are taken.
    """
    home = home.resolve()
    registry = registry or default_registry()
    own = home / "sites" / "loopback"
    own.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _make_private(registry)
    with FileLock(registry / ".lock", timeout=10):
        number = _read(own)
        if number is None or _owner(registry, number) != home:
            number = _choose(home, number, registry)
            write_atomic(registry / str(number), os.fsencode(home), mode=0o600)
            write_atomic(own, f"{number}\n".encode())
    return Loopback(number)


def _choose(home: Path, former: int | None, registry: Path) -> int:
    """The former number of the home, or a free one; where the search starts depends on user and home, so that users
    rarely collide.
    """
    owners = {number: owner for number in range(1, HIGHEST + 1) if (owner := _owner(registry, number))}
    if former is not None and former not in owners:
        return former
    if former is not None and _has_sites(home):
        raise Conflict(
            f"opening {home}",
            f"its addresses 127.{former}.x.x are in use by {owners[former]}",
            "a copied home cannot run next to the original: delete the sites of one of them",
        )
    start = int.from_bytes(hashlib.sha256(f"{os.getuid()} {home}".encode()).digest()[:4], "big")
    order = [(start + step) % HIGHEST + 1 for step in range(HIGHEST)]
    for number in order:
        if number not in owners:
            return number
    for number in order:
        if not _has_sites(owners[number]):
            return number
    raise PreconditionFailed(f"opening {home}", f"{HIGHEST} homes have sites on this host", "delete some of them")


def _has_sites(home: Path) -> bool:
    return any((home / "sites").glob("*/number"))


def _owner(registry: Path, number: int) -> Path | None:
    """The home that holds a number, if it confirms that itself."""
    try:
        home = Path(os.fsdecode((registry / str(number)).read_bytes()))
    except FileNotFoundError:
        return None
    try:
        return home if _read(home / "sites" / "loopback") == number else None
    except Corrupt:
        return home  # that home's own problem; until it is solved the number is not ours


def _read(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not text.isdigit() or not 1 <= int(text) <= HIGHEST:
        raise Corrupt(f"reading {path}", f"{text[:40]!r} is not a number from 1 to {HIGHEST}", "delete the file")
    return int(text)


def _make_private(folder: Path) -> None:
    """The folder, 0700 and ours: others can write to /tmp."""
    for each in (folder.parent, folder):
        each.mkdir(exist_ok=True, mode=0o700)
        seen = each.lstat()
        if seen.st_uid != os.getuid() or seen.st_mode & 0o170077 != 0o040000:
            raise Unavailable(f"using {each}", "it is not a private folder of yours", "remove it, or make it 0700")
