"""How long ago a moment was, as kubectl prints it."""

from __future__ import annotations

import time
from datetime import datetime


def age(since: float) -> str:
    """How long ago a moment was (seconds since the epoch), as kubectl has it: 5d, 3h, 2m, 7s."""
    seconds = max(0, int(time.time() - since))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def since(moment: datetime | None) -> str | None:
    """The same of a moment that may not be known."""
    return age(moment.timestamp()) if moment is not None else None
