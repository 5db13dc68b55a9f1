"""Waiting until DNS servers answer as they were told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.endpoints import Ownership, Record, Sighting

_PAUSE = 0.02  # seconds between two questions


async def until_answer(
    look: Callable[[], Awaitable[Sighting]],
    what: str,
    wanted: Record | None,
    owner: Ownership | None,
    *,
    patience: float,
    why: Callable[[], Awaitable[str]] | None = None,
) -> None:
    """Return when every server answers with ``wanted`` (None: no record), and the claim beside it is that of ``owner``.

    ``what`` is waited for, in words; ``why`` tells which of the servers does not run, and why ("": all run). Raises
    TimedOut with what was seen last after ``patience`` seconds.
    """
    seen = "no answer"
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    sighting = await look()
                except Unavailable as error:  # it may be just starting
                    seen = error.seen
                else:
                    record = sighting.record
                    if record == wanted and sighting.ownership == owner and not sighting.torn:
                        return
                    shown = "no record" if record is None else f"{' '.join(record.addresses)} (ttl {record.ttl} s)"
                    seen = sighting.torn if record == wanted and sighting.torn else shown
                await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        seen = (await why() if why is not None else "") or seen
        raise TimedOut(f"waiting for {what}", f"{seen} after {patience:g} s", "look at the server's log") from error
