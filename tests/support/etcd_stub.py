"""A member that is played by the test, in this process: a gRPC server with mutual TLS and a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import grpc

from quarterdeck.components.credentials import KeyPair
from quarterdeck.etcd.calls import ClientTls
from quarterdeck.etcd.client import EtcdMember
from quarterdeck.etcd.rpc import rpc_pb2, rpc_pb2_grpc
from quarterdeck.pki.authority import create_authority, issue
from quarterdeck.pki.certificate import CertificateRequest, Usage

Play = Callable[[AsyncIterator[rpc_pb2.WatchRequest]], AsyncIterator[rpc_pb2.WatchResponse]]


class Scripted(rpc_pb2_grpc.MaintenanceServicer, rpc_pb2_grpc.WatchServicer, rpc_pb2_grpc.KVServicer):
    """Plays one scripted act for each call, the last one again and again."""

    def __init__(
        self,
        *,
        statuses: Sequence[Callable[[], Awaitable[rpc_pb2.StatusResponse]]] = (),
        puts: Sequence[Callable[[], Awaitable[rpc_pb2.PutResponse]]] = (),
        snapshot: Sequence[rpc_pb2.SnapshotResponse] = (),
        watches: Sequence[Play] = (),
    ) -> None:
        self.statuses, self.puts, self.watches = list(statuses), list(puts), list(watches)
        self.snapshot = snapshot
        self.calls: list[str] = []
        self.watched: list[rpc_pb2.WatchCreateRequest] = []

    async def Status(self, request, context):
        self.calls.append("status")
        return await self._act(self.statuses, context)

    async def Put(self, request, context):
        self.calls.append("put")
        return await self._act(self.puts, context)

    async def Snapshot(self, request, context):
        for part in self.snapshot:
            yield part

    async def Watch(self, request_iterator, context):
        request = await anext(request_iterator)
        self.watched.append(request.create_request)
        play = self.watches.pop(0) if len(self.watches) > 1 else self.watches[0]
        try:
            async for response in play(request_iterator):
                yield response
        except Refusal as refusal:
            await context.abort(refusal.code, refusal.details)

    async def _act(self, script, context):
        act = script.pop(0) if len(script) > 1 else script[0]
        try:
            return await act()
        except Refusal as refusal:
            await context.abort(refusal.code, refusal.details)


class Refusal(Exception):
    """What an act raises to fail the call."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code, self.details = code, details


@dataclass(frozen=True)
class Identities:
    """What a member and its client prove themselves with, signed by an authority of their own."""

    member: KeyPair
    client: ClientTls

    @classmethod
    def new(cls) -> Identities:
        now, day = datetime.now(UTC), timedelta(days=1)
        authority = create_authority("etcd-ca", now)
        serving = CertificateRequest(
            common_name="member", usage=Usage.SERVER, lifetime=day, ip_addresses=("127.0.0.1",), dns_names=("member",)
        )
        asking = CertificateRequest(common_name="client", usage=Usage.CLIENT, lifetime=day)
        client = ClientTls(authority.certificate, issue(authority, asking, now))
        return cls(issue(authority, serving, now), client)


@asynccontextmanager
async def served(
    script: Scripted, identities: Identities | None = None, *, deadline: float = 5.0, caller: ClientTls | None = None
) -> AsyncIterator[EtcdMember]:
    """The client of a member that plays ``script``; ``caller`` in place of the identity that fits."""
    identities = identities or Identities.new()
    member, client = identities.member, identities.client
    server = grpc.aio.server()
    for add in (
        rpc_pb2_grpc.add_MaintenanceServicer_to_server,
        rpc_pb2_grpc.add_WatchServicer_to_server,
        rpc_pb2_grpc.add_KVServicer_to_server,
    ):
        add(script, server)
    credentials = grpc.ssl_server_credentials([(member.key, member.certificate)], client.ca, require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        async with EtcdMember(f"https://127.0.0.1:{port}", caller or client, deadline=deadline) as made:
            yield made
    finally:
        await server.stop(grace=None)
