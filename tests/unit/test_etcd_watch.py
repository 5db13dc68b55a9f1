"""A watch delivers every event once and in order, over broken connections, or says that it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc
import pytest
from support.etcd_stub import Play, Refusal, Scripted, served
from support.golden import Golden

from quarterdeck.errors import Unavailable
from quarterdeck.etcd.facts import WatchKind
from quarterdeck.etcd.faults import EtcdCompacted
from quarterdeck.etcd.rpc import kv_pb2, rpc_pb2
from quarterdeck.etcd.watch import WatchRequest

EVERYTHING = WatchRequest(key=b"\0", range_end=b"\0")


def created(revision: int) -> rpc_pb2.WatchResponse:
    return rpc_pb2.WatchResponse(created=True, header=rpc_pb2.ResponseHeader(revision=revision))


def changed(*events: tuple[bytes, int], header: int = 0) -> rpc_pb2.WatchResponse:
    return rpc_pb2.WatchResponse(
        header=rpc_pb2.ResponseHeader(revision=header or events[-1][1]),
        events=[kv_pb2.Event(kv=kv_pb2.KeyValue(key=key, mod_revision=revision)) for key, revision in events],
    )


def saying(*responses: rpc_pb2.WatchResponse, then: Exception | None = None) -> Play:
    """An act: these responses, and then the stream breaks, or stays open."""

    async def play(requests: AsyncIterator[rpc_pb2.WatchRequest]) -> AsyncIterator[rpc_pb2.WatchResponse]:
        for response in responses:
            yield response
        if then is not None:
            raise then
        await anext(requests, None)  # until the client goes

    return play


BREAK = Refusal(grpc.StatusCode.UNAVAILABLE, "Socket closed")


async def first(script: Scripted, count: int, what: WatchRequest = EVERYTHING, patience: float = 5.0):
    """The first ``count`` revisions that a watch delivers, as [(revision, keys)]."""
    seen = []
    async with (
        asyncio.timeout(20),
        served(script) as member,
        aclosing(member.watch.revisions(what, patience=patience)) as revisions,
    ):
        async for events in revisions:
            seen.append((events[0].revision, [event.now.key for event in events]))
            if len(seen) == count:
                break
    return seen


async def test_the_events_of_one_transaction_come_together() -> None:
    script = Scripted(watches=[saying(created(3), changed((b"a", 4), (b"b", 4), (b"a", 5)))])
    assert await first(script, 2) == [(4, [b"a", b"b"]), (5, [b"a"])]


async def test_after_a_break_it_goes_on_behind_the_last_event_not_at_the_header() -> None:
    script = Scripted(
        watches=[
            # The header is ahead: events up to 9 are still to come when the stream breaks.
            saying(created(3), changed((b"a", 4), header=9), then=BREAK),
            saying(created(9), changed((b"b", 5), (b"c", 9))),
        ]
    )
    assert [revision for revision, _ in await first(script, 3)] == [4, 5, 9]
    assert [request.start_revision for request in script.watched] == [0, 5]


async def test_a_watch_that_broke_before_any_event_misses_none() -> None:
    script = Scripted(watches=[saying(created(7), then=BREAK), saying(created(9), changed((b"a", 8)))])
    assert await first(script, 1) == [(8, [b"a"])]
    assert [request.start_revision for request in script.watched] == [0, 8]


async def test_a_given_start_is_kept_until_an_event_comes() -> None:
    script = Scripted(watches=[saying(created(7), then=BREAK), saying(created(9), changed((b"a", 8)))])
    await first(script, 1, WatchRequest(key=b"a", start_revision=2))
    assert [request.start_revision for request in script.watched] == [2, 2]


async def test_compacted_history_is_an_error_that_tells_from_where_to_read(golden: Golden) -> None:
    cancelled = rpc_pb2.WatchResponse(canceled=True, compact_revision=40)
    script = Scripted(watches=[saying(created(3), then=BREAK), saying(created(50), cancelled)])
    with golden.raises(EtcdCompacted) as caught:
        await first(script, 1)
    assert caught.value.compact_revision == 40


async def test_a_member_without_a_leader_is_given_up_when_patience_ends(golden: Golden) -> None:
    script = Scripted(watches=[saying(then=Refusal(grpc.StatusCode.UNAVAILABLE, "etcdserver: no leader"))])
    with golden.raises(Unavailable):
        await first(script, 1, patience=0.3)
    assert len(script.watched) > 1


async def test_a_refusal_is_told_rather_than_the_breaks_that_come_of_it(golden: Golden) -> None:
    learner = Refusal(grpc.StatusCode.FAILED_PRECONDITION, "etcdserver: rpc not supported for learner")
    script = Scripted(watches=[saying(then=learner), saying(then=BREAK)])
    with golden.raises(Unavailable):
        await first(script, 1, patience=1.5)


async def test_a_member_that_never_answers_is_given_up_when_patience_ends() -> None:
    with pytest.raises(Unavailable):
        await first(Scripted(watches=[saying()]), 1, patience=0.2)


async def test_a_stream_that_the_member_ends_again_and_again_is_given_up(golden: Golden) -> None:
    async def ends(requests: AsyncIterator[rpc_pb2.WatchRequest]) -> AsyncIterator[rpc_pb2.WatchResponse]:
        for _ in ():
            yield rpc_pb2.WatchResponse()

    with golden.raises(Unavailable):
        await first(Scripted(watches=[ends]), 1, patience=1.0)


async def test_a_refusal_is_not_tried_again() -> None:
    refused = rpc_pb2.WatchResponse(canceled=True, cancel_reason="etcdserver: permission denied")
    script = Scripted(watches=[saying(refused)])
    with pytest.raises(Exception, match="permission denied"):
        await first(script, 1)
    assert len(script.watched) == 1


async def test_a_deletion_is_told_with_the_key_as_it_was() -> None:
    gone = kv_pb2.Event(
        type=kv_pb2.Event.DELETE,
        kv=kv_pb2.KeyValue(key=b"a", mod_revision=4),
        prev_kv=kv_pb2.KeyValue(key=b"a", value=b"last", mod_revision=3),
    )
    script = Scripted(watches=[saying(created(3), rpc_pb2.WatchResponse(events=[gone]))])
    what = WatchRequest(key=b"a", before=True)
    async with served(script) as member, aclosing(member.watch.revisions(what)) as revisions:
        (event,) = await anext(revisions)
    assert event.kind is WatchKind.DELETE
    assert event.before is not None
    assert event.before.value == b"last"
    assert script.watched[0].prev_kv
