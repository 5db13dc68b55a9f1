"""Waiting until a DNS server answers as it was told to."""

from __future__ import annotations

import asyncio

from quarterdeck.endpoint.records import DnsServer, ask
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.model.endpoints import Record

_PAUSE = 0.02  # seconds between two questions


async def until_answer(server: DnsServer, name: str, wanted: Record | None, *, patience: float) -> None:
    """Return when ``server`` answers with ``wanted`` (None: no record) for ``name``.

    Raises TimedOut with what was seen last after ``patience`` seconds.
    """
    seen = "no answer"
    try:
        async with asyncio.timeout(patience):
            while True:
                try:
                    record = await ask(server, name)
                except Unavailable as error:  # it may be just starting
                    seen = error.seen
                else:
                    if record == wanted:
                        return
                    seen = "no record" if record is None else f"{' '.join(record.addresses)} (ttl {record.ttl} s)"
                await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        raise TimedOut(
            f"waiting for DNS server {server} to answer for {name}",
            f"{seen} after {patience:g} s",
            "look at the server's log",
        ) from error
