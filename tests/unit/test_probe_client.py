"""What one client does when its server, or the network, disappoints it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from probe_lab import Act, Exchange, FakeApiserver, FakeDns, pems, until
from support.golden import Golden

from quarterdeck.errors import InvalidInput
from quarterdeck.probe.client import Client
from quarterdeck.probe.dial import Dialer, HttpVersion, tls_context
from quarterdeck.probe.http2 import FrameSplitter, GoAway
from quarterdeck.probe.ledger import ObjectSlot
from quarterdeck.probe.network import Direct
from quarterdeck.probe.objects import Requests
from quarterdeck.probe.resolve import PinnedResolver, resolver_for
from quarterdeck.probe.target import ProbeTarget

REQUESTS = Requests("ns", "t")
READ = REQUESTS.read(ObjectSlot(0, 0))


@pytest.fixture
async def server() -> AsyncIterator[FakeApiserver]:
    async with FakeApiserver() as fake:
        fake.store.put("writer-0-000", {"metadata": {"name": "x"}, "data": {}})
        yield fake


def client_of(
    target: ProbeTarget,
    http: HttpVersion = HttpVersion.ONE,
    *,
    pinned: bool = False,
    keep: bool = True,
    timeout: float = 5.0,
) -> Client:
    resolver = resolver_for(target, time.monotonic, Direct())
    dialer = Dialer(
        target=target,
        resolver=PinnedResolver(resolver) if pinned else resolver,
        network=Direct(),
        context=tls_context(target, http),
        http=http,
    )
    return Client(dialer, timeout=timeout, keep=keep)


def on_turn(turn: int, act: Act):
    """Misbehave at the n-th request of every connection."""
    return lambda exchange: act if exchange.turn == turn else None


def once(act: Act):
    """Misbehave at the first request of all."""
    left = [act]
    return lambda exchange: left.pop() if left else None


@pytest.mark.parametrize("http", HttpVersion)
async def test_a_connection_is_kept_for_as_long_as_the_server_keeps_it(
    server: FakeApiserver, http: HttpVersion
) -> None:
    client = client_of(server.target(), http)
    assert [(await client.call(READ)).status for _ in range(5)] == [200] * 5
    assert server.connections == 1
    await client.drop()


async def test_a_client_with_new_connections_never_uses_one_twice(server: FakeApiserver) -> None:
    client = client_of(server.target(), keep=False)
    assert [(await client.call(READ)).status for _ in range(3)] == [200] * 3
    assert server.connections == 3


async def test_connection_close_is_obeyed_and_is_no_failure(server: FakeApiserver) -> None:
    server.act = on_turn(2, Act.LAST)
    client = client_of(server.target())
    outcomes = [await client.call(READ) for _ in range(4)]
    assert [(outcome.ok, outcome.resent) for outcome in outcomes] == [(True, False)] * 4
    assert server.connections == 2
    await client.drop()


@pytest.mark.parametrize("http", HttpVersion)
@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_a_reused_connection_that_ends_unanswered_is_resent_once_and_said_so(
    server: FakeApiserver, act: Act, http: HttpVersion
) -> None:
    server.act = on_turn(2, act)
    client = client_of(server.target(), http)
    first, second = await client.call(READ), await client.call(READ)
    assert (first.ok, first.resent) == (True, False)
    assert (second.ok, second.resent) == (True, True)
    await client.drop()


@pytest.mark.parametrize("http", HttpVersion)
async def test_a_new_connection_that_ends_unanswered_is_a_failure(
    server: FakeApiserver, http: HttpVersion, golden: Golden
) -> None:
    server.act = once(Act.CLOSE)
    client = client_of(server.target(), http)
    outcome = await client.call(READ)
    assert not outcome.ok
    assert not outcome.resent
    golden(outcome.reason)
    assert len(server.requests) == 1
    await client.drop()


async def test_a_request_is_resent_only_once(server: FakeApiserver) -> None:
    client = client_of(server.target())
    assert (await client.call(READ)).ok
    server.act = lambda exchange: Act.CLOSE
    outcome = await client.call(READ)
    assert (outcome.ok, outcome.resent) == (False, True)
    assert len(server.requests) == 3
    await client.drop()


async def test_what_is_not_idempotent_is_never_resent(server: FakeApiserver) -> None:
    server.act = on_turn(2, Act.CLOSE)
    client = client_of(server.target())
    assert (await client.call(READ)).ok
    outcome = await client.call(REQUESTS.create(ObjectSlot(0, 1)))
    assert (outcome.ok, outcome.resent) == (False, False)
    await client.drop()


@pytest.mark.parametrize("http", HttpVersion)
async def test_half_a_response_is_a_failure_and_not_resent(server: FakeApiserver, http: HttpVersion) -> None:
    server.act = on_turn(2, Act.HALF)
    client = client_of(server.target(), http)
    assert (await client.call(READ)).ok
    outcome = await client.call(READ)
    assert (outcome.ok, outcome.resent) == (False, False)
    assert ("broke off" if http is HttpVersion.ONE else "closed the connection") in outcome.reason
    assert (await client.call(READ)).ok
    await client.drop()


async def test_one_byte_of_a_response_is_enough_for_a_request_never_to_be_resent(server: FakeApiserver) -> None:
    server.act = on_turn(2, Act.HEAD)
    client = client_of(server.target())
    assert (await client.call(READ)).ok
    outcome = await client.call(READ)
    assert (outcome.ok, outcome.resent) == (False, False)
    await client.drop()


@pytest.mark.parametrize("http", HttpVersion)
async def test_429_is_a_failure(server: FakeApiserver, http: HttpVersion) -> None:
    server.act = once(Act.REFUSE)
    client = client_of(server.target(), http)
    outcome = await client.call(READ)
    assert (outcome.ok, outcome.status, outcome.reason) == (False, 429, "status 429")
    assert (await client.call(READ)).ok
    await client.drop()


@pytest.mark.parametrize("http", HttpVersion)
async def test_a_server_that_never_answers_is_a_failure_at_the_deadline(
    server: FakeApiserver, http: HttpVersion, golden: Golden
) -> None:
    server.act = once(Act.HANG)
    client = client_of(server.target(), http, timeout=2.0)
    outcome = await client.call(READ)
    golden(outcome.reason)
    assert (await client.call(READ)).ok
    await client.drop()


async def test_an_idle_connection_that_was_closed_is_seen_and_nothing_is_resent(server: FakeApiserver) -> None:
    server.act = on_turn(1, Act.GOODBYE)
    client = client_of(server.target())
    assert (await client.call(READ)).ok
    connection = client._connection
    assert connection is not None
    await until(lambda: not connection.usable)
    outcome = await client.call(READ)
    assert (outcome.ok, outcome.resent) == (True, False)
    await client.drop()


async def test_goaway_lets_the_open_stream_end_and_moves_the_next_request(server: FakeApiserver) -> None:
    client = client_of(server.target(), HttpVersion.TWO)
    assert (await client.open(REQUESTS.watch(0))).ok
    pieces = client.pieces()
    assert b"ADDED" in await anext(pieces)
    server.go_away()
    connection = client._connection
    assert connection is not None
    server.store.put("writer-0-000", {"metadata": {"name": "x"}, "data": {"after": "goaway"}})
    assert b"goaway" in await anext(pieces)  # the stream is still served
    server.end_watches()
    assert [piece async for piece in pieces] == []
    assert connection.used
    assert not connection.usable
    outcome = await client.call(READ)
    assert (outcome.ok, outcome.resent) == (True, False)
    assert server.connections == 2
    await client.drop()


async def test_what_goaway_says_was_not_processed_is_resent(server: FakeApiserver) -> None:
    client = client_of(server.target(), HttpVersion.TWO)
    server.act = once(Act.HANG)
    call = asyncio.create_task(client.call(READ))
    await until(lambda: len(server.requests) == 1)
    server.go_away(last_stream=0)
    outcome = await call
    assert (outcome.ok, outcome.resent) == (True, True)
    await client.drop()


def test_goaway_is_taken_out_of_the_frames_however_they_are_cut() -> None:
    away = b"\0\0\x08\x07\0\0\0\0\0" + b"\0\0\0\x05" + b"\0\0\0\x02"
    other = b"\0\0\x03\0\0\0\0\0\x01abc"
    stream = other + away + other
    for size in range(1, len(stream) + 1):
        splitter = FrameSplitter()
        kept, seen = b"", []
        for start in range(0, len(stream), size):
            frames, notices = splitter.feed(stream[start : start + size])
            kept += frames
            seen += notices
        assert (kept, seen) == (other + other, [GoAway(5, 2)])


async def test_a_name_is_resolved_again_after_its_time_to_live_and_not_before(server: FakeApiserver) -> None:
    async with FakeDns("127.0.0.1", ttl=3600) as dns:
        client = client_of(server.target(address=None, dns_servers=(dns.server,)), keep=False)
        assert [(await client.call(READ)).ok for _ in range(3)] == [True] * 3
        assert dns.queries == 1
    async with FakeDns("127.0.0.1", ttl=0) as dns:
        client = client_of(server.target(address=None, dns_servers=(dns.server,)), keep=False)
        assert [(await client.call(READ)).ok for _ in range(3)] == [True] * 3
        assert dns.queries == 3


async def test_where_a_dns_server_gives_no_answer_the_next_is_asked_and_from_then_on_first(
    server: FakeApiserver,
) -> None:
    async with FakeDns("127.0.0.1") as lost, FakeDns("127.0.0.1") as other:
        lost.silent = True
        client = client_of(server.target(address=None, dns_servers=(lost.server, other.server)), keep=False)
        assert [(await client.call(READ)).ok for _ in range(3)] == [True] * 3
        assert (lost.queries, other.queries) == (1, 3)


async def test_a_pinned_client_stays_at_the_address_that_it_resolved_first(server: FakeApiserver) -> None:
    async with FakeDns("127.0.0.1", ttl=0) as dns, FakeApiserver("127.0.0.2", server.store, server.port):
        target = server.target(address=None, dns_servers=(dns.server,))
        pinned, free = client_of(target, pinned=True), client_of(target)
        server.act = on_turn(1, Act.LAST)
        assert [(await each.call(READ)).address for each in (pinned, free)] == ["127.0.0.1"] * 2
        dns.address = "127.0.0.2"
        assert [(await each.call(READ)).address for each in (pinned, free)] == ["127.0.0.1", "127.0.0.2"]
        await pinned.drop()
        await free.drop()


async def test_failures_of_the_way_there_say_what_failed(server: FakeApiserver, golden: Golden) -> None:
    async with FakeDns(None) as dns:
        outcome = await client_of(server.target(address=None, dns_servers=(dns.server,))).call(READ)
    golden(outcome.reason)
    await server.stop()
    outcome = await client_of(server.target()).call(READ)
    assert outcome.reason.startswith(f"connecting to 127.0.0.1 port {server.port}: ")


async def test_a_server_that_another_ca_signed_is_not_trusted(server: FakeApiserver, golden: Golden) -> None:
    target = server.target(host="other.test")
    outcome = await client_of(target).call(READ)
    golden(outcome.reason)


async def test_broken_pems_are_refused_before_anything_is_tried(server: FakeApiserver) -> None:
    for change in ({"ca_pem": "no"}, {"ca_pem": ""}, {"client_key_pem": "no"}, {"client_cert_pem": pems().ca}):
        with pytest.raises(InvalidInput, match="certificates"):
            tls_context(server.target(**change), HttpVersion.ONE)


def test_secrets_are_not_printed() -> None:
    target = ProbeTarget(host="h", port=1, ca_pem="", client_cert_pem="", client_key_pem="secret")
    assert "secret" not in repr(target)
    assert Exchange("GET", "/x?watch=1", 1, http2=False).watch
