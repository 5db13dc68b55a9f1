"""The addresses of names, as DNS servers tell them, kept for their time to live and no longer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import dns.exception
import dns.rcode
from dns.rdatatype import RdataType

from quarterdeck.dns.questions import Reply
from quarterdeck.errors import Unavailable

Server = tuple[str, int]


class Ask(Protocol):
    """Asks a server (IP address and port)."""

    async def __call__(self, server: Server, name: str, kind: RdataType, deadline: float) -> Reply:
        """What it answers. Raises TimeoutError after ``deadline`` seconds, OSError, DNSException."""
        ...


@dataclass(frozen=True, slots=True)
class _Kept:
    addresses: tuple[str, ...]
    until: float


class Addresses:
    """Asks ``servers`` for records of ``kinds``, those of the first kind of which there are any. Where one gives no
    answer within ``next_after`` seconds the next is asked, and that one first from then on; the last one has
    ``deadline`` seconds. An answer that says that there is none is not kept. ``now``: seconds.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        *,
        ask: Ask,
        now: Callable[[], float],
        kinds: Sequence[RdataType],
        next_after: float,
        deadline: float,
    ) -> None:
        self._servers = deque(servers)
        self._ask = ask
        self._now = now
        self._kinds = kinds
        self._next_after = next_after
        self._deadline = deadline
        self._kept: dict[str, _Kept] = {}

    async def addresses(self, name: str) -> tuple[str, ...]:
        """The addresses of a name now, at least one. Raises Unavailable."""
        kept = self._kept.get(name)
        if kept is not None and self._now() < kept.until:
            return kept.addresses
        for kind in self._kinds:
            asked = self._now()
            found = _of_kind(await self._answer(name, kind), kind)
            if found is not None:
                addresses, ttl = found
                self._keep(name, _Kept(addresses, asked + ttl))
                return addresses
        raise Unavailable(f"resolving {name}", "the name has no address")

    def _keep(self, name: str, found: _Kept) -> None:
        now = self._now()
        self._kept = {each: kept for each, kept in self._kept.items() if now < kept.until}
        self._kept[name] = found

    async def _answer(self, name: str, kind: RdataType) -> Reply:
        for _ in range(len(self._servers) - 1):
            try:
                return await self._answer_of_first(name, kind, self._next_after)
            except Unavailable:
                self._servers.rotate(-1)
        return await self._answer_of_first(name, kind, self._deadline)

    async def _answer_of_first(self, name: str, kind: RdataType, deadline: float) -> Reply:
        doing = f"resolving {name}"
        try:
            reply = await self._ask(self._servers[0], name, kind, deadline)
        except TimeoutError as error:
            raise Unavailable(doing, f"no answer within {deadline:g} s") from error
        except (dns.exception.DNSException, OSError) as error:
            raise Unavailable(doing, str(error) or type(error).__name__) from error
        if reply.rcode != dns.rcode.NOERROR:
            raise Unavailable(doing, dns.rcode.to_text(reply.rcode))
        return reply


def _of_kind(reply: Reply, kind: RdataType) -> tuple[tuple[str, ...], int] | None:
    """The addresses of an answer and their time to live, in seconds; None if it has none of that kind."""
    rrset = next((each for each in reply.answer if each.rdtype == kind), None)
    return (tuple(each.to_text() for each in rrset), rrset.ttl) if rrset is not None else None
