"""One channel to one member, and its calls: with deadlines and descriptive errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import grpc

from quarterdeck.components.credentials import KeyPair
from quarterdeck.errors import InvalidInput
from quarterdeck.etcd.faults import Reason, fault_of

Request = TypeVar("Request")
Response = TypeVar("Response")

#: After these nothing was done, or repeating a read does no harm; they occur when a member restarts or an election
#: ends, and disappear at the second try.
_PASSING = frozenset({Reason.UNREACHABLE, Reason.LEADER_CHANGED})

#: Bytes of the longest answer to a read of keys: it is held in memory, and etcd bounds nothing but the number of keys.
LONGEST_ANSWER = 8 << 20

_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{"service": "etcdserverpb.KV", "method": "Range"}],
                "maxResponseMessageBytes": LONGEST_ANSWER,
            }
        ]
    }
)

_OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),  # closing the channel closes the connection
    ("grpc.max_receive_message_length", -1),
    ("grpc.service_config", _SERVICE_CONFIG),
    ("grpc.initial_reconnect_backoff_ms", 100),  # a member that comes back is detected within a second
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.keepalive_time_ms", 10_000),  # etcd allows 5 s and more
    ("grpc.keepalive_timeout_ms", 5_000),
    # Bytes that a member may send ahead. A window that gRPC chooses itself grew to 300 MB while a snapshot was written
    # to a slow disk; this one lets 40 MB a second through where the round trip takes 100 ms.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 4 << 20),
)

#: What the certificate at a socket must be for: gRPC would take the socket's path.
_OF_SOCKETS = (("grpc.ssl_target_name_override", "localhost"),)


@dataclass(frozen=True, slots=True)
class ClientTls:
    """The trusted CA (PEM) of a client, and its own certificate."""

    ca: bytes
    client: KeyPair


class Calls:
    """Calls to the member at ``url`` (see ``target_of``). Must be made where an event loop runs."""

    def __init__(self, url: str, tls: ClientTls, deadline: float) -> None:
        self.url = url
        self.deadline = deadline
        credentials = grpc.ssl_channel_credentials(tls.ca, tls.client.key, tls.client.certificate)
        target = target_of(url)
        options = (*_OPTIONS, *(_OF_SOCKETS if target.startswith("unix:") else ()))
        self.channel = grpc.aio.secure_channel(target, credentials, options=options)

    async def one(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        doing: str,
        *,
        deadline: float | None = None,
        idempotent: bool = False,
    ) -> Response:
        """One request, one response, within ``deadline`` seconds (the member's by default).

        A call that is ``idempotent`` is made a second time, within the same deadline, when the first met a
        connection that was just breaking, or the end of an election. Raises EtcdFault.
        """
        doing = self.doing(doing)
        loop = asyncio.get_running_loop()
        until = loop.time() + (self.deadline if deadline is None else deadline)
        try:
            return await method(request, timeout=until - loop.time())
        except grpc.aio.AioRpcError as error:
            first = fault_of(error, doing)
            if not idempotent or first.reason not in _PASSING:
                raise first from error
        try:
            return await method(request, timeout=until - loop.time())
        except grpc.aio.AioRpcError as error:
            raise fault_of(error, doing) from error

    async def stream(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Request, Response],
        request: Request,
        doing: str,
        *,
        deadline: float,
    ) -> AsyncGenerator[Response, None]:
        """One request, many responses, all within ``deadline`` seconds. Raises EtcdFault."""
        call = method(request, timeout=deadline)
        try:
            async for response in call:
                yield response
        except grpc.aio.AioRpcError as error:
            raise fault_of(error, self.doing(doing)) from error
        finally:
            call.cancel()

    def doing(self, what: str) -> str:
        """The action with the member's address, for errors."""
        return f"{what} at etcd member {self.url}"


def target_of(url: str) -> str:
    """The gRPC target for a client URL, https://host:port or unixs:///path of a socket: that one address, no balancer.
    Raises InvalidInput.
    """
    parts = urlsplit(url)
    if parts.scheme == "unixs" and parts.path and not parts.netloc:
        return f"unix:{parts.path}"
    if parts.scheme != "https" or parts.hostname is None or parts.port is None:
        raise InvalidInput(f"reading the etcd client URL {url!r}", "it is not of the form https://host:port")
    if ":" in parts.hostname:
        return f"ipv6:[{parts.hostname}]:{parts.port}"
    if parts.hostname.replace(".", "").isdigit():
        return f"ipv4:{parts.hostname}:{parts.port}"
    return f"dns:///{parts.hostname}:{parts.port}"
