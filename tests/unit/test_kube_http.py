"""What the HTTPS driver makes of answers that a real apiserver gives only in trouble."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from support.components import ALWAYS
from support.golden import Golden

from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.ports import READYZ, READYZ_FOUNDED
from quarterdeck.errors import TimedOut, Unavailable
from quarterdeck.kube.http import HttpKube
from quarterdeck.kube.port import Address
from quarterdeck.pki.issuance import ReplicaNames, create_plane_secrets, with_replica

LEASE = """{"metadata": {"name": "kube-scheduler", "resourceVersion": "7"}, "spec": {"holderIdentity": "old",
"leaseDurationSeconds": 15, "renewTime": "2026-03-01T00:00:00.000000Z"}}"""


@dataclass
class Canned:
    """A TLS server that gives the same answer to every request; ``requests`` are what it was asked."""

    address: Address
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    silent: bool = False
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.closing(writer), contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lengths = [line for line in head.lower().splitlines() if line.startswith("content-length:")]
                body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
                self.requests.append(head + body.decode())
                if self.silent:
                    await reader.read()
                    return
                status, text = self.answers[head.split(" ", 1)[0]]
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
                await writer.drain()


@pytest.fixture(scope="module")
def secrets() -> SharedSecrets:
    now = datetime.now(UTC)
    names = ReplicaNames(replica="r1", addresses=("127.0.0.1",), service_ip="10.96.0.1", programs=ALWAYS)
    return with_replica(create_plane_secrets("demo", now), names, now)


@pytest.fixture
async def server(secrets: SharedSecrets, tmp_path: Path) -> AsyncIterator[Canned]:
    issued = secrets.replica("r1")
    assert issued is not None
    (tmp_path / "pem").write_bytes(issued.pairs["apiserver"].certificate + issued.pairs["apiserver"].key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    canned = Canned(Address("127.0.0.1", 0))
    async with await asyncio.start_server(canned.serve, "127.0.0.1", 0, ssl=context) as listening:
        canned.address = Address("127.0.0.1", listening.sockets[0].getsockname()[1])
        yield canned


@pytest.fixture
async def kube(secrets: SharedSecrets) -> AsyncIterator[HttpKube]:
    driver = HttpKube(secrets.kubernetes_ca.bundle, secrets.manager, health_deadline=0.2, call_deadline=0.2)
    yield driver
    await driver.close()


async def test_an_unready_apiserver_is_a_no_that_names_the_failed_check(
    server: Canned, kube: HttpKube, golden: Golden
) -> None:
    server.answers["GET"] = (500, "[+]ping ok\n[-]shutdown failed: reason withheld\nreadyz check failed\n")
    answer = await kube.readyz(server.address)
    assert answer.ok is False
    golden(answer.detail)


async def test_who_was_ready_is_asked_over_a_kept_connection_and_who_was_not_over_a_new_one(
    server: Canned, kube: HttpKube
) -> None:
    """That one is ready is first seen as clients see it: over a connection of its own."""
    server.answers["GET"] = (500, "no")
    for connections in (1, 2):
        assert (await kube.readyz(server.address)).ok is False
        assert server.connections == connections
    server.answers["GET"] = (200, "ok")
    for asked, connections in ((kube.readyz, 3), (kube.readyz, 3), (kube.ping, 4), (kube.ping, 4)):
        assert (await asked(server.address)).ok is True
        assert server.connections == connections
    assert [request.split()[1] for request in server.requests] == [READYZ] * 4 + ["/livez/ping"] * 2


async def test_only_in_a_founded_plane_are_the_default_roles_not_waited_for(server: Canned, kube: HttpKube) -> None:
    server.answers["GET"] = (200, "ok")
    await kube.readyz(server.address)
    await kube.readyz(server.address, founded=True)
    first, second = (request.split()[1] for request in server.requests)
    assert first == READYZ
    assert "exclude=poststarthook/rbac/bootstrap-roles" in second


@pytest.mark.parametrize("path", [READYZ, READYZ_FOUNDED])
def test_an_apiserver_that_has_lost_its_member_of_the_events_etcd_alone_would_serve(path: str) -> None:
    """And one that has lost the other one would not: kubernetes excludes ``etcd`` with all that are grouped with it."""
    asked = urlsplit(path)
    left_out = parse_qs(asked.query)["exclude"]
    assert asked.path == "/readyz"
    assert {"etcd-override-0", "etcd-override-readiness-0"} <= {*left_out}
    assert "etcd" not in left_out


async def test_a_server_of_another_plane_is_unknown(server: Canned, golden: Golden) -> None:
    other = create_plane_secrets("other", datetime.now(UTC))
    stranger = HttpKube(other.kubernetes_ca.bundle, other.manager)
    try:
        answer = await stranger.readyz(server.address)
    finally:
        await stranger.close()
    assert answer.ok is None
    golden(answer.detail)
    assert server.requests == []


async def test_silence_ends_at_the_deadline(server: Canned, kube: HttpKube) -> None:
    server.silent = True
    assert (await kube.readyz(server.address)).ok is None
    with pytest.raises(TimedOut):
        await kube.version(server.address)
    assert await kube.leads(server.address, "kube-scheduler") is None


@pytest.mark.parametrize("answer", [(200, "not JSON"), (200, "{}"), (403, '{"code": 403}'), (500, "")])
async def test_an_answer_that_is_no_lease_is_unavailable(
    server: Canned, kube: HttpKube, answer: tuple[int, str]
) -> None:
    server.answers["GET"] = answer
    with pytest.raises(Unavailable):
        await kube.leader_lease(server.address, "kube-scheduler")


async def test_a_lease_without_a_holder_was_released(server: Canned, kube: HttpKube) -> None:
    server.answers["GET"] = (200, '{"metadata": {"name": "x", "resourceVersion": "1"}, "spec": {}}')
    lease = await kube.leader_lease(server.address, "x")
    assert lease is not None
    assert (lease.holder, lease.renewed) == ("", None)


async def test_the_release_of_a_lease_names_the_version_that_was_read(server: Canned, kube: HttpKube) -> None:
    server.answers = {"GET": (200, LEASE), "PATCH": (200, LEASE)}
    assert await kube.release_lease(server.address, "kube-scheduler", "old") is True
    assert '"resourceVersion": "7"' in server.requests[-1]


@pytest.mark.parametrize("status", [404, 409])
async def test_a_lease_that_changed_meanwhile_is_left_alone(server: Canned, kube: HttpKube, status: int) -> None:
    server.answers = {"GET": (200, LEASE), "PATCH": (status, "{}")}
    assert await kube.release_lease(server.address, "kube-scheduler", "old") is False


async def test_a_lease_of_another_holder_is_not_even_tried(server: Canned, kube: HttpKube) -> None:
    server.answers = {"GET": (200, LEASE)}
    assert await kube.release_lease(server.address, "kube-scheduler", "new") is False
    assert all(request.startswith("GET") for request in server.requests)


INFO = "apiserver_authentication_config_controller_last_config_info"


@pytest.mark.parametrize(
    ("text", "loaded"),
    [
        (f'up 1\n{INFO}{{apiserver_id_hash="sha256:1f",hash="sha256:ab"}} 1\nx 1\n', "sha256:ab"),
        (f'# TYPE {INFO} gauge\n{INFO}{{apiserver_id_hash="sha256:1f",hash=""}} 1\n', None),
        ("up 1\n", None),
    ],
)
async def test_an_apiserver_says_itself_which_file_it_goes_by(
    server: Canned, kube: HttpKube, text: str, loaded: str | None
) -> None:
    server.answers["GET"] = (200, text)
    assert await kube.loaded(server.address) == loaded


@pytest.mark.parametrize(
    ("status", "text", "leads"),
    [
        (200, 'leader_election_master_status{name="kube-scheduler"} 1\n', True),
        (200, 'leader_election_master_status{name="kube-scheduler"} 0\n', False),
        (200, "up 1\n", False),
        (403, "", None),
    ],
)
async def test_a_controller_says_itself_whether_it_leads(
    server: Canned, kube: HttpKube, status: int, text: str, leads: bool | None
) -> None:
    server.answers["GET"] = (status, text)
    assert await kube.leads(server.address, "kube-scheduler") is leads
