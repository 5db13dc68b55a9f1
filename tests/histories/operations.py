"""What clients did to registers, and what came of it: the history that is judged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum


class Op(StrEnum):
    """What a client asks for."""

    GET = "get"
    CREATE = "create"  # it must not be there
    PUT = "put"  # whatever it has; it must be there
    CAS = "cas"  # if it is as this client last saw it


class Outcome(StrEnum):
    """What is known to have come of it."""

    OK = "ok"
    REFUSED = "refused"  # it was looked at, and changed nothing
    UNKNOWN = "unknown"  # it may have been done, and may still be


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation. Times are nanoseconds of one clock; ``end`` is None for one that nobody knows to have ended.
    ``value`` is what it writes, ``expected`` what a cas wants to find, ``seen`` what a get found ("": no register).
    """

    client: int
    key: str
    op: Op
    call: int
    end: int | None
    outcome: Outcome
    value: str = ""
    expected: str = ""
    seen: str = ""

    def __post_init__(self) -> None:
        assert (self.end is None) == (self.outcome is Outcome.UNKNOWN), self
        assert (self.op, self.outcome) not in ((Op.GET, Outcome.UNKNOWN), (Op.GET, Outcome.REFUSED)), self


def lines(history: Iterable[Operation]) -> bytes:
    """A history as its judge reads it."""
    found = []
    for each in history:
        fields = asdict(each)
        found.append(json.dumps({"return": fields.pop("end"), **fields}))
    return "".join(f"{each}\n" for each in found).encode()
