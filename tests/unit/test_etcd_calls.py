"""How one member is called: deadlines always, a second try only where it can do no harm."""

from __future__ import annotations

import asyncio
import hashlib

import grpc
import pytest
from support.etcd_stub import Identities, Refusal, Scripted, served
from support.golden import Golden

from quarterdeck.components.credentials import KeyPair
from quarterdeck.errors import Corrupt, InvalidInput, TimedOut, Unavailable
from quarterdeck.etcd.calls import ClientTls, target_of
from quarterdeck.etcd.kv import Put, prefix_end
from quarterdeck.etcd.rpc import rpc_pb2

DATABASE = b"page" * 512


async def fine() -> rpc_pb2.StatusResponse:
    return rpc_pb2.StatusResponse(
        header=rpc_pb2.ResponseHeader(cluster_id=7, member_id=8, revision=9),
        version="3.6.16",
        leader=8,
        raftIndex=11,
        raftAppliedIndex=10,
    )


async def broken() -> rpc_pb2.StatusResponse:
    raise Refusal(grpc.StatusCode.UNAVAILABLE, "Socket closed")


async def silent() -> rpc_pb2.StatusResponse:
    await asyncio.sleep(60)
    return rpc_pb2.StatusResponse()


async def broken_put() -> rpc_pb2.PutResponse:
    raise Refusal(grpc.StatusCode.UNAVAILABLE, "Socket closed")


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://127.0.0.1:2379", "ipv4:127.0.0.1:2379"),
        ("https://[::1]:2379", "ipv6:[::1]:2379"),
        ("https://etcd-0.east:2379", "dns:///etcd-0.east:2379"),
    ],
)
def test_a_url_leads_to_one_address(url: str, target: str) -> None:
    assert target_of(url) == target


@pytest.mark.parametrize("url", ["http://127.0.0.1:2379", "127.0.0.1:2379", "https://127.0.0.1"])
def test_a_url_without_tls_or_port_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="https://host:port"):
        target_of(url)


def test_a_key_is_never_shown() -> None:
    assert "secret" not in repr(ClientTls(b"ca", KeyPair(b"cert", b"secret")))


@pytest.mark.parametrize(("prefix", "end"), [(b"/a", b"/b"), (b"/a\xff", b"/b"), (b"\xff\xff", b"\0"), (b"", b"\0")])
def test_a_prefix_ends_before_the_next_one(prefix: bytes, end: bytes) -> None:
    assert prefix_end(prefix) == end


async def test_a_status_comes_as_it_was_said() -> None:
    async with served(Scripted(statuses=[fine])) as member:
        status = await member.maintenance.status()
    assert (status.cluster_id, status.member_id, status.raft_index, status.raft_applied_index) == (7, 8, 11, 10)
    assert status.is_leader
    assert not status.is_learner


async def test_a_read_on_a_breaking_connection_is_tried_a_second_time() -> None:
    script = Scripted(statuses=[broken, fine])
    async with served(script) as member:
        assert (await member.maintenance.status()).member_id == 8
    assert script.calls == ["status", "status"]


async def test_a_read_is_not_tried_a_third_time(golden: Golden) -> None:
    script = Scripted(statuses=[broken])
    async with served(script) as member:
        with golden.raises(Unavailable):
            await member.maintenance.status()
    assert script.calls == ["status", "status"]


async def test_a_write_is_never_tried_twice() -> None:
    script = Scripted(puts=[broken_put])
    async with served(script) as member:
        with pytest.raises(Unavailable):
            await member.kv.put(Put(b"key", b"value"))
    assert script.calls == ["put"]


async def test_a_silent_member_is_given_up_at_the_deadline() -> None:
    async with served(Scripted(statuses=[silent]), deadline=0.2) as member:
        async with asyncio.timeout(5):
            with pytest.raises(TimedOut):
                await member.maintenance.status()


@pytest.mark.parametrize("foreign", ["client", "member"])
async def test_a_member_and_a_client_of_different_authorities_do_not_talk(foreign: str) -> None:
    own, other = Identities.new(), Identities.new()
    if foreign == "client":
        caller = ClientTls(own.client.ca, other.client.client)
    else:
        caller = ClientTls(other.client.ca, own.client.client)
    script = Scripted(statuses=[fine])
    async with served(script, own, caller=caller, deadline=2.0) as member:
        with pytest.raises(Unavailable):
            await member.maintenance.status()
    assert script.calls == []


async def taken(*blobs: bytes) -> bytes:
    parts = [rpc_pb2.SnapshotResponse(blob=blob) for blob in blobs]
    async with served(Scripted(snapshot=parts)) as member:
        return b"".join([part async for part in member.maintenance.snapshot()])


async def test_a_snapshot_is_the_database_and_its_hash() -> None:
    digest = hashlib.sha256(DATABASE).digest()
    assert await taken(DATABASE[:1000], DATABASE[1000:], digest) == DATABASE + digest


async def test_a_hash_that_comes_in_pieces_is_still_the_hash() -> None:
    digest = hashlib.sha256(DATABASE).digest()
    assert await taken(DATABASE + digest[:5], digest[5:]) == DATABASE + digest


@pytest.mark.parametrize(
    "blobs",
    [
        pytest.param((DATABASE,), id="cut before the hash"),
        pytest.param((DATABASE, hashlib.sha256(DATABASE).digest()[:20]), id="cut within the hash"),
        pytest.param((DATABASE[:-512], hashlib.sha256(DATABASE).digest()), id="a page is missing"),
        pytest.param((), id="nothing came"),
        pytest.param((hashlib.sha256(b"").digest(),), id="the hash of nothing"),
    ],
)
async def test_a_cut_snapshot_is_never_taken_for_whole(blobs: tuple[bytes, ...]) -> None:
    with pytest.raises(Corrupt):
        await taken(*blobs)
