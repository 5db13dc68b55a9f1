"""How an observer asks: what does not answer is not known, and what may be just starting is not waited for."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from quarterdeck.errors import Unavailable

T = TypeVar("T")

#: Seconds for an answer from one that may be just starting, and then accepts what it does not answer.
SOON = 0.3


async def or_none(asked: Awaitable[T]) -> T | None:
    """The answer, or None when it is not known: the one place where not answering becomes not knowing."""
    try:
        return await asked
    except Unavailable:
        return None
