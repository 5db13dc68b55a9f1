"""How a lock is written as a Lease, whose kubeconfigs are read, and what an apiserver may answer."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.golden import Golden

from quarterdeck.errors import Conflict, InvalidInput, NotFound, QuarterdeckError, Unavailable
from quarterdeck.kube.kubeconfig import locks_of
from quarterdeck.kube.locks import KubeLocks, LockDocument, lease, record
from quarterdeck.leases import Record, Timing
from quarterdeck.pki.authority import create_authority
from quarterdeck.yaml_text import dumped

CLIENT_GO = """{"metadata": {"name": "kube-scheduler", "resourceVersion": "7", "annotations": {
  "leases.quarterdeck.dev/answers": "gone_1", "leases.quarterdeck.dev/precedence": "3"}}, "spec": {
  "holderIdentity": "node-1_3f2a", "leaseDurationSeconds": 15, "leaseTransitions": 4,
  "acquireTime": "2027-01-15T08:00:00.000001Z", "renewTime": "2027-01-15T08:00:10.5Z"}}"""


def test_a_lease_of_client_go_is_read_and_its_holder_cannot_be_asked() -> None:
    found = record(LockDocument.model_validate_json(CLIENT_GO))
    assert (found.holder, found.duration, found.transitions, found.version) == ("node-1_3f2a", 15.0, 4, "7")
    assert found.acquired == 1_800_000_000_000_001
    assert found.renewed == 1_800_000_010_500_000
    assert not found.can_be_asked, "the annotation is of a holder before"


def test_a_lease_that_was_never_held_is_nobody_s() -> None:
    found = record(LockDocument.model_validate_json('{"metadata": {"name": "l", "resourceVersion": "1"}}'))
    assert (found.holder, found.transitions, found.controllers) == ("", 0, ())


def test_what_is_merged_into_a_lease_takes_away_what_is_not_so_any_more() -> None:
    written = lease("l", Record(holder="", duration=15.0, controllers=("a", "b"), version="7", renewed=1_000_001))
    assert written["metadata"] == {
        "name": "l",
        "resourceVersion": "7",
        "annotations": {
            "leases.quarterdeck.dev/controllers": "a,b",
            "leases.quarterdeck.dev/asked-by": None,
            "leases.quarterdeck.dev/answers": None,
            "leases.quarterdeck.dev/precedence": None,
        },
    }
    assert isinstance(written["spec"], dict)
    assert written["spec"]["renewTime"] == "1970-01-01T00:00:01.000001Z"


@asynccontextmanager
async def answering(answer: Callable[[str], bytes]) -> AsyncIterator[KubeLocks]:
    """An apiserver that answers each request, told by its first line, as it is told, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        writer.write(answer(head))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    locks = KubeLocks(f"http://{host}:{port}", None, token=lambda: "secret")
    try:
        yield locks
    finally:
        await locks.close()
        server.close()
        await server.wait_closed()


def response(status: int, body: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def streamed(*events: str) -> bytes:
    """A watch, in chunks that know nothing of lines."""
    text = "".join(f"{each}\n" for each in events).encode()
    pieces = [text[at : at + 50] for at in range(0, len(text), 50)]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (409, Conflict),
        (404, Conflict),
        (403, Unavailable),
        (422, InvalidInput),
        (500, Unavailable),
        (200, Unavailable),
    ],
)
async def test_each_answer_to_a_write_is_told_as_what_it_is(
    status: int, error: type[QuarterdeckError], golden: Golden
) -> None:
    async with answering(lambda _: response(status, "no")) as locks:
        with golden.raises(error):
            await locks.update("l", Record(holder="me", duration=15.0, version="7"))


async def test_who_asks_says_who_it_is(golden: Golden) -> None:
    heads: list[str] = []

    def answer(head: str) -> bytes:
        heads.append(head)
        return response(200, CLIENT_GO)

    async with answering(answer) as locks:
        await locks.read("l")
    golden(heads[0])


async def test_a_watch_tells_of_a_change_as_it_comes_and_of_a_deletion() -> None:
    changed = json.dumps({"type": "MODIFIED", "object": json.loads(CLIENT_GO)})
    async with answering(lambda _: streamed(changed)) as locks:
        found = await locks.changed("l", "6")
        assert found is not None
        assert found.version == "7"
    async with answering(lambda _: streamed(changed.replace("MODIFIED", "DELETED"))) as locks:
        assert await locks.changed("l", "6") is None


async def test_a_watch_that_began_too_long_ago_or_just_ended_looks_what_is_there() -> None:
    expired = json.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}})
    for watch in (streamed(expired), streamed()):
        async with answering(
            lambda head, watch=watch: watch if "watch=true" in head else response(200, CLIENT_GO)
        ) as locks:
            found = await locks.changed("l", "6")
            assert found is not None
            assert found.version == "7"


async def test_a_watch_that_is_refused_is_no_change(golden: Golden) -> None:
    failed = json.dumps({"type": "ERROR", "object": {"code": 500, "message": "etcd is away"}})
    async with answering(lambda _: streamed(failed)) as locks:
        with golden.raises(Unavailable):
            await locks.changed("l", "6")
    async with answering(lambda _: response(403, "no")) as locks:
        with golden.raises(Unavailable):
            await locks.changed("l", "6")


def config(**user: str) -> str:
    authority = create_authority("test-ca", datetime.now(UTC)).certificate
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority-data": base64.b64encode(authority).decode()}
    return dumped(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        }
    )


async def test_a_kubeconfig_with_a_token_is_enough(tmp_path: Path, golden: Golden) -> None:
    (tmp_path / "token").write_text("secret\n")
    for user in ({"token": "secret"}, {"tokenFile": "token"}):
        (tmp_path / "config").write_text(config(**user))
        locks = locks_of(tmp_path / "config")
        with pytest.raises(Unavailable, match="refused"):
            await locks.read("l")
        await locks.close()
    (tmp_path / "token").unlink()
    with golden.raises(Unavailable):
        await locks.read("l")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, NotFound),
        ("{", InvalidInput),
        ("a: b", InvalidInput),
        (config(), InvalidInput),
        (config(token="t").replace("current-context: c", "current-context: x"), InvalidInput),
        (config(tokenFile="gone"), NotFound),
    ],
)
def test_a_kubeconfig_that_is_of_no_use_is_refused(
    tmp_path: Path, text: str | None, error: type[QuarterdeckError], golden: Golden
) -> None:
    if text is not None:
        (tmp_path / "config").write_text(text)
    with golden.raises(error):
        locks_of(tmp_path / "config")


@pytest.mark.parametrize(
    "times",
    [{"duration": 0.0}, {"drift": 1.0}, {"stop_within": -1.0}, {"duration": 5.0}, {"retry": 0.0}],
    ids=str,
)
def test_times_with_which_nobody_could_hold_a_lock_are_refused(times: dict[str, float], golden: Golden) -> None:
    with golden.raises(InvalidInput):
        Timing(**times)
