"""Output of a host that cannot be parsed: the error shows it as the host printed it, bounded. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from quarterdeck.errors import Corrupt

#: Characters of the output which are shown.
_SHOWN = 200


def not_parsed(doing: str, line: str, error: Exception, next_step: str = "") -> Corrupt:
    """The error for a line that a host printed. ``error``: why it cannot be parsed."""
    shown = f"{line[:_SHOWN]!r}{'...' if len(line) > _SHOWN else ''}"
    why = f"there is no {error}" if isinstance(error, KeyError) else str(error)
    return Corrupt(doing, f"the host said {shown}, which cannot be parsed ({why[:_SHOWN]})", next_step)


@contextmanager
def parsing(doing: str, said: bytes, next_step: str = "") -> Iterator[str]:
    """The text of an answer, for a block that parses it. Raises Corrupt where the block finds it invalid."""
    text = said.decode(errors="replace")
    try:
        yield text
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
        raise not_parsed(doing, text.strip(), error, next_step) from error
