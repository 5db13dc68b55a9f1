"""A whole probe against a server that is well, and one that is not: every misdeed shows in the result."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from probe_lab import Act, Exchange, FakeApiserver, until
from support.golden import Golden

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.probe.network import Direct, Network
from quarterdeck.probe.result import FailedRequest, ProbeResult
from quarterdeck.probe.run import ProbeRun
from quarterdeck.probe.target import DEFAULT_CLIENTS, ClientKind, ProbeConfig, ProbeSettings, SourceLost

#: Long enough for a machine that is busy with other things: only the tests of what never comes wait less.
SETTINGS = ProbeSettings(id="t", rate=50, timeout=20.0, slots=4)


class Lab:
    """A server, a probe that runs against it, and its result after the block."""

    def __init__(self, server: FakeApiserver, probe: ProbeRun, failures: list[FailedRequest]) -> None:
        self.server = server
        self.probe = probe
        self.failures = failures
        self.done: ProbeResult | None = None
        self.stack = AsyncExitStack()  # is left after the probe has finished

    @property
    def result(self) -> ProbeResult:
        assert self.done is not None
        return self.done

    async def writes(self, count: int) -> None:
        """Wait for that many more acknowledged writes."""
        wanted = self.probe.summary().acknowledged + count
        await until(lambda: self.probe.summary().acknowledged >= wanted)


@asynccontextmanager
async def lab(settings: ProbeSettings = SETTINGS, network: Network | None = None) -> AsyncIterator[Lab]:
    failures: list[FailedRequest] = []
    async with FakeApiserver() as server:
        probe = ProbeRun(
            ProbeConfig(target=server.target(), settings=settings),
            network=network or Direct(),
            now=time.monotonic,
            random_source=random.Random(1),
            on_failure=failures.append,
        )
        await probe.prepare()
        await probe.start()
        it = Lab(server, probe, failures)
        try:
            await it.writes(8)
            yield it
            it.done = await probe.finish()
        finally:
            await probe.abandon()
            await it.stack.aclose()


def first(wanted: Callable[[Exchange], bool], act: Act, times: int = 1) -> Callable[[Exchange], Act | None]:
    """Misbehave at the first requests that ``wanted`` says yes to."""
    left = [act] * times

    def decide(exchange: Exchange) -> Act | None:
        return left.pop() if left and wanted(exchange) else None

    return decide


def a_write(exchange: Exchange) -> bool:
    return exchange.method == "PUT"


def clean(result: ProbeResult) -> bool:
    writes, watches = result.writes, result.watches
    wrong = (result.failed, writes.lost, writes.stale_reads, watches.missed, watches.duplicated, watches.out_of_order)
    return wrong == (0,) * 6 and writes.audited and result.left_behind == ""


async def test_a_good_server_gets_a_clean_result_from_every_kind() -> None:
    async with lab() as it:
        await it.writes(8)
        it.probe.mark("migrate")
        await it.writes(30)
    result = it.result
    assert clean(result)
    assert [period.label for period in result.periods] == ["quiet", "migrate"]
    for period in result.periods:
        assert set(period.kinds) == set(ClientKind)
        assert period.overall.p50_ms <= period.overall.p99_ms <= period.overall.stall_ms
    assert result.watches.events == 2 * result.writes.acknowledged
    assert result.requests == sum(f.requests for period in result.periods for f in period.kinds.values())
    opened = result.connections
    assert opened[ClientKind.NEW_CONNECTION] > 10
    assert all(opened[kind] == count for kind, count in DEFAULT_CLIENTS if kind is not ClientKind.NEW_CONNECTION)
    assert len(result.samples.at) > result.requests


async def test_nothing_is_left_at_the_server() -> None:
    async with lab() as it:
        assert it.server.namespaces == {"quarterdeck-probe-t"}
    assert it.server.namespaces == set()
    assert it.server.store.objects == {}


async def test_a_forgotten_write_is_lost_and_stays_so_when_it_is_overwritten(golden: Golden) -> None:
    async with lab(replace(SETTINGS, timeout=2.0)) as it:
        it.server.act = first(a_write, Act.FORGET)
        await it.writes(30)
    assert it.result.writes.lost == 1
    golden.hide(r"writer-\d-\d+|(?<=number )\d+", "N")
    golden(it.result.writes.examples[0])
    assert it.result.watches.missed == 2  # one at each watcher


async def test_a_write_that_vanishes_after_its_read_back_is_found_by_the_audit(golden: Golden) -> None:
    async with lab() as it:
        await until(lambda: it.probe.summary().acknowledged > 20)
        await it.probe.retire(ClientKind.WRITER)
        it.server.store.objects["writer-0-001"] = it.server.store.before["writer-0-001"]
    assert it.result.writes.lost == 1
    golden.hide(r"writer-\d-\d+|(?<=number )\d+", "N")
    golden(it.result.writes.examples[0])


async def test_a_stale_read_is_caught() -> None:
    async with lab(replace(SETTINGS, clients=((ClientKind.WRITER, 1), (ClientKind.HTTP2, 1)))) as it:
        await it.writes(8)
        # What was there before is not stale while the write after it is not acknowledged: one answer may be right.
        it.server.act = first(lambda exchange: exchange.http2, Act.OLD, times=8)
        await it.writes(16)
    assert 1 <= it.result.writes.stale_reads <= 8


REASONS = {
    Act.REFUSE: ("status 429",),
    Act.HALF: ("broke off", "closed the connection"),  # over HTTP/1.1, over HTTP/2
    Act.GARBAGE: ("not JSON",),
}


@pytest.mark.parametrize("act", REASONS)
async def test_each_failure_is_told_at_once_with_its_kind_and_reason(act: Act) -> None:
    async with lab() as it:
        it.probe.mark("migrate")
        it.server.act = first(lambda exchange: exchange.method == "GET" and "configmaps/writer" in exchange.path, act)
        await until(lambda: bool(it.failures))
        await it.writes(4)
    quiet, migrate = it.result.periods
    assert (quiet.overall.failures, migrate.overall.failures) == (0, 1)
    (failure,) = it.result.failures
    assert (failure,) == tuple(it.failures)
    assert any(words in failure.reason for words in REASONS[act])
    assert failure.request.startswith("GET /api/v1/namespaces/quarterdeck-probe-t/configmaps/writer-")
    assert failure.period == "migrate"
    assert it.result.samples.ok.count(False) == 1


async def test_an_unacknowledged_write_is_a_failure_but_not_lost() -> None:
    async with lab() as it:
        it.server.act = first(a_write, Act.REFUSE)
        await it.writes(20)
    assert (it.result.failed, it.result.writes.unknown, it.result.writes.lost) == (1, 1, 0)
    assert it.result.watches.missed == 0


async def test_a_closed_idle_connection_costs_no_failure() -> None:
    async with lab() as it:
        it.server.act = lambda exchange: Act.LAST if exchange.turn % 5 == 0 else None
        await it.writes(20)
    assert clean(it.result)
    assert it.result.connections[ClientKind.KEEP_ALIVE] > 1


async def test_a_reset_under_a_request_is_resent_and_shown_apart() -> None:
    async with lab() as it:
        it.server.act = first(lambda exchange: exchange.turn > 3 and not exchange.watch, Act.RESET, times=3)
        await it.writes(20)
    assert clean(it.result)
    assert sum(period.overall.resent for period in it.result.periods) == 3


async def test_an_event_sent_twice_is_caught() -> None:
    async with lab() as it:
        doubled = [True]
        it.server.edit = lambda events: [events[0], *events] if doubled and doubled.pop() else events
        await it.writes(12)
    assert it.result.watches.duplicated == 1
    assert it.result.failed == 0


async def test_an_event_left_out_is_caught() -> None:
    async with lab(replace(SETTINGS, timeout=2.0)) as it:
        dropped = [True]
        it.server.edit = lambda events: events[1:] if dropped and dropped.pop() else events
        await it.writes(12)
    assert it.result.watches.missed == 1


async def test_events_in_the_wrong_order_are_caught() -> None:
    async with lab(replace(SETTINGS, clients=((ClientKind.WRITER, 1), (ClientKind.WATCHER, 1)))) as it:
        held: list[dict] = []

        def swap(events: list[dict]) -> list[dict]:
            if held == [{}]:
                return events
            if not held:
                held.append(events[0])
                return events[1:]
            first_event, held[:] = held[0], [{}]
            return [*events, first_event]

        it.server.edit = swap
        await it.writes(20)
    assert it.result.watches.out_of_order == 1
    assert it.result.watches.missed == 0


async def test_watches_that_end_or_are_cut_go_on_from_where_they_were() -> None:
    """A client that opens a connection for each request may be cut in the first of it, and sends nothing twice."""
    kept = tuple(each for each in SETTINGS.clients if each[0] is not ClientKind.NEW_CONNECTION)
    async with lab(replace(SETTINGS, clients=kept)) as it:
        it.server.end_watches()
        await it.writes(10)
        it.server.cut_connections()
        await it.writes(10)
    assert (it.result.watches.ended, it.result.watches.cut) == (2, 2)
    assert clean(it.result)


async def test_gone_is_followed_by_a_list_and_counted() -> None:
    async with lab() as it:
        it.server.act = first(lambda exchange: exchange.watch, Act.GONE)
        it.server.end_watches()
        await it.writes(10)
    assert it.result.watches.relists == 1
    assert it.result.failed == 0
    assert (it.result.watches.duplicated, it.result.watches.out_of_order) == (0, 0)


async def test_gone_as_an_event_is_understood_too() -> None:
    async with lab() as it:
        gone = [{"type": "ERROR", "object": {"kind": "Status", "code": 410}}]
        it.server.edit = lambda events: [gone.pop()] if gone else events
        await it.writes(10)
    assert it.result.watches.relists == 1
    assert it.result.watches.cut == 0


async def test_a_dead_server_makes_every_kind_fail_and_stall_until_it_is_back() -> None:
    async with lab() as it:
        server = it.server
        await server.stop()
        await until(lambda: {failure.kind for failure in it.failures} == set(ClientKind))
        await it.stack.enter_async_context(FakeApiserver(server.address, server.store, server.port))
        await it.writes(10)
    (period,) = it.result.periods
    assert all(figures.failures > 0 for figures in period.kinds.values())
    longest = max(failure.at for failure in it.failures) - min(failure.at for failure in it.failures)
    assert period.overall.stall_ms > 1e3 * longest / 2
    assert it.result.writes.lost == 0


async def test_retired_clients_send_nothing_any_more() -> None:
    async with lab() as it:
        await it.probe.retire(ClientKind.PINNED)
        it.probe.mark("after")
        await it.writes(10)
    assert ClientKind.PINNED in it.result.periods[0].kinds
    assert ClientKind.PINNED not in it.result.periods[1].kinds


@asynccontextmanager
async def lone(settings: ProbeSettings, act: Callable[[Exchange], Act | None]) -> AsyncIterator[ProbeRun]:
    """A probe that has not begun, at a server that does so; its patience runs out at once."""
    async with FakeApiserver() as server:
        server.act = act
        yield ProbeRun(
            ProbeConfig(target=server.target(), settings=settings),
            network=Direct(),
            now=iter(range(0, 10_000, 20)).__next__,
            random_source=random.Random(1),
            on_failure=lambda failure: None,
        )


async def test_a_server_that_refuses_the_probe_is_an_error_that_says_so(golden: Golden) -> None:
    async with lone(SETTINGS, lambda exchange: Act.GONE) as probe:
        with golden.raises(Unavailable):
            await probe.prepare()
        await probe.abandon()


class Elsewhere(Direct):
    """A host that can be lost, and keeps its clients waiting for a while."""

    def __init__(self) -> None:
        self.lost = False

    async def connect(self, address: str, port: int) -> socket.socket:
        await self.confirm(0.0)
        return await super().connect(address, port)

    async def confirm(self, since: float) -> None:
        if self.lost:
            raise SourceLost("probing from host rack/cp-1", "the connection to it was lost")

    def lag(self) -> float:
        return 3.0


async def test_when_the_host_is_lost_that_is_probed_from_no_request_has_failed_and_there_is_no_result() -> None:
    host = Elsewhere()
    seen: list[Lab] = []
    with pytest.raises(SourceLost):
        async with lab(network=host) as it:
            seen.append(it)
            host.lost = True
            it.server.cut_connections()
            async with asyncio.timeout(10.0):
                await asyncio.wait((it.probe.crashed,))
    assert seen[0].failures == []
    assert seen[0].server.namespaces == set(), "it is cleaned up from here"


async def test_what_a_lost_host_has_not_heard_of_is_not_missed() -> None:
    host = Elsewhere()
    with pytest.raises(SourceLost):
        async with lab(replace(SETTINGS, timeout=1.0), network=host) as it:
            it.server.edit = lambda events: []  # nothing comes any more
            await it.writes(2)
            host.lost = True


async def test_a_host_that_may_make_no_connections_ends_it_at_once(golden: Golden) -> None:
    class Forbidden(Direct):
        async def connect(self, address: str, port: int) -> socket.socket:
            raise PreconditionFailed("probing from host rack/cp-1", "its sshd opens no connection")

    with golden.raises(PreconditionFailed):
        async with lab(network=Forbidden()):
            pass


async def test_what_the_way_to_the_host_takes_is_the_probes_own_lag() -> None:
    async with lab(network=Elsewhere()) as it:
        await it.writes(2)
    assert it.result.periods[0].own_lag_ms == 3000.0


async def test_every_object_is_there_before_a_client_starts_and_is_made_once() -> None:
    made: list[Exchange] = []

    def act(exchange: Exchange) -> None:
        if exchange.method == "POST":
            made.append(exchange)

    settings = replace(SETTINGS, slots=32)
    async with lone(settings, act) as probe:
        await probe.prepare()
        await probe.abandon()
    objects = [each for each in made if each.path.endswith("/configmaps")]
    assert len(objects) == 32 * settings.count(ClientKind.WRITER)
    assert {each.turn for each in objects} <= set(range(1, 9)), "eight connections share the work"


async def test_a_server_that_takes_no_object_of_the_probe_is_one_plain_error(golden: Golden) -> None:
    def refuse(exchange: Exchange) -> Act | None:
        return Act.FORBID if exchange.path.endswith("/configmaps") else None

    async with lone(SETTINGS, refuse) as probe:
        with golden.raises(Unavailable):
            await probe.prepare()
        await probe.abandon()
