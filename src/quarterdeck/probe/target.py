"""The target of a probe, and its clients."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from quarterdeck.errors import InvalidInput, QuarterdeckError, Unavailable
from quarterdeck.sites.ssh.hosts import Login

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")


class SourceLost(QuarterdeckError):
    """The source host of the probe is unreachable. That is no fact about the plane, so it is not an Unavailable, which
    clients count as a failed request.
    """

    exit_code = Unavailable.exit_code


class ClientKind(StrEnum):
    """The kinds of clients. None of them retries (see ``client`` for the one retry that HTTP itself specifies)."""

    WRITER = "writer"  # sequential writes of unique values, each read back
    READER = "reader"  # linearizable reads, never older than the last write that was acknowledged
    WATCHER = "watcher"  # sees every write once and in order, over HTTP/1.1 and over HTTP/2
    NEW_CONNECTION = "new-connection"  # a new connection per request, the name resolved again after its TTL
    KEEP_ALIVE = "keep-alive"  # keeps its connection for as long as the server does
    PINNED = "pinned"  # resolves the name once and never again
    HTTP2 = "http2"  # keeps an HTTP/2 connection, as kubectl and client-go do


#: The number of clients of each kind: about 160 requests a second in all at the default rate.
DEFAULT_CLIENTS: tuple[tuple[ClientKind, int], ...] = (
    (ClientKind.WRITER, 2),
    (ClientKind.READER, 2),
    (ClientKind.WATCHER, 2),
    (ClientKind.NEW_CONNECTION, 1),
    (ClientKind.KEEP_ALIVE, 1),
    (ClientKind.PINNED, 1),
    (ClientKind.HTTP2, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTarget:
    """A kube-apiserver's endpoint, as in a kubeconfig.

    ``host`` is the name that the serving certificate is checked against. Connections go to ``address`` if one is given,
    else to the addresses of ``host`` from the first of ``dns_servers`` (address, port) that answers, else to those from
    the resolver of the source host.
    """

    host: str
    port: int
    ca_pem: str
    client_cert_pem: str
    client_key_pem: str = field(repr=False)
    dns_servers: tuple[tuple[str, int], ...] = ()
    address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSettings:
    """The settings of a probe. ``rate`` is in requests per second and client, ``timeout`` in seconds per request, and
    for the last events to reach the watchers at the end.

    ``id`` makes the probe's namespace (``quarterdeck-probe-<id>``) unique. Each writer writes to ``slots`` objects in
    turn, so that a write of unknown outcome that arrives late overwrites nothing newer.
    """

    id: str
    rate: float = 20.0
    timeout: float = 10.0
    slots: int = 32
    clients: tuple[tuple[ClientKind, int], ...] = DEFAULT_CLIENTS

    def __post_init__(self) -> None:
        if not _LABEL.fullmatch(self.id):
            raise InvalidInput("setting up the probe", f"{self.id!r} is not a DNS label of at most 32 characters")
        if not 0 < self.rate <= 1000:
            raise InvalidInput("setting up the probe", f"a rate of {self.rate:g}", "use 0 < rate <= 1000 per second")
        if self.count(ClientKind.WRITER) < 1:
            raise InvalidInput("setting up the probe", "no writer", "the other clients follow what a writer writes")

    @property
    def namespace(self) -> str:
        """The namespace of all objects of the probe."""
        return f"quarterdeck-probe-{self.id}"

    def count(self, kind: ClientKind) -> int:
        """The number of clients of a kind."""
        return dict(self.clients).get(kind, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A host that makes the clients' connections, reached over ssh. ``name``: SITE/HOST, for people."""

    name: str
    login: Login


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeConfig:
    """The whole input of a worker; it has secrets, so it only ever travels through a pipe. No ``source``: this host."""

    target: ProbeTarget
    settings: ProbeSettings
    source: Source | None = None
