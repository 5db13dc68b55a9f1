"""A watch on one member that outlives the connection: every event once, in order, or an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import grpc

from quarterdeck.etcd.calls import Calls
from quarterdeck.etcd.facts import KeyEvent, WatchKind
from quarterdeck.etcd.faults import (
    EtcdCompacted,
    EtcdFault,
    EtcdTimedOut,
    EtcdUnavailable,
    Reason,
    fault,
    fault_of,
    fault_of_ended,
    reason_of,
)
from quarterdeck.etcd.kv import key_value
from quarterdeck.etcd.rpc import kv_pb2, rpc_pb2, rpc_pb2_grpc

#: Without it a member that is cut off from its cluster keeps a watch open and sends nothing.
_REQUIRE_LEADER = (("hasleader", "true"),)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """The watched changes. ``range_end`` as in Get. ``start_revision`` 0: those after the watch was opened.

    ``before``: also the key as it was before each change.
    """

    key: bytes
    range_end: bytes = b""
    start_revision: int = 0
    before: bool = False


class WatchService:
    """The Watch service of one member."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = rpc_pb2_grpc.WatchStub(calls.channel)

    async def revisions(
        self, what: WatchRequest, *, patience: float = 10.0
    ) -> AsyncGenerator[tuple[KeyEvent, ...], None]:
        """The changes, one tuple for each revision: the changes of one transaction stay together.

        After a break the watch continues after the last event that came (not at the revision of the response header,
        which may be ahead of events that are still in flight). Raises Unavailable when the member does not serve the
        watch (again) within ``patience`` seconds, and EtcdCompacted when the needed history was compacted in the
        meantime. Close it (``contextlib.aclosing``) when done.
        """
        doing = self._calls.doing("watching keys")
        loop = asyncio.get_running_loop()
        start = what.start_revision
        pause, give_up, why = _FIRST_PAUSE, loop.time() + patience, None
        while True:
            try:
                async with aclosing(self._responses(what, start, patience, doing)) as responses:
                    async for response in responses:
                        pause, give_up, why = _FIRST_PAUSE, loop.time() + patience, None
                        if response.created and start == 0:
                            start = response.header.revision + 1
                        for events in _by_revision(response):
                            start = events[0].revision + 1
                            yield events
            except (EtcdUnavailable, EtcdTimedOut) as error:
                # A refusal says more than the broken streams that may result from it.
                why = error if why is None or error.reason is not Reason.UNREACHABLE else why
            if why is not None and loop.time() + pause > give_up:
                raise why
            await asyncio.sleep(pause)  # between two attempts to connect
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _responses(
        self, what: WatchRequest, start: int, patience: float, doing: str
    ) -> AsyncGenerator[rpc_pb2.WatchResponse, None]:
        """The responses of one stream, until it breaks. Raises EtcdFault: it never just ends."""
        call = self._stub.Watch(metadata=_REQUIRE_LEADER)
        try:
            async with asyncio.timeout(patience):
                await call.write(_create(what, start))
                response = await call.read()
            while isinstance(response, rpc_pb2.WatchResponse):  # and not grpc.aio.EOF
                if response.canceled:
                    raise _cancelled(response, doing)
                yield response
                response = await call.read()
            raise fault(doing, Reason.UNREACHABLE, "the member ended the stream")
        except grpc.aio.AioRpcError as error:
            raise fault_of(error, doing) from error
        except asyncio.InvalidStateError as error:  # it had ended before the request was written
            raise await fault_of_ended(call, doing) from error
        except TimeoutError as error:
            raise fault(doing, Reason.DEADLINE, f"no answer within {patience:g} s") from error
        finally:
            call.cancel()


def _create(what: WatchRequest, start: int) -> rpc_pb2.WatchRequest:
    return rpc_pb2.WatchRequest(
        create_request=rpc_pb2.WatchCreateRequest(
            key=what.key, range_end=what.range_end, start_revision=start, prev_kv=what.before
        )
    )


def _cancelled(response: rpc_pb2.WatchResponse, doing: str) -> EtcdFault:
    if response.compact_revision:
        return EtcdCompacted(doing, response.compact_revision)
    why = response.cancel_reason or "the member ended the watch"
    return fault(doing, reason_of(grpc.StatusCode.UNAVAILABLE, why), why)


def _by_revision(response: rpc_pb2.WatchResponse) -> list[tuple[KeyEvent, ...]]:
    """The events of a response; without fragments (never requested) it holds whole revisions."""
    revisions: dict[int, list[KeyEvent]] = {}
    for message in response.events:
        event = _event(message)
        revisions.setdefault(event.revision, []).append(event)
    return [tuple(events) for _, events in sorted(revisions.items())]


def _event(message: kv_pb2.Event) -> KeyEvent:
    return KeyEvent(
        kind=WatchKind.DELETE if message.type == kv_pb2.Event.DELETE else WatchKind.PUT,
        now=key_value(message.kv),
        before=key_value(message.prev_kv) if message.HasField("prev_kv") else None,
    )
