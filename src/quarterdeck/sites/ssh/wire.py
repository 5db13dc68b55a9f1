"""The protocol of a host's script (host/*.sh). Pure.

A request is a line and a body: ``ID EXPIRES PLANE TOKEN SIZE VERB ARGUMENTS...``, then SIZE bytes. EXPIRES is a time of
the host's own clock since its boot, in whole seconds: a later arrival is refused. PLANE and TOKEN are the fence ("-"
and 0: none). An answer is one line or several, ``ID CODE UPTIME TEXT``: CODE is "-" in all but the last, and there it
is 0, or names the error, and then the text is a sentence. A newline in the text is written as backslash n, a backslash
as two. Lines of several answers may be interleaved.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quarterdeck.errors import (
    Conflict,
    Corrupt,
    InvalidInput,
    LeaseLost,
    NotFound,
    PreconditionFailed,
    QuarterdeckError,
    Unavailable,
)
from quarterdeck.model.units import Fence
from quarterdeck.sites.vrrp import PIECE

#: Of this quarterdeck's script; it replaces an older one, and leaves a newer one alone.
PROTOCOL = 1
#: Seconds between two heartbeats to a host, which ends a session without any for 20 s.
HEARTBEAT = 5.0

_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_CODES: dict[int, type[QuarterdeckError]] = {
    10: Unavailable,  # it came too late
    11: LeaseLost,
    12: Conflict,
    13: NotFound,
    14: Unavailable,
    15: PreconditionFailed,
    16: InvalidInput,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLine:
    """A line of an answer. ``code`` is None where more of it follows. ``uptime``: seconds since the host's boot.
    ``text``: escaped (see ``text_of``).
    """

    id: int
    code: int | None
    uptime: float
    text: bytes


def request(number: int, expires: float, fence: Fence | None, words: tuple[str, ...], body: bytes) -> bytes:
    """A request in wire format. Raises InvalidInput for an invalid word."""
    for word in words:
        if not word or any(each.isspace() or not each.isprintable() for each in word):
            raise InvalidInput(
                f"sending the request {words[0]} to a host", f"{word!r} has a space in it, or is empty", "name another"
            )
    plane, token = (fence.plane, fence.token) if fence is not None else ("-", 0)
    head = f"{number} {int(expires)} {plane} {token} {len(body)} {' '.join(words)}\n"
    return head.encode() + body


def answer(line: bytes) -> ReplyLine:
    """A line of an answer. Raises ValueError for an invalid one."""
    number, code, uptime, text = line.rstrip(b"\n").split(b" ", 3)
    return ReplyLine(id=int(number), code=None if code == b"-" else int(code), uptime=float(uptime), text=text)


def text_of(written: bytes) -> bytes:
    """The text of an answer whose lines were joined."""
    return _ESCAPED.sub(lambda found: b"\n" if found[1] == b"n" else found[1], written)


def refusal(doing: str, code: int, output: str) -> QuarterdeckError:
    """A host's answer, as an error."""
    kind = _CODES.get(code, Unavailable)
    seen = output.strip() or f"its script ended with {code}"
    return kind(doing, seen.splitlines()[-1])


# Output of a host that cannot be parsed: the error shows it as the host printed it, bounded. Pure.

#: Characters of the output that are shown.
_SHOWN = 200


def not_parsed(doing: str, line: str, error: Exception, next_step: str = "") -> Corrupt:
    """The error for a line that a host printed. ``error``: why it cannot be parsed."""
    shown = f"{line[:_SHOWN]!r}{'...' if len(line) > _SHOWN else ''}"
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return Corrupt(doing, f"the host's output {shown} cannot be parsed ({why[:_SHOWN]})", next_step)


@contextmanager
def parsing(doing: str, output: bytes, next_step: str = "") -> Iterator[str]:
    """The text of an answer, for a block that parses it. Raises Corrupt where the block finds it invalid."""
    text = output.decode(errors="replace")
    try:
        yield text
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise not_parsed(doing, text.strip(), error, next_step) from error


# The script that is quarterdeck's part of a host, and the fault code that is there only during a fault.

_HERE = Path(__file__).parent
_PIECES = (*(_HERE / "host").glob("*.sh"), PIECE)
#: Where the script has the digest of the only fault code that it accepts.
_FAULTS_DIGEST = b"@FAULTS_DIGEST@"


@cache
def script() -> bytes:
    """The script, assembled from its pieces. May block for a moment the first time."""
    pieces = b"\n".join(piece.read_bytes() for piece in sorted(_PIECES, key=lambda each: each.name))
    return pieces.replace(_FAULTS_DIGEST, hashlib.sha256(faults()).hexdigest().encode())


@cache
def script_digest() -> str:
    """The digest that is compared with that of a host's script."""
    return hashlib.sha256(script()).hexdigest()


@cache
def faults() -> bytes:
    """The fault code of a host: sent with each request that needs it. May block for a moment the first time."""
    return (_HERE / "drill" / "faults.sh").read_bytes()
