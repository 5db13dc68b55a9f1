"""What every DNS driver that makes records, and the fake, promise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.endpoint import FakeDns
from support.dns_lab import PRIMARIES, own_server, primary, require
from support.tiers import smoke

from quarterdeck.endpoint.port import Dns
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed
from quarterdeck.model.endpoints import DnsRecord, Ownership, RecordClaim

NAME = "demo.planes.test"
OURS, THEIRS = ("192.0.2.1", "192.0.2.2"), "198.51.100.7"
ALPHA = RecordClaim(owner="alpha/uid-1", token=7, addresses=frozenset(OURS))
BETA = RecordClaim(owner="alpha/uid-2", token=1, addresses=frozenset({THEIRS, *OURS}))


@pytest.fixture(params=[*smoke("fake", "coredns"), *PRIMARIES])
async def dns(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Dns]:
    if request.param == "fake":
        yield FakeDns()
    elif request.param == "coredns":
        async with own_server(tmp_path) as server:
            yield server
    else:
        require(request.param)
        async with primary(request.param, tmp_path) as server:
            yield server


async def test_a_record_that_was_set_is_answered_when_set_returns(dns: Dns) -> None:
    await dns.check(NAME)
    assert await dns.set(NAME, ("192.0.2.2", "192.0.2.1"), 5) is None
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.1", "192.0.2.2"), 5)


async def test_a_name_that_was_never_set_is_no_record_not_an_error(dns: Dns) -> None:
    await dns.set("other.planes.test", ("192.0.2.9",), 5)
    assert await dns.observe(NAME) is None


async def test_a_change_replaces_all_addresses_of_both_families(dns: Dns) -> None:
    await dns.set(NAME, ("192.0.2.1", "192.0.2.2", "2001:db8::1"), 5)
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.1", "192.0.2.2", "2001:db8::1"), 5)
    await dns.set(NAME, ("192.0.2.3",), 5)
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.3",), 5)
    await dns.set(NAME, ("2001:db8::2",), 5)
    assert await dns.observe(NAME) == DnsRecord(("2001:db8::2",), 5)


async def test_a_change_back_takes_effect_too(dns: Dns) -> None:
    for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1"):
        await dns.set(NAME, (address,), 5)
        assert await dns.observe(NAME) == DnsRecord((address,), 5)


async def test_a_new_time_to_live_alone_takes_effect(dns: Dns) -> None:
    await dns.set(NAME, ("192.0.2.1",), 300)
    await dns.set(NAME, ("192.0.2.1",), 7)
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.1",), 7)


async def test_each_name_has_a_time_to_live_of_its_own(dns: Dns) -> None:
    await dns.set(NAME, ("192.0.2.1",), 5)
    await dns.set("other.planes.test", ("192.0.2.2",), 600)
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.1",), 5)
    assert await dns.observe("other.planes.test") == DnsRecord(("192.0.2.2",), 600)


async def test_setting_the_same_again_is_fine(dns: Dns) -> None:
    for _ in range(2):
        assert await dns.set(NAME, ("192.0.2.1",), 5) is None
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.1",), 5)


async def test_names_set_at_the_same_time_do_not_meet(dns: Dns) -> None:
    names = {f"plane-{number}.planes.test": f"192.0.2.{number}" for number in range(1, 9)}
    await asyncio.gather(*(dns.set(name, (address,), 5) for name, address in names.items()))
    for name, address in names.items():
        assert await dns.observe(name) == DnsRecord((address,), 5)


async def test_a_removed_record_is_gone_when_remove_returns_and_may_be_removed_again(dns: Dns) -> None:
    await dns.set(NAME, ("192.0.2.1", "2001:db8::1"), 5)
    assert await dns.remove(NAME) is None
    assert await dns.observe(NAME) is None
    assert await dns.remove(NAME) is None
    await dns.set(NAME, ("192.0.2.4",), 5)
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.4",), 5)


async def test_case_and_the_last_dot_make_no_difference(dns: Dns) -> None:
    await dns.set("Demo.Planes.TEST.", ("192.0.2.1",), 5)
    assert await dns.observe(NAME) == DnsRecord(("192.0.2.1",), 5)


async def test_a_record_says_whose_it_is_and_by_which_driver_and_goes_with_that(dns: Dns) -> None:
    await dns.set(NAME, OURS[:1], 5, ALPHA)
    seen = await dns.look(NAME)
    assert (seen.record, seen.ownership) == (DnsRecord(OURS[:1], 5), Ownership("alpha/uid-1", 7))
    assert (seen.others, seen.torn) == ((), "")
    await dns.set(NAME, OURS[1:], 5, replace(ALPHA, token=9))
    assert (await dns.look(NAME)).ownership == Ownership("alpha/uid-1", 9)
    await dns.remove(NAME, replace(ALPHA, token=9))
    seen = await dns.look(NAME)
    assert (seen.record, seen.ownership) == (None, None)
    await dns.set(NAME, (THEIRS,), 5, BETA)
    assert (await dns.look(NAME)).ownership == Ownership("alpha/uid-2", 1)


async def test_a_record_that_leads_to_somebody_else_is_left_alone_unless_the_user_consents(dns: Dns) -> None:
    await dns.set(NAME, (THEIRS,), 5)
    with pytest.raises(PreconditionFailed, match=f"leads to {THEIRS}.*takeOver"):
        await dns.set(NAME, OURS[:1], 5, ALPHA)
    with pytest.raises(PreconditionFailed, match="takeOver"):
        await dns.remove(NAME, ALPHA)
    seen = await dns.look(NAME)
    assert (seen.record, seen.ownership) == (DnsRecord((THEIRS,), 5), None)
    await dns.set(NAME, OURS[:1], 5, replace(ALPHA, take_over=True))
    seen = await dns.look(NAME)
    assert (seen.record, seen.ownership) == (DnsRecord(OURS[:1], 5), ALPHA.ownership)


async def test_a_name_that_somebody_else_claims_is_left_alone_whatever_it_leads_to(dns: Dns) -> None:
    await dns.set(NAME, OURS[:1], 5, BETA)
    for claim in (ALPHA, None):
        with pytest.raises(PreconditionFailed, match="claimed by alpha/uid-2"):
            await dns.set(NAME, OURS[1:], 5, claim)
        with pytest.raises(PreconditionFailed, match="claimed by alpha/uid-2"):
            await dns.remove(NAME, claim)
    assert (await dns.look(NAME)).record == DnsRecord(OURS[:1], 5)


async def test_a_record_without_a_claim_is_adopted_by_whom_it_leads_to(dns: Dns) -> None:
    await dns.set(NAME, OURS[:1], 5)
    await dns.set(NAME, OURS[:1], 5, ALPHA)
    assert (await dns.look(NAME)).ownership == ALPHA.ownership


async def test_a_driver_that_was_overtaken_changes_nothing(dns: Dns) -> None:
    await dns.set(NAME, OURS[:1], 5, replace(ALPHA, token=8))
    with pytest.raises(Conflict, match="newer driver"):
        await dns.set(NAME, OURS[1:], 5, ALPHA)
    with pytest.raises(Conflict, match="newer driver"):
        await dns.remove(NAME, ALPHA)
    assert (await dns.look(NAME)).record == DnsRecord(OURS[:1], 5)


@pytest.mark.parametrize(
    ("name", "addresses", "ttl"),
    [
        ("demo..planes.test", ("192.0.2.1",), 5),
        ("x" * 64 + ".planes.test", ("192.0.2.1",), 5),
        ("", ("192.0.2.1",), 5),
        (NAME, (), 5),
        (NAME, ("192.0.2.300",), 5),
        (NAME, ("192.0.2.1",), -1),
        (NAME, ("192.0.2.1",), 2**31),
    ],
)
async def test_what_cannot_be_a_record_is_refused_before_anything_is_done(
    name: str, addresses: tuple[str, ...], ttl: int
) -> None:
    dns = FakeDns()
    with pytest.raises(InvalidInput):
        await dns.set(name, addresses, ttl)
    assert dns.records == {}
