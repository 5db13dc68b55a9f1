"""Rotations of keys: what a request comes to."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import OperationPhase, OperationType
from quarterdeck.api.plane.keys import KeyPurpose, KeyUse
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.transitions.keys import with_use
from quarterdeck.engine import status
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.engine.preflight.local_changes import examined_in_place
from quarterdeck.engine.preflight.moves import require_done
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.requests import Examined, RotateKey, RotationStage
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import Conflict, InvalidInput
from quarterdeck.kube.lists import ObjectPart, Page, items
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.stores.port import Store

#: How long those who check tokens may keep the published keys (kubernetes: pkg/serviceaccount, jwt.go). The tokens of
#: pods live as long.
CACHED = timedelta(hours=1)
_LEGACY = "/api/v1/secrets?limit=500&fieldSelector=type%3Dkubernetes.io%2Fservice-account-token"


async def examined_key_rotation(engine: Engine, request: RotateKey) -> Examined:
    """A part of the rotation of a key, with all findings and the forecast. Not ``needed`` where nothing is left to do.

    Raises Gone, InvalidInput (Secrets are not encrypted), Conflict (another part comes first, the next key was
    published less than an hour ago, the plane moves, or is not up to date yet), PreconditionFailed (its networks are
    out of reach).
    """
    store = engine.home.store
    current = await recorded.existing(store, request.name)
    use = current.spec.keys.use(request.purpose)
    wanted = await _after(store, current, request, use)
    changed = current.with_spec(keys=with_use(current.spec.keys, request.purpose, wanted))
    if changed.spec == current.spec:
        await require_in_reach(engine.home, current)
        doing, already = _doing(request), "no rotation of it is under way"
        require_done(doing, request.name, already, (await status.look(engine.home, request.name)).plan)
        return Examined(kind=OperationType.ROTATE, wanted=changed, current=current, needed=False)
    found = await examined_in_place(engine, OperationType.ROTATE, current, changed)
    if (request.purpose, request.stage) == (KeyPurpose.SERVICE_ACCOUNT, RotationStage.FINISH):
        found = replace(found, findings=(*found.findings, await _tokens(engine.home, current)))
    return found


def _doing(request: RotateKey) -> str:
    return f"rotating the {request.purpose} key of plane {request.name}"


async def _after(store: Store, plane: ControlPlane, request: RotateKey, use: KeyUse) -> KeyUse:
    """How a key is used after a part of its rotation."""
    match request.stage:
        case RotationStage.BEGIN:
            return await _begun(store, plane, request, use)
        case RotationStage.FINISH:
            if use.also is not None and use.also > use.current:
                seen = f"key {use.also} signs nothing yet"
                raise Conflict(_doing(request), seen, f"'keys rotate {plane.name} --key {request.purpose}' first")
            return KeyUse(current=use.current)
        case RotationStage.BACK:
            return KeyUse(current=min(use.accepted))


async def _begun(store: Store, plane: ControlPlane, request: RotateKey, use: KeyUse) -> KeyUse:
    if use.also is not None and use.also < use.current:
        seen = "its last rotation is not finished: two keys are accepted"
        next_step = f"'keys rotate {plane.name} --key {request.purpose} --finish', or take it back with --back"
        raise Conflict(_doing(request), seen, next_step)
    if use.also is not None:
        await _require_known_for_long(store, plane, request, use.also)
        return KeyUse(current=use.also, also=use.current)
    number = max(_numbers(await secrets_of(store, plane), request.purpose)) + 1
    if request.purpose is KeyPurpose.SERVICE_ACCOUNT:
        return KeyUse(current=use.current, also=number)
    if not plane.spec.encryption.secrets:
        seen = "spec.encryption.secrets is false: no key encrypts anything"
        raise InvalidInput(_doing(request), seen, "turn encryption on first")
    return KeyUse(current=number, also=use.current)


def _numbers(secrets: SharedSecrets, purpose: KeyPurpose) -> list[int]:
    keys = secrets.encryption_keys if purpose is KeyPurpose.ENCRYPTION else secrets.service_account
    return [each.number for each in keys]


async def _require_known_for_long(store: Store, plane: ControlPlane, request: RotateKey, number: int) -> None:
    """Raise Conflict where the next key was published less than an hour ago: those who check tokens may not have it."""
    published = [
        each.status.finished_at
        for each in await recorded.operations_of(store, plane.name)
        if each.status.phase is OperationPhase.SUCCEEDED
        and each.spec.to is not None
        and number in each.spec.to.spec.keys.use(request.purpose).accepted
    ]
    since = min((each for each in published if each is not None), default=None)
    left = CACHED - (datetime.now(UTC) - since) if since is not None else CACHED
    if left > timedelta(0):
        minutes = -(-left // timedelta(minutes=1))
        seen = f"key {number} is not published for an hour yet, and those who check tokens may keep the keys that long"
        raise Conflict(_doing(request), seen, f"run it again in {minutes} min")


class _Name(ObjectPart):
    namespace: str = ""
    name: str = ""


class _Token(ObjectPart):
    metadata: _Name = _Name()


class _Tokens(Page[_Token]):
    pass


async def _tokens(home: Home, plane: ControlPlane) -> Finding:
    """Which tokens of the former key there may be."""
    seen = "tokens that the former key signed are refused from then on; those of pods live for an hour"

    async with AsyncExitStack() as stack:
        opened = await home.plane(plane, stack)
        apiserver = await ready_apiserver(opened, f"reading tokens of plane {plane.name}")
        found = items(opened.kube, apiserver, _LEGACY, _Tokens)
        names = [f"{each.metadata.namespace}/{each.metadata.name}" async for each in found]
    if names:
        seen += f"; {len(names):,} Secrets have tokens that never expire, such as {names[0]}: first create these again"
    return Finding("tokens", Verdict.WARN, seen)
