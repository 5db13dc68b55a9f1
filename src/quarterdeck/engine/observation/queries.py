"""Queries of observers: a missing answer means unknown, and starting programs are not waited for."""

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

#: Seconds for an answer of a program that may be just starting, and accepts connections without answering.
SOON = 0.3


async def or_none(asked: Awaitable[T]) -> T | None:
    """The answer, or None when it is unknown: the only place that turns a missing answer into an unknown fact. A member
    of etcd that refuses because of its authentication counts as not answering.
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
    """The answers to concurrent calls, each as by ``or_none``.

    It takes functions, not coroutines: after an early cancellation no coroutine remains that was never awaited, which
    would cause a warning.
    """

    async def answered(call: Callable[[], Awaitable[T]]) -> T | None:
        return await or_none(call())

    return await asyncio.gather(*map(answered, calls))


# Any ready apiserver.

#: Seconds: on a busy host a late answer is better than none.
_PATIENCE = 5.0


async def ready_apiserver(plane: Plane, doing: str) -> Address:
    """A ready apiserver. Raises Unavailable, with what was being done."""
    for record in plane.memory.replicas:
        address = apiserver_address(record)
        if (await plane.kube.readyz(address, founded=True, within=_PATIENCE)).ok:
            return address
    raise Unavailable(doing, "no apiserver is ready", f"see 'status {plane.name}'")
