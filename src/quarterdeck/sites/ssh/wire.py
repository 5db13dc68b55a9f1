"""What is said to a host's script (host/*.sh), and what it answers. Pure.

A request is a line and a body: ``ID EXPIRES PLANE TOKEN SIZE VERB ARGUMENTS...``, then SIZE bytes. EXPIRES is a time of
the host's own clock since its boot, in whole seconds: what comes later is refused. PLANE and TOKEN are the fence ("-"
and 0: none). An answer is a line and a body: ``ID CODE SIZE UPTIME``, then SIZE bytes; CODE is 0, or says what went
wrong, and then the body is a sentence; "-" is for a piece of an answer that goes on. Requests are answered in any
order.
"""

from __future__ import annotations

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
    """The head of an answer: ``size`` bytes follow. ``code`` is None for a piece of one that goes on. ``uptime``:
    seconds since the host's boot.
    """

    id: int
    code: int | None
    size: int
    uptime: float


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
    """The head of an answer. Raises ValueError for what is none."""
    number, code, size, uptime = line.split()
    return Answer(id=int(number), code=None if code == b"-" else int(code), size=int(size), uptime=float(uptime))


def refusal(doing: str, code: int, said: str) -> QuarterdeckError:
    """What a host answered, as an error."""
    kind = _CODES.get(code, Unavailable)
    seen = said.strip() or f"its script ended with {code}"
    return kind(doing, seen.splitlines()[-1])
