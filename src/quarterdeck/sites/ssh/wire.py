"""What is said to a host's script (host/*.sh), and what it answers. Pure.

A request is a line and a body: ``ID EXPIRES PLANE TOKEN SIZE VERB ARGUMENTS...``, then SIZE bytes. EXPIRES is a time of
the host's own clock since its boot, in whole seconds: what comes later is refused. PLANE and TOKEN are the fence ("-"
and 0: none). An answer is one line or several, ``ID CODE UPTIME TEXT``: CODE is "-" in all but the last, and there it
is 0, or says what went wrong, and then the text is a sentence. A newline in the text is written as backslash n, a
backslash as two. Lines of several answers may come by turns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quarterdeck.errors import (
    Conflict,
    InvalidInput,
    LeaseLost,
    NotFound,
    PreconditionFailed,
    QuarterdeckError,
    Unavailable,
)
from quarterdeck.model.units import Fence

#: Of the script that this quarterdeck has; it replaces an older one, and leaves alone a newer one.
PROTOCOL = 1
#: Seconds between two words to a host, which ends a session from which it hears nothing for 20 s.
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
class Answer:
    """A line of an answer. ``code`` is None where more of it follows. ``uptime``: seconds since the host's boot.
    ``text``: as it is written (see ``text_of``).
    """

    id: int
    code: int | None
    uptime: float
    text: bytes


def request(number: int, expires: float, fence: Fence | None, words: tuple[str, ...], body: bytes) -> bytes:
    """A request as it is sent. Raises InvalidInput for a word that is none."""
    for word in words:
        if not word or any(each.isspace() or not each.isprintable() for each in word):
            raise InvalidInput(
                f"asking a host to {words[0]}", f"{word!r} has a space in it, or is empty", "name another"
            )
    plane, token = (fence.plane, fence.token) if fence is not None else ("-", 0)
    head = f"{number} {int(expires)} {plane} {token} {len(body)} {' '.join(words)}\n"
    return head.encode() + body


def answer(line: bytes) -> Answer:
    """A line of an answer. Raises ValueError for what is none."""
    number, code, uptime, text = line.rstrip(b"\n").split(b" ", 3)
    return Answer(id=int(number), code=None if code == b"-" else int(code), uptime=float(uptime), text=text)


def text_of(written: bytes) -> bytes:
    """The text of an answer whose lines were put together."""
    return _ESCAPED.sub(lambda found: b"\n" if found[1] == b"n" else found[1], written)


def refusal(doing: str, code: int, said: str) -> QuarterdeckError:
    """What a host answered, as an error."""
    kind = _CODES.get(code, Unavailable)
    seen = said.strip() or f"its script ended with {code}"
    return kind(doing, seen.splitlines()[-1])
