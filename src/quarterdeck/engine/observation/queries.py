"""How an observer asks: what does not answer is not known, and what may be just starting is not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from quarterdeck.actions.addresses import apiserver_address
from quarterdeck.actions.plane import Plane
from quarterdeck.errors import Unavailable
from quarterdeck.etcd.faults import EtcdRefused, Reason
from quarterdeck.kube.port import Address

T = TypeVar("T")

#: Seconds for an answer from one that may be just starting, and then accepts what it does not answer.
SOON = 0.3


async def or_none(asked: Awaitable[T]) -> T | None:
    """The answer, or None when it is not known: the one place where not answering becomes not knowing. A member of etcd
    that refuses to tell us, as its authentication is on, does not answer either.
    """
    try:
        return await asked
    except Unavailable:
        return None
    except EtcdRefused as error:
        if error.reason is not Reason.DENIED:
            raise
        return None


async def all_or_none(calls: Iterable[Callable[[], Awaitable[T]]]) -> list[T | None]:
    """The answers to questions that are asked at once, each as ``or_none`` has it.

    Calls, and not what they return: whoever is cancelled before a question was asked leaves no coroutine behind that
    nobody awaits, of which Python would warn.
    """

    async def answered(call: Callable[[], Awaitable[T]]) -> T | None:
        return await or_none(call())

    return await asyncio.gather(*map(answered, calls))


# An apiserver to ask: any that is ready will do.

#: Seconds: who asks once is better served late than not, on a busy host.
_PATIENCE = 5.0


async def ready_apiserver(plane: Plane, doing: str) -> Address:
    """One that is ready. Raises Unavailable, with what was being done."""
    for record in plane.memory.replicas:
        address = apiserver_address(record)
        if (await plane.kube.readyz(address, founded=True, within=_PATIENCE)).ok:
            return address
    raise Unavailable(doing, "no apiserver is ready", f"see 'status {plane.name}'")
