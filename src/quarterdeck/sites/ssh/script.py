"""The script that is quarterdeck's part of a host, and what makes faults there for as long as there is one."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from quarterdeck.sites.vrrp import PIECE

_HERE = Path(__file__).parent
_PIECES = (*(_HERE / "host").glob("*.sh"), PIECE)
#: Where the script has the digest of the only faults that it takes.
_FAULTS_DIGEST = b"@FAULTS_DIGEST@"


@cache
def script() -> bytes:
    """The script, put together from its pieces. May block for a moment the first time."""
    pieces = b"\n".join(piece.read_bytes() for piece in sorted(_PIECES, key=lambda each: each.name))
    return pieces.replace(_FAULTS_DIGEST, hashlib.sha256(faults()).hexdigest().encode())


@cache
def script_digest() -> str:
    """By which a host's own is compared with it."""
    return hashlib.sha256(script()).hexdigest()


@cache
def faults() -> bytes:
    """What makes faults on a host: sent with each request that needs it. May block for a moment the first time."""
    return (_HERE / "drill" / "faults.sh").read_bytes()
