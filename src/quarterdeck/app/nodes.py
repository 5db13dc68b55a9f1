"""Worker nodes of a plane: join tokens, joined nodes, and pending certificate requests."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.addons.applyset import MANAGER
from quarterdeck.addons.nodes import GROUP
from quarterdeck.components.kubeconfig import Server, token_kubeconfig
from quarterdeck.components.settings import url
from quarterdeck.engine.background import certificates
from quarterdeck.engine.background.certificates import Decided
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.revisions import takes_nodes
from quarterdeck.engine.workspace.settings import endpoint_port
from quarterdeck.errors import InvalidInput, NotFound, PreconditionFailed
from quarterdeck.kube.nodes import Node, TokenSecret, nodes, token_secrets
from quarterdeck.kube.port import Address
from quarterdeck.pki.authority import public_key_hash
from quarterdeck.pki.requests import BootstrapToken, create_token, is_token_id

#: Longest lifetime of a token: its holder can add nodes.
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=365)
_SECRETS = "/api/v1/namespaces/kube-system/secrets"
_PREFIX = "bootstrap-token-"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A new token, which cannot be read later. ``command`` joins a machine with kubeadm, ``kubeconfig`` (YAML) a
    kubelet by itself; both contain the token. ``hash`` is that of the plane's authority.
    """

    id: str
    token: str = field(repr=False)
    ends: datetime
    server: str
    hash: str
    command: str = field(repr=False)
    kubeconfig: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFacts:
    """A token of a plane, by its id. ``ends``: None if it never does. ``uses``: its allowed uses."""

    id: str
    ends: datetime | None
    uses: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """A node. ``ready``: None while its kubelet reports nothing. ``addresses``: those that are IP addresses."""

    name: str
    ready: bool | None
    schedulable: bool
    version: str
    addresses: tuple[str, ...]
    since: datetime | None


class WorkerNodes:
    """The worker nodes of the planes of an open home. All calls raise Gone when no plane has that name, and Unavailable
    when none of its apiservers is ready.
    """

    def __init__(self, home: Home) -> None:
        """The caller closes ``home``."""
        self._home = home

    async def make_token(self, name: str, *, ttl: timedelta, description: str) -> NewToken:
        """Create a token with which nodes can join a plane for this long. Only the result contains it.

        Raises InvalidInput for an invalid lifetime, PreconditionFailed for a plane without bootstrap tokens.
        """
        doing = f"making a token for plane {name}"
        if not SHORTEST <= ttl <= LONGEST:
            raise InvalidInput(doing, f"its lifetime is {ttl}", "give from 1m to 365d, such as 24h")
        async with self._asked(name, doing) as (plane, apiserver):
            _require_joinable(plane, doing)
            token, ends = create_token(), datetime.now(UTC).replace(microsecond=0) + ttl
            secret = _token_secret(token, ends, description)
            await plane.kube.apply(apiserver, f"{_SECRETS}/{_PREFIX}{token.id}", secret, manager=MANAGER)
            resource, authority = plane.resource, plane.secrets.kubernetes_ca
            server, pinned = url(resource.host, endpoint_port(resource)), public_key_hash(authority.issuer.certificate)
            where = server.removeprefix("https://")
            config = token_kubeconfig(name, "kubelet-bootstrap", Server(url=server, ca=authority.bundle), token.text)
            return NewToken(
                id=token.id,
                token=token.text,
                ends=ends,
                server=server,
                hash=pinned,
                command=f"kubeadm join {where} --token {token.text} --discovery-token-ca-cert-hash {pinned}",
                kubeconfig=config,
            )

    async def tokens(self, name: str) -> tuple[TokenFacts, ...]:
        """The tokens of a plane, without their secrets."""
        async with self._asked(name, f"listing the tokens of plane {name}") as (plane, apiserver):
            found = await token_secrets(plane.kube, apiserver)
        return tuple(sorted(map(_token, found), key=lambda each: each.id))

    async def delete_token(self, name: str, token: str) -> None:
        """Revoke a token, by its id. Raises NotFound."""
        doing = f"deleting a token of plane {name}"
        if not is_token_id(token):
            raise InvalidInput(doing, "that is not a token id", f"see 'node token list {name}'")
        async with self._asked(name, doing) as (plane, apiserver):
            found = (each for each in await token_secrets(plane.kube, apiserver) if each.text("token-id") == token)
            secret = next(found, None)
            path = f"{_SECRETS}/{secret.metadata.name}" if secret is not None else ""
            if secret is None or not await plane.kube.delete(apiserver, path, uid=secret.metadata.uid):
                raise NotFound(doing, f"token {token} does not exist", f"see 'node token list {name}'")

    async def list(self, name: str) -> tuple[NodeFacts, ...]:
        """All nodes of a plane, as its API lists them now."""
        async with self._asked(name, f"listing the nodes of plane {name}") as (plane, apiserver):
            found = await nodes(plane.kube, apiserver)
        return tuple(sorted(map(_node, found), key=lambda each: each.name))

    async def approve(self, name: str) -> tuple[Decided, ...]:
        """Decide on pending certificate requests of nodes, as a manager does every few seconds."""

        async def nobody_else() -> None:
            """Two processes that approve the same request do no harm."""

        async with self._asked(name, f"approving nodes of plane {name}") as (plane, apiserver):
            return await certificates.approve(plane, apiserver, nobody_else)

    @asynccontextmanager
    async def _asked(self, name: str, doing: str) -> AsyncIterator[tuple[Plane, Address]]:
        """A plane and one of its apiservers."""
        await require_plane_in_reach(self._home, name)
        async with open_plane(self._home, name) as plane:
            yield plane, await ready_apiserver(plane, doing)


def _token_secret(token: BootstrapToken, ends: datetime, description: str) -> dict[str, JsonValue]:
    """The secret that stores a token in a plane."""
    fields = {
        "auth-extra-groups": GROUP,
        "description": description,
        "expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "token-id": token.id,
        "token-secret": token.secret,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{_PREFIX}{token.id}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in fields.items()},
    }


def _require_joinable(plane: Plane, doing: str) -> None:
    """Raise PreconditionFailed for a plane without bootstrap tokens, or whose replicas do not all accept them yet."""
    if not takes_nodes(plane.resource):
        why = "it accepts no bootstrap tokens (spec.nodes.bootstrap)"
        raise PreconditionFailed(doing, why, "set spec.nodes.bootstrap to true, and apply that")
    lacking = [each.name for each in plane.memory.replicas if not plane.template_of(each).node_bootstrap]
    if lacking:
        raise PreconditionFailed(doing, f"{', '.join(lacking)} accepts no tokens yet", f"see 'wait {plane.name}'")


def _token(secret: TokenSecret) -> TokenFacts:
    uses = tuple(each for each in ("authentication", "signing") if secret.text(f"usage-bootstrap-{each}") == "true")
    return TokenFacts(
        id=secret.text("token-id"),
        ends=_moment(secret.text("expiration")),
        uses=uses,
        description=secret.text("description"),
    )


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC) if text else None
    except ValueError:
        return None


def _node(node: Node) -> NodeFacts:
    return NodeFacts(
        name=node.name,
        ready=node.ready,
        schedulable=not node.spec.unschedulable,
        version=node.status.info.version,
        addresses=tuple(each.address for each in node.status.addresses if each.type in ("InternalIP", "ExternalIP")),
        since=node.metadata.created,
    )
