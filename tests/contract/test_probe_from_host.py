"""The probe's clients behind a real sshd: what they are told is what a client on that host would be told."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import dns.message
import dns.rrset
import pytest
from probe_lab import Act, FakeApiserver, until
from support.hosts_lab import HostsLab, LabHost, why_not

from quarterdeck.errors import PreconditionFailed, Unavailable
from quarterdeck.happy_eyeballs import connected
from quarterdeck.probe.client import Client
from quarterdeck.probe.dial import Dialer, HttpVersion, tls_context
from quarterdeck.probe.ledger import ObjectSlot
from quarterdeck.probe.objects import Requests
from quarterdeck.probe.resolve import resolver_for
from quarterdeck.probe.schema import Failure
from quarterdeck.probe.session import ProbeSession
from quarterdeck.probe.target import ProbeSettings, ProbeTarget, Source, SourceLost
from quarterdeck.probe.tunnel import Tunnel
from quarterdeck.sites.ssh.hosts import Login

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(120), pytest.mark.skipif(bool(why_not()), reason=why_not())]
HOST = "east-a1"
READ = Requests("ns", "t").read(ObjectSlot(0, 0))
SETTINGS = ProbeSettings(id="from", rate=40, slots=4)
_LET_IN = """
install --owner=plain --directory /home/plain/.ssh
echo "$1" > /home/plain/.ssh/authorized_keys
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[HostsLab]:
    with HostsLab([LabHost(HOST, "east", "a")]) as made:
        yield made


@pytest.fixture
def here(lab: HostsLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """This test's own address, at which the host reaches what listens here, while it has what logs in there."""
    monkeypatch.setenv("HOME", str(lab.access.folder))
    with lab.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((lab.address(HOST), 9))
        yield asked.getsockname()[0]


@pytest.fixture
async def tunnel(here: str) -> AsyncIterator[Tunnel]:
    async with Tunnel(source()) as made:
        yield made


def source(user: str = "root") -> Source:
    return Source(name=f"east/{HOST}", login=Login(host=HOST, user=user))


@asynccontextmanager
async def apiserver(address: str) -> AsyncIterator[FakeApiserver]:
    async with FakeApiserver(address) as fake:
        fake.store.put("writer-0-000", {"metadata": {"name": "x"}, "data": {}})
        yield fake


def client_of(
    target: ProbeTarget, tunnel: Tunnel, http: HttpVersion = HttpVersion.ONE, *, timeout: float = 5.0
) -> Client:
    resolver = resolver_for(target, time.monotonic, tunnel)
    dialer = Dialer(target=target, resolver=resolver, network=tunnel, context=tls_context(target, http), http=http)
    return Client(dialer, timeout=timeout)


@contextmanager
def deaf(address: str) -> Iterator[int]:
    """A port from which nobody hears: its queue is full."""
    with socket.socket() as listener, socket.socket() as filler:
        listener.bind((address, 0))
        listener.listen(0)
        filler.connect(listener.getsockname())
        yield listener.getsockname()[1]


async def test_connections_come_from_the_host_and_carry_all_that_is_said(
    lab: HostsLab, here: str, tunnel: Tunnel
) -> None:
    peers: list[str] = []
    payload = os.urandom(5 * 2**20)

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername")[0])
        writer.write(await reader.readexactly(len(payload)))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, here, 0) as server:
        port = server.sockets[0].getsockname()[1]
        address, end = await connected([here], port, tunnel.connect)
        reader, writer = await asyncio.open_connection(sock=end)
        writer.write(payload)
        assert await reader.read() == payload, "and then its end"
        writer.close()
    assert (address, peers) == (here, [lab.address(HOST)])


@pytest.mark.parametrize("http", HttpVersion)
async def test_a_kept_connection_that_ends_is_as_it_is_from_here(here: str, tunnel: Tunnel, http: HttpVersion) -> None:
    async with apiserver(here) as server:
        client = client_of(server.target(), tunnel, http)
        assert [(await client.call(READ)).status for _ in range(3)] == [200] * 3
        assert server.connections == 1
        for act in (Act.CLOSE, Act.RESET):
            server.act = once(act)
            outcome = await client.call(READ)
            assert (outcome.ok, outcome.resent) == (True, True), outcome
        server.act = once(Act.HALF)
        outcome = await client.call(READ)
        assert (outcome.ok, outcome.resent) == (False, False), outcome
        await client.drop()


def once(act: Act):
    left = [act]
    return lambda exchange: left.pop() if left else None


async def test_what_a_client_closes_is_closed_at_the_server(here: str, tunnel: Tunnel) -> None:
    async with apiserver(here) as server:
        client = client_of(server.target(), tunnel)
        assert (await client.call(READ)).ok
        await client.drop()
        await until(lambda: not server._writers)


async def test_a_refused_connection_is_a_refused_one(here: str, tunnel: Tunnel) -> None:
    with socket.socket() as unused:
        unused.bind((here, 0))
        port = unused.getsockname()[1]
        with pytest.raises(ConnectionRefusedError):
            await tunnel.connect(here, port)
        async with apiserver(here) as server:
            outcome = await client_of(server.target(port=port), tunnel).call(READ)
    assert outcome.reason == f"connecting to {here} port {port}: connection refused"


async def test_a_silent_address_is_waited_for_as_from_here_and_holds_up_no_other(here: str, tunnel: Tunnel) -> None:
    async with apiserver(here) as server:
        with deaf(here) as port:
            client = client_of(server.target(port=port), tunnel, timeout=0.3)
            assert (await client.call(READ)).reason == "no answer within 0.3 s"
            other = client_of(server.target(), tunnel)
            assert (await other.call(READ)).ok
            await other.drop()


class TcpDns:
    """Answers every query with an address, or nothing."""

    def __init__(self, ttl: int, *, silent: bool = False) -> None:
        self.queries = 0
        self._ttl = ttl
        self._silent = silent

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        query = dns.message.from_wire(await reader.readexactly(size))
        self.queries += 1
        if not self._silent:
            reply = dns.message.make_response(query)
            here = writer.get_extra_info("sockname")[0]
            reply.answer.append(dns.rrset.from_text(query.question[0].name, self._ttl, "IN", "A", here))
            wire = reply.to_wire()
            writer.write(len(wire).to_bytes(2, "big") + wire)
            writer.write_eof()
        await reader.read()  # until the client is gone
        writer.close()


async def test_names_are_asked_for_by_the_host_and_known_for_their_time_to_live(here: str, tunnel: Tunnel) -> None:
    lost, long, short = TcpDns(0, silent=True), TcpDns(3600), TcpDns(0)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(apiserver(here))
        at = []
        for each in (lost, long, short):
            listening = await stack.enter_async_context(await asyncio.start_server(each, here, 0))
            at.append((here, listening.sockets[0].getsockname()[1]))
        for servers in ((at[0], at[1]), (at[2],)):
            client = client_of(server.target(address=None, dns_servers=servers), tunnel)
            for _ in range(3):
                assert (await client.call(READ)).ok
                await client.drop()
    assert (lost.queries, long.queries, short.queries) == (1, 1, 3)


async def test_without_servers_the_hosts_own_resolver_is_asked(lab: HostsLab, here: str, tunnel: Tunnel) -> None:
    async with apiserver(here) as server:
        client = client_of(server.target(address=None), tunnel)
        unknown = await client.call(READ)
        assert unknown.reason == f"resolving plane.test: the resolver of host east/{HOST} does not know it"
        lab.sh(HOST, 'echo "$1 plane.test" >> /etc/hosts', here)
        assert (await client.call(READ)).ok
        await client.drop()


async def test_who_may_make_no_connections_is_told_so_and_what_allows_it(lab: HostsLab, here: str) -> None:
    def let_in(options: str) -> None:
        lab.sh(HOST, _LET_IN, f"{options} {lab.access.people.public}")

    async with apiserver(here) as server:
        let_in("restrict")
        says = f"user plain open a connection to {here} port {server.port}; .* bootstrap --allow-probe'"
        with pytest.raises(PreconditionFailed, match=says):
            await ProbeSession(server.target(), SETTINGS, source=source("plain")).__aenter__()
        let_in("restrict,port-forwarding")
        async with ProbeSession(server.target(), SETTINGS, source=source("plain")) as probe:
            result = await probe.stop()
    assert (result.source, result.failed, result.writes.audited) == (f"east/{HOST}", 0, True)
    assert server.namespaces == set()


@pytest.mark.parametrize("silent", [False, True], ids=["its sshd ends", "it falls silent"])
async def test_a_host_that_is_lost_ends_the_probe_and_fails_no_request(lab: HostsLab, here: str, silent: bool) -> None:
    failures: list[Failure] = []
    async with apiserver(here) as server:
        async with ProbeSession(server.target(), SETTINGS, source=source(), on_failure=failures.append) as probe:
            await until(lambda: probe.summary is not None and probe.summary.acknowledged > 20)
            await asyncio.to_thread(lab.cut if silent else lab.kill_ssh, HOST)
            with pytest.raises(Unavailable, match=f"probing from host east/{HOST}: the connection to it was lost"):
                await probe.look(30.0)
            for _ in range(2):
                with pytest.raises(Unavailable, match="not a failure of the plane"):
                    await probe.mark("after")
        lab.mend(HOST)
        assert failures == []
        assert server.namespaces == set(), "it was cleaned up from here"


async def test_nobody_can_tell_what_fails_while_the_way_to_the_host_stalls(lab: HostsLab, here: str) -> None:
    async with Tunnel(source()) as tunnel, apiserver(here) as server:
        client = client_of(server.target(), tunnel, timeout=1.2)
        assert (await client.call(READ)).ok
        lab.freeze(HOST)
        asyncio.get_running_loop().call_later(1.5, lab.thaw, HOST)
        with pytest.raises(SourceLost, match="the way to it stalled for 1"):
            await client.call(READ)
        assert tunnel.lag() > 1.0


async def test_an_answer_that_nobody_waited_for_vouches_for_nothing(lab: HostsLab, tunnel: Tunnel) -> None:
    lab.freeze(HOST)
    first, second = (asyncio.create_task(tunnel.confirm(float("inf"))) for _ in range(2))
    await asyncio.wait((first, second), timeout=0.2)
    first.cancel()
    assert await asyncio.wait((second,), timeout=0.3) == (set(), {second})
    lab.thaw(HOST)
    await second


@pytest.mark.parametrize(
    ("user", "says"), [("stranger", "no key of user stranger"), ("nobody", "user nobody cannot run programs there")]
)
async def test_a_login_that_is_of_no_use_is_named(here: str, user: str, says: str) -> None:
    with pytest.raises(PreconditionFailed, match=f"probing from host east/{HOST}: {says}"):
        await Tunnel(source(user)).__aenter__()
