"""The fences of a machine: which drivers it accepts. The machine's supervisor calls it, one call after another."""

from __future__ import annotations

import secrets
from pathlib import Path

from quarterdeck.model.units import Fence
from quarterdeck.sites.local.settings import require_entry_name

#: The fault of a call whose fence is older than one that the machine has accepted. Supervisor's own are below 100.
FENCED = 1_000


def on_the_wire(fence: Fence) -> str:
    """A fence in calls."""
    return f"{fence.plane} {fence.token}"


def off_the_wire(text: str) -> Fence:
    """The fence of a call. Raises ValueError."""
    plane, token = text.split(" ")
    return Fence(plane, int(token))


class Fences:
    """The highest token that a machine has accepted for each plane, in a file for each below ``folder``.

    They outlive the supervisor, but need not outlive the host: no driver on it does.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self, plane: str) -> int:
        """The highest token so far; 0 before the first."""
        try:
            return int((self._folder / plane).read_text())
        except FileNotFoundError:
            return 0

    def admit(self, fence: Fence) -> bool:
        """Whether a driver with this fence may still change something: none has come with a higher token.

        Raises OSError, ValueError for a file without a token, InvalidInput for an invalid plane name.
        """
        require_entry_name("fencing a machine", fence.plane)
        newest = self.newest(fence.plane)
        if fence.token > newest:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            aside = self._folder / f".{fence.plane}.{secrets.token_hex(6)}"
            aside.write_text(str(fence.token))
            aside.replace(self._folder / fence.plane)
        return fence.token >= newest
