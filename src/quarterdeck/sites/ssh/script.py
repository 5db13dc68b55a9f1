"""The script that is quarterdeck's part of a host, put together from its pieces."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_PIECES = Path(__file__).with_name("host")


@cache
def script() -> bytes:
    """The script. May block for a moment the first time."""
    return b"\n".join(piece.read_bytes() for piece in sorted(_PIECES.glob("*.sh")))


@cache
def script_digest() -> str:
    """By which a host's own is compared with it."""
    return hashlib.sha256(script()).hexdigest()
