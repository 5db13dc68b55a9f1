"""Sending one request to several members of a cluster: some may be down, frozen, or learners."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from quarterdeck.errors import Unavailable
from quarterdeck.etcd.faults import EtcdFault, EtcdUnavailable, Reason

Answer = TypeVar("Answer")
Ask = Callable[[str], Awaitable[Answer]]

#: The reasons that say least about the cluster, when there are others.
_DULL = frozenset({Reason.UNREACHABLE, Reason.DEADLINE, Reason.NOT_FOR_LEARNERS})


async def in_turn(urls: Sequence[str], ask: Ask[Answer], doing: str) -> Answer:
    """The first answer, one member after the other: for changes. Only Unavailable leads to the next one."""
    failures: dict[str, Unavailable] = {}
    for url in urls:
        try:
            return await ask(url)
        except Unavailable as error:
            failures[url] = error
    raise none_of(failures, doing)


async def hedged(urls: Sequence[str], ask: Ask[Answer], doing: str, *, stagger: float) -> Answer:
    """The first answer, for reads: the next member is queried too as soon as one failed, or was silent for ``stagger``
    seconds. Only Unavailable leads to the next one; any other error is the answer.
    """
    failures: dict[str, Unavailable] = {}
    waiting = list(urls)
    asked: dict[asyncio.Future[Answer], str] = {}
    try:
        while waiting or asked:
            if waiting:
                url = waiting.pop(0)
                asked[asyncio.ensure_future(ask(url))] = url
            done, _ = await asyncio.wait(
                asked, timeout=stagger if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                url = asked.pop(task)
                try:
                    return task.result()
                except Unavailable as error:
                    failures[url] = error
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    raise none_of(failures, doing)


def none_of(failures: dict[str, Unavailable], doing: str) -> EtcdUnavailable:
    """The error with each member's answer; its reason is the most specific one."""
    reasons = [error.reason for error in failures.values() if isinstance(error, EtcdFault)]
    specific = [reason for reason in reasons if reason not in _DULL]
    reason = (specific or reasons or [Reason.UNREACHABLE])[0]
    seen = ", ".join(f"{url}: {error.seen}" for url, error in failures.items()) or "there is no member to query"
    next_steps = [error.next_step for error in failures.values() if getattr(error, "reason", None) is reason]
    return EtcdUnavailable(doing, seen, next_steps[0] if next_steps else "", reason=reason)
