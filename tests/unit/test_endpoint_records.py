"""Names, records, and the drivers that have no server."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden import Golden

from quarterdeck.endpoint.dns.records import DnsServer, absolute, record_of
from quarterdeck.endpoint.dns.unmanaged import FixedAddress, system_servers
from quarterdeck.errors import InvalidInput, PreconditionFailed
from quarterdeck.model.endpoints import DnsRecord, PersonMust


@given(st.lists(st.ip_addresses().map(str), min_size=1, max_size=6), st.randoms())
def test_a_record_is_the_same_whatever_the_order_and_spelling_of_its_addresses(
    addresses: list[str], random: Random
) -> None:
    other = [ipaddress.ip_address(each).exploded for each in addresses] + addresses[:1]
    random.shuffle(other)
    assert record_of(tuple(addresses), 5) == record_of(tuple(other), 5)


@pytest.mark.parametrize("name", ["", ".", "a..b", "x" * 64 + ".test", ".".join(["a" * 60] * 5)])
def test_what_is_no_name_is_refused(name: str, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        absolute(name)


def test_names_are_compared_in_lower_case_with_the_last_dot() -> None:
    assert absolute("API.Example.org") == absolute("api.example.org.") == "api.example.org."


async def test_a_fixed_address_leads_to_itself_and_nowhere_else(golden: Golden) -> None:
    fixed = FixedAddress("192.0.2.1")
    assert await fixed.set("192.0.2.1", ("192.0.2.1",), 5) is None
    assert await fixed.observe("192.0.2.1") == DnsRecord(("192.0.2.1",), 0)
    with golden.raises(PreconditionFailed):
        await fixed.set("192.0.2.1", ("192.0.2.2",), 5)
    assert await fixed.remove("192.0.2.1") is None


async def test_a_fixed_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput):
        await FixedAddress("example.org").check("example.org")


def test_the_servers_of_this_machine_are_read_from_its_resolver(tmp_path: Path) -> None:
    path = tmp_path / "resolv.conf"
    path.write_text("search example.org\nnameserver 192.0.2.53\nnameserver 2001:db8::53\n")
    assert system_servers(path) == (DnsServer("192.0.2.53"), DnsServer("2001:db8::53"))


@pytest.mark.parametrize("content", [None, "", "search example.org\n"])
def test_a_machine_without_servers_is_a_clear_error(tmp_path: Path, content: str | None, golden: Golden) -> None:
    path = tmp_path / "resolv.conf"
    if content is not None:
        path.write_text(content)
    with golden.raises(PreconditionFailed):
        system_servers(path)


def test_what_a_person_must_do_is_the_same_wish_whatever_resolvers_say_meanwhile(golden: Golden) -> None:
    wanted = DnsRecord(("192.0.2.1",), 5)
    seen = [PersonMust(name="demo.test.", wanted=wanted, seen=each) for each in (None, DnsRecord(("192.0.2.9",), 3))]
    golden(sorted({must.wish for must in seen}))
    golden(str(seen[1]))


def test_what_a_person_must_do_can_be_pasted_into_a_zone_file(golden: Golden) -> None:
    must = PersonMust(name="demo.test.", wanted=DnsRecord(("192.0.2.1", "2001:db8::1"), 5), seen=None)
    golden(must.lines)
    golden(str(must))
