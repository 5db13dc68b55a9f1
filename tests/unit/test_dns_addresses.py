"""Addresses of names are kept for their time to live, and asked of the servers that answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import dns.rcode
import dns.rrset
import pytest
from dns.rdatatype import RdataType

from quarterdeck.dns import Addresses, Reply
from quarterdeck.errors import Unavailable

ONE, TWO = ("192.0.2.1", 53), ("192.0.2.2", 53)
NAME = "api.example"


@dataclass
class Servers:
    """``known``: the address by kind, of each server that answers. ``now``: seconds."""

    known: dict[tuple[str, int], Mapping[RdataType, str]]
    ttl: int = 5
    now: float = 100.0
    asked: list[tuple[tuple[str, int], RdataType, float]] = field(default_factory=list)

    async def ask(self, server: tuple[str, int], name: str, kind: RdataType, deadline: float) -> Reply:
        self.asked.append((server, kind, deadline))
        if server not in self.known:
            raise TimeoutError
        found = self.known[server]
        answer = (dns.rrset.from_text(name, self.ttl, "IN", kind.name, found[kind]),) if kind in found else ()
        return Reply(rcode=dns.rcode.NOERROR, authoritative=True, truncated=False, asked=(), answer=answer)

    def addresses(self) -> Addresses:
        return Addresses(
            (ONE, TWO),
            ask=self.ask,
            now=lambda: self.now,
            kinds=(RdataType.A, RdataType.AAAA),
            next_after=0.5,
            deadline=2.0,
        )


async def test_an_answer_is_kept_for_its_time_to_live_from_when_it_was_asked_for() -> None:
    servers = Servers({ONE: {RdataType.A: "198.51.100.1"}})
    names = servers.addresses()
    for servers.now in (100.0, 104.9):
        assert await names.addresses(NAME) == ("198.51.100.1",)
    assert len(servers.asked) == 1
    servers.now = 105.0
    assert await names.addresses(NAME) == ("198.51.100.1",)
    assert len(servers.asked) == 2


async def test_a_server_without_an_answer_is_passed_over_and_asked_last_from_then_on() -> None:
    servers = Servers({TWO: {RdataType.A: "198.51.100.1"}}, ttl=0)
    names = servers.addresses()
    assert await names.addresses(NAME) == ("198.51.100.1",)
    assert servers.asked == [(ONE, RdataType.A, 0.5), (TWO, RdataType.A, 2.0)]
    servers.asked.clear()
    assert await names.addresses(NAME) == ("198.51.100.1",)
    assert servers.asked == [(TWO, RdataType.A, 0.5)]


async def test_records_of_the_second_kind_count_where_there_is_none_of_the_first() -> None:
    servers = Servers({ONE: {RdataType.AAAA: "2001:db8::1"}})
    assert await servers.addresses().addresses(NAME) == ("2001:db8::1",)


async def test_that_there_is_none_is_not_kept() -> None:
    servers = Servers({ONE: {}})
    names = servers.addresses()
    with pytest.raises(Unavailable, match=r"resolving api\.example: the name has no address"):
        await names.addresses(NAME)
    servers.known[ONE] = {RdataType.A: "198.51.100.1"}
    assert await names.addresses(NAME) == ("198.51.100.1",)


async def test_where_no_server_answers_that_is_said() -> None:
    with pytest.raises(Unavailable, match="no answer within 2 s"):
        await Servers({}).addresses().addresses(NAME)
