"""What single DNS drivers promise beyond the contract, against real servers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.dns_lab import PRIMARIES, ZONE, found, own_server, primary, require, until_answers
from support.endpoint_lab import EDGE, crash, free_port, loopback

from quarterdeck.endpoint.dns.coredns import CoreDns
from quarterdeck.endpoint.dns.records import DnsServer, ask, name_servers
from quarterdeck.endpoint.dns.rfc2136 import Rfc2136Dns, TsigKey
from quarterdeck.endpoint.dns.unmanaged import UnmanagedDns
from quarterdeck.errors import Conflict, InvalidInput, PreconditionFailed, TimedOut, Unavailable
from quarterdeck.model.endpoints import DnsRecord, PersonMust, RecordClaim
from quarterdeck.sites.port import Switches

NAME = "demo.planes.test"
OTHER_SECRET = base64.b64encode(b"x" * 32).decode()
KEY = TsigKey(name="quarterdeck", secret=OTHER_SECRET)


@pytest.fixture(params=PRIMARIES)
async def updates(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Rfc2136Dns]:
    require(request.param)
    async with primary(request.param, tmp_path) as server:
        yield server


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[CoreDns]:
    async with own_server(tmp_path) as server:
        yield server


def nobody() -> DnsServer:
    ip = loopback()
    return DnsServer(ip, free_port(ip))


async def refused(dns: Rfc2136Dns, match: str) -> None:
    """Both the check and the change say no, and nothing was changed."""
    with pytest.raises(PreconditionFailed, match=match):
        await dns.check(NAME)
    with pytest.raises(PreconditionFailed, match=match):
        await dns.set(NAME, ("192.0.2.1",), 5)
    assert await dns.observe(NAME) is None


async def test_a_wrong_secret_is_refused_and_named(updates: Rfc2136Dns) -> None:
    await refused(replace(updates, key=replace(updates.key, secret=OTHER_SECRET)), "TSIG")


async def test_an_unknown_key_is_refused_and_named(updates: Rfc2136Dns) -> None:
    await refused(replace(updates, key=replace(updates.key, name="stranger")), "TSIG|know the key")


async def test_a_key_that_may_not_update_is_refused(updates: Rfc2136Dns) -> None:
    reader = replace(updates, key=replace(updates.key, name="reader"))
    with pytest.raises(PreconditionFailed, match=r"key .* update"):
        await reader.set(NAME, ("192.0.2.1",), 5)
    assert await updates.observe(NAME) is None


async def test_a_zone_that_the_server_does_not_hold_is_refused(updates: Rfc2136Dns) -> None:
    stranger = replace(updates, zone="example.org.")
    with pytest.raises(PreconditionFailed, match="primary"):
        await stranger.check("demo.example.org")


async def test_a_change_made_by_somebody_else_meanwhile_is_never_overwritten(updates: Rfc2136Dns) -> None:
    await updates.set(NAME, ("192.0.2.1",), 5)
    before = DnsRecord(("192.0.2.1",), 5)
    late = updates.change(f"{NAME}.", before, DnsRecord(("192.0.2.3",), 5))
    await updates.set(NAME, ("192.0.2.2",), 5)
    with pytest.raises(Conflict, match="was changed in between"):
        await updates.send(late, NAME)
    assert await updates.observe(NAME) == DnsRecord(("192.0.2.2",), 5)


async def test_a_late_change_of_an_older_driver_is_refused_though_the_record_is_still_as_it_saw_it(
    updates: Rfc2136Dns,
) -> None:
    old, new = (
        RecordClaim(owner="alpha/1", token=each, addresses=frozenset({"192.0.2.1", "192.0.2.2"})) for each in (5, 6)
    )
    await updates.set(NAME, ("192.0.2.1",), 5, old)
    record = DnsRecord(("192.0.2.1",), 5)
    late = updates.change(f"{NAME}.", record, DnsRecord(("192.0.2.2",), 5), old.ownership, old.ownership)
    await updates.set(NAME, ("192.0.2.1",), 5, new)
    with pytest.raises(Conflict, match="was changed in between"):
        await updates.send(late, NAME)
    seen = await updates.look(NAME)
    assert (seen.record, seen.ownership) == (record, new.ownership)


async def test_a_change_counts_when_all_authoritative_servers_answer_so(tmp_path: Path) -> None:
    program = next((each for each in PRIMARIES if found(each)), PRIMARIES[0])
    require(program)
    folders = (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
    async with primary(program, folders[0]) as first, primary(program, folders[1]) as second:
        both = replace(first, others=(second.server,), patience=1.0)
        for server in (first, second):
            await server.set(NAME, ("192.0.2.1",), 5)
        await both.check(NAME)
        with pytest.raises(TimedOut, match=f"DNS server {second.server} has another answer .192.0.2.1"):
            await both.set(NAME, ("192.0.2.2",), 5)
        torn = await both.look(NAME)
        assert (torn.record, torn.others) == (DnsRecord(("192.0.2.2",), 5), (DnsRecord(("192.0.2.1",), 5),))
        with pytest.raises(PreconditionFailed, match="secondaries"):
            await both.check(NAME)
        waiting = asyncio.create_task(replace(both, patience=20.0).set(NAME, ("192.0.2.2",), 5))
        await second.set(NAME, ("192.0.2.2",), 5)
        await waiting
        seen = await both.look(NAME)
        assert (seen.torn, seen.servers) == ("", 2)
        silent = await replace(both, others=(nobody(),)).look(NAME)
        assert silent.record == DnsRecord(("192.0.2.2",), 5)
        assert "gives no answer" in silent.torn
        assert silent.servers == 1, "who gives no answer leads nobody"


async def test_the_zone_names_its_servers(updates: Rfc2136Dns) -> None:
    assert await name_servers(updates.server, ZONE) == (DnsServer("192.0.2.53", 53),)


async def test_an_alias_at_the_name_is_a_clear_error(updates: Rfc2136Dns) -> None:
    with pytest.raises(PreconditionFailed, match="alias"):
        await updates.check("alias.planes.test")
    with pytest.raises(PreconditionFailed, match="alias"):
        await updates.set("alias.planes.test", ("192.0.2.1",), 5)


async def test_a_secret_that_cannot_be_one_is_bad_input_and_never_shown() -> None:
    key = replace(KEY, secret="not base64!")
    assert "not base64!" not in repr(key)
    with pytest.raises(InvalidInput, match="TSIG key"):
        await Rfc2136Dns(server=nobody(), zone=ZONE, key=key).check(NAME)


async def test_a_name_outside_the_zone_is_bad_input(own: CoreDns) -> None:
    elsewhere = Rfc2136Dns(server=nobody(), zone=ZONE, key=KEY)
    for dns in (own, elsewhere):
        with pytest.raises(InvalidInput, match=r"zone|below"):
            await dns.check("demo.example.org")
        with pytest.raises(InvalidInput, match=r"zone|below"):
            await dns.set("demo.notplanes.test", ("192.0.2.1",), 5)


async def test_a_server_that_does_not_answer_is_unknown_not_no_record() -> None:
    with pytest.raises(Unavailable):
        await ask(nobody(), NAME, timeout=0.2)


async def test_the_own_server_knows_its_zone_and_no_other(own: CoreDns) -> None:
    await own.set(NAME, ("192.0.2.1",), 5)
    assert await ask(own.servers[0], "never.planes.test") is None
    assert await ask(own.servers[0], f"below.{NAME}") is None
    with pytest.raises(Unavailable, match="REFUSED"):
        await ask(own.servers[0], "demo.example.org")


async def test_the_own_server_knows_its_names_after_a_crash(own: CoreDns) -> None:
    await own.set(NAME, ("192.0.2.1",), 5)
    await crash(own.site, "dns")
    await own.set("other.planes.test", ("192.0.2.2",), 5)
    assert await own.observe(NAME) == DnsRecord(("192.0.2.1",), 5)


async def test_one_of_two_own_servers_may_be_lost_and_is_told_what_it_missed(tmp_path: Path) -> None:
    first, second = "east-a1", EDGE
    async with own_server(tmp_path, machines=(first, second)) as dns:
        assert isinstance(dns.site, Switches)
        old, new = (
            RecordClaim(owner="alpha/1", token=each, addresses=frozenset({"192.0.2.1", "192.0.2.2"})) for each in (5, 6)
        )
        await dns.set(NAME, ("192.0.2.1",), 5, old)
        assert [await ask(each, NAME) for each in dns.servers] == [DnsRecord(("192.0.2.1",), 5)] * 2
        await dns.site.kill_machine(first)
        await dns.set(NAME, ("192.0.2.2",), 5, new)
        lost = await dns.look(NAME)
        assert (lost.record, lost.uneven, lost.servers) == (DnsRecord(("192.0.2.2",), 5), False, 1)
        with pytest.raises(Unavailable, match=first):
            await dns.remove(NAME, new)
        assert await dns.observe(NAME) is not None, "a server that comes back would know it for ever"
        await dns.site.boot_machine(first)
        await until_answers(dns.servers[0])
        back = await dns.look(NAME)
        assert back.uneven
        assert back.record == DnsRecord(("192.0.2.1",), 5), "what it knew last"
        await dns.set(NAME, ("192.0.2.2",), 5, new)
        assert (await dns.look(NAME)).torn == ""
        await dns.remove(NAME, new)
        assert [await ask(each, NAME) for each in dns.servers] == [None, None]


async def test_a_server_that_joins_answers_as_the_others_from_its_first_answer_on(tmp_path: Path) -> None:
    first, second = "east-a1", EDGE
    async with own_server(tmp_path, machines=(first, second)) as both:
        alone = replace(both, hosts={first: both.hosts[first]})
        claim = RecordClaim(owner="alpha/1", token=5, addresses=frozenset({"192.0.2.1", "192.0.2.3"}))
        await alone.set(NAME, ("192.0.2.1",), 5, claim)
        await alone.set("unclaimed.planes.test", ("192.0.2.2", "2001:db8::2"), 7)
        missed: list[DnsRecord | None] = []

        async def asked() -> None:
            while True:
                try:
                    missed.append(await ask(both.servers[1], NAME, timeout=0.2))
                except Unavailable:
                    await asyncio.sleep(0.005)

        asking = asyncio.create_task(asked())
        names = (NAME, "unclaimed.planes.test", "of-no-server.planes.test")
        await both.join((second,), names, (nobody(), *alone.servers))
        asking.cancel()
        assert set(missed) <= {DnsRecord(("192.0.2.1",), 5)}
        for name in names:
            seen, before = await both.look(name), await alone.look(name)
            assert (seen.torn, seen.uneven) == ("", False)
            assert (seen.record, seen.ownership) == (before.record, before.ownership)
        assert (await both.look(NAME)).ownership == claim.ownership
        await both.set(NAME, ("192.0.2.3",), 5, replace(claim, token=6))
        assert [await ask(each, NAME) for each in both.servers] == [DnsRecord(("192.0.2.3",), 5)] * 2


async def test_a_server_joins_though_no_other_answers(tmp_path: Path) -> None:
    async with own_server(tmp_path) as own:
        await own.join((EDGE,), (NAME,), (nobody(),))
        await own.set(NAME, ("192.0.2.1",), 5)
        assert await own.observe(NAME) == DnsRecord(("192.0.2.1",), 5)


async def test_a_record_that_does_not_show_is_a_clear_error(own: CoreDns) -> None:
    hosts = {machine: replace(each, reload=3600.0) for machine, each in own.hosts.items()}
    slow = replace(own, hosts=hosts)
    await slow.set("first.planes.test", ("192.0.2.1",), 5)
    with pytest.raises(TimedOut, match="no record after 1 s"):
        await replace(slow, patience=1.0).set(NAME, ("192.0.2.1",), 5)


async def test_unmanaged_asks_for_the_records_until_they_resolve(own: CoreDns) -> None:
    await own.start()
    person = UnmanagedDns(servers=(nobody(), own.servers[0]), timeout=3.0)
    waiting = await person.set(NAME, ("192.0.2.1", "2001:db8::1"), 5)
    assert waiting is not None
    assert waiting.lines == (f"{NAME}. 5 IN A 192.0.2.1", f"{NAME}. 5 IN AAAA 2001:db8::1")
    assert "now resolves to nothing" in str(waiting)
    await own.set(NAME, ("192.0.2.1",), 5)
    assert await person.set(NAME, ("192.0.2.1", "2001:db8::1"), 5) is not None
    await own.set(NAME, ("192.0.2.1", "2001:db8::1"), 5)
    assert await person.set(NAME, ("192.0.2.1", "2001:db8::1"), 5) is None


async def test_unmanaged_does_not_take_a_longer_time_to_live(own: CoreDns) -> None:
    await own.set(NAME, ("192.0.2.1",), 3600)
    person = UnmanagedDns(servers=(own.servers[0],))
    waiting = await person.set(NAME, ("192.0.2.1",), 5)
    assert waiting == PersonMust(
        name=f"{NAME}.", wanted=DnsRecord(("192.0.2.1",), 5), seen=DnsRecord(("192.0.2.1",), 3600)
    )
    assert "ttl 3600 s" in str(waiting)


async def test_unmanaged_waits_for_a_removal_too(own: CoreDns) -> None:
    await own.set(NAME, ("192.0.2.1",), 5)
    person = UnmanagedDns(servers=(own.servers[0],))
    assert "deleted" in str(await person.remove(NAME))
    await own.remove(NAME)
    assert await person.remove(NAME) is None


async def test_unmanaged_never_takes_silence_for_an_answer() -> None:
    person = UnmanagedDns(servers=(nobody(),), timeout=0.2)
    with pytest.raises(Unavailable, match="resolving"):
        await person.set(NAME, ("192.0.2.1",), 5)
    with pytest.raises(Unavailable):
        await person.check(NAME)
