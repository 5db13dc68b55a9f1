"""Certificates of an existing plane: renewed in time, and those of its kubelets."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from quarterdeck.actions.addresses import apiserver_address, seat_of
from quarterdeck.actions.plane import Plane
from quarterdeck.actions.status import tell_condition
from quarterdeck.addons.applyset import MANAGER
from quarterdeck.api.base import ConditionStatus
from quarterdeck.api.conditions import ConditionReason, ConditionType
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.events import EventReason
from quarterdeck.api.names import few
from quarterdeck.api.operation import OperationType
from quarterdeck.components.settings import CLUSTER_DOMAIN, service_ip
from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.engine.workspace.revisions import takes_nodes
from quarterdeck.kube.nodes import ReservedNames, SigningRequest, nodes, objection, serving_requests
from quarterdeck.kube.port import Address, Refused
from quarterdeck.model.world import World
from quarterdeck.pki.validity import certificates, is_authority, validity
from quarterdeck.stores.port import EventType


@dataclass(kw_only=True)
class CertificateRenewal:
    """A background task: when a third of the life of a certificate is left, all of the plane's are renewed, as by
    ``certs renew``: one replica after the other is restarted with them. Authorities stay. A condition warns of what
    expires within ``WARN``.
    """

    home: Home
    requester: Requester
    every: float = 3600.0
    _last: float = -math.inf

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``. Raises Conflict where the plane was changed concurrently: the next turn retries."""
        now = asyncio.get_running_loop().time()
        if now - self._last < self.every:
            return
        await _tell_expiry(plane)
        if _due(plane):
            await plane.check()
            await operations.change(self.home, renewed(plane.resource), OperationType.APPLY, self.requester)
        self._last = now


def renewed(plane: ControlPlane, *, offline: bool = False) -> ControlPlane:
    """A plane, with new certificates requested. ``offline``: replicas whose own have expired get them although no
    quorum answers.
    """
    spec = plane.spec
    generation = spec.certificates.generation + 1
    newer = spec.certificates.model_copy(update={"generation": generation})
    if not offline:
        return plane.with_spec(certificates=newer)
    rollout = spec.rollout.model_copy(update={"offline_generation": generation})
    return plane.with_spec(certificates=newer, rollout=rollout)


def _due(plane: Plane) -> bool:
    """Whether a renewal is due, and of use: what is issued ends with its authority at the latest."""
    now = datetime.fromtimestamp(plane.clock(), UTC)
    found = {name: validity(pem) for name, pem in certificates(plane.secrets)}
    last = {each.not_after for name, each in found.items() if is_authority(name)}
    leafs = (each for name, each in found.items() if not is_authority(name))
    return any(each.due(now) and each.not_after not in last for each in leafs)


#: How long before a certificate or an authority expires the condition says so. Others are renewed long before.
WARN = timedelta(days=30)


async def _tell_expiry(plane: Plane) -> None:
    now, soon = datetime.fromtimestamp(plane.clock(), UTC), dict[str, datetime]()
    for name, pem in certificates(plane.secrets):
        ends = validity(pem).not_after
        if ends - now < WARN:
            soon[name] = ends
    problems = [f"{name} {'expired' if ends <= now else 'expires'} on {ends:%F}" for name, ends in soon.items()]
    reason = ConditionReason.EXPIRING if soon else ConditionReason.VALID
    status = ConditionStatus.FALSE if soon else ConditionStatus.TRUE
    await tell_condition(plane, ConditionType.CERTIFICATES_VALID, (status, reason, few(problems, _TOLD, "; ")))


#: How many certificates the condition names.
_TOLD = 5
_PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision about a request: approved, or left to a person, and why."""

    request: str
    node: str
    why: str = ""


@dataclass(kw_only=True)
class ApproveNodes:
    """A background task: requests of nodes for serving certificates are approved when they ask only for the node's own
    names. Others are left to a person, and reported once.
    """

    _left: dict[str, str] = field(default_factory=dict)

    async def turn(self, plane: Plane, world: World) -> None:
        """See ``ShortTurn``."""
        ready = next((fact.name for fact in world.replicas if fact.ready), None)
        if ready is None or not takes_nodes(plane.resource):
            return
        apiserver = apiserver_address(plane.memory.replica(ready))
        left = {each.request: each for each in await approve(plane, apiserver, plane.check) if each.why}
        for each in left.values():
            if self._left.get(each.request) != each.why:
                words = f"request {each.request} of {each.node} needs your decision: {each.why}"
                happening = Happening(EventReason.NODE_CERTIFICATE_NOT_APPROVED, words, EventType.WARNING)
                await plane.store.record(happening.event(plane.name, plane.clock()))
        self._left = {name: each.why for name, each in left.items()}


async def approve(plane: Plane, apiserver: Address, check: Callable[[], Awaitable[None]]) -> tuple[Decided, ...]:
    """Decide about each pending request for such a certificate. ``check`` is called before each effect.

    Raises Unavailable when the apiserver does not answer.
    """
    pending = [each for each in await serving_requests(plane.kube, apiserver) if each.pending]
    if not pending:
        return ()
    from quarterdeck.pki.requests import requested  # slow to load, and rarely needed

    known, taken = await nodes(plane.kube, apiserver), _taken(plane)
    decided = []
    for each in pending:
        why = objection(each, requested(each.pem), known, taken)
        if not why:
            await check()
            try:
                await plane.kube.apply(apiserver, f"{_PATH}/{each.metadata.name}/approval", _yes(each), manager=MANAGER)
            except Refused as error:
                why = error.seen
        decided.append(Decided(each.metadata.name, each.spec.username, why))
    return tuple(decided)


def _yes(request: SigningRequest) -> dict[str, JsonValue]:
    """The approval of exactly this request, not of a later one with the same name."""
    condition: JsonValue = {
        "type": "Approved",
        "status": "True",
        "reason": "NodeAsksForItself",
        "message": "quarterdeck: the node requests its own names and addresses, and no other node has them",
    }
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": request.metadata.name, "uid": request.metadata.uid},
        "status": {"conditions": [condition]},
    }


def _taken(plane: Plane) -> ReservedNames:
    """The names of the plane itself: a node with a certificate for one of them could impersonate the plane."""
    seats = (seat_of(each).hosts for each in plane.memory.replicas)
    machines = (each.address for each in plane.machines.values())
    names = {plane.resource.host, service_ip(plane.wanted), "localhost", "kubernetes", "127.0.0.1", "::1"}
    every = {*names, *plane.addresses, *machines, *(each for hosts in seats for each in hosts)}
    return ReservedNames(frozenset(each.lower() for each in every), (CLUSTER_DOMAIN, "svc", plane.resource.host))
