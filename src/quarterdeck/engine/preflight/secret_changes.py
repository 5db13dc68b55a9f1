"""New certificates, and rotations of authorities and keys: what a request comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from quarterdeck.api.operation import OperationType
from quarterdeck.api.plane.certificates import AuthorityUse, Signer
from quarterdeck.components.credentials import Authority, SharedSecrets, uses
from quarterdeck.components.transitions.authorities import with_uses
from quarterdeck.engine import status
from quarterdeck.engine.preflight.key_rotations import examined_key_rotation
from quarterdeck.engine.preflight.local_changes import examined_in_place
from quarterdeck.engine.preflight.moves import require_done
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.preflight.renewal import examined_renewal
from quarterdeck.engine.preflight.requests import (
    Examined,
    RenewCertificates,
    RotateAuthorities,
    RotateKey,
    RotationStage,
)
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.errors import Conflict
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.pki.authority import may_sign_authorities
from quarterdeck.pki.validity import check_certificate


async def examined_secrets(engine: Engine, request: RenewCertificates | RotateAuthorities | RotateKey) -> Examined:
    """Other certificates or keys, with all findings and the forecast.

    Raises Gone, Conflict (another part comes first, the plane moves, or is not up to date yet), PreconditionFailed (an
    authority has expired; its networks are out of reach), and what ``admit`` does.
    """
    match request:
        case RenewCertificates():
            return await examined_renewal(engine, request)
        case RotateAuthorities():
            return await _examined_rotation(engine, request)
        case RotateKey():
            return await examined_key_rotation(engine, request)


async def _examined_rotation(engine: Engine, request: RotateAuthorities) -> Examined:
    """A part of a rotation. Not ``needed`` where nothing is left to do."""
    current = await recorded.existing(engine.home.store, request.name)
    secrets = await secrets_of(engine.home.store, current)
    used = uses(current.spec.certificates)
    wanted = {each: _after(current.name, secrets, each, used[each], request.stage) for each in request.signers}
    changed = current.with_spec(certificates=with_uses(current.spec.certificates, {**used, **wanted}))
    if changed.spec == current.spec:
        await require_in_reach(engine.home, current)
        doing, already = f"rotating authorities of plane {request.name}", "no rotation of them is under way"
        require_done(doing, request.name, already, (await status.look(engine.home, request.name)).plan)
        return Examined(kind=OperationType.ROTATE, wanted=changed, current=current, needed=False)
    found = await examined_in_place(engine, OperationType.ROTATE, current, changed)
    notes = _notes(request, {each: (used[each], use) for each, use in wanted.items()})
    return replace(found, findings=(*found.findings, *notes))


def _after(plane: str, secrets: SharedSecrets, signer: Signer, use: AuthorityUse, stage: RotationStage) -> AuthorityUse:
    """How an authority is used after a part of its rotation."""
    authority = secrets.authority(signer).used(use)
    match stage:
        case RotationStage.BEGIN:
            return _begun(plane, authority, signer)
        case RotationStage.FINISH:
            return AuthorityUse(issuer=use.issuer)
        case RotationStage.BACK:
            return use if use.also is None else AuthorityUse(issuer=use.also)


def _begun(plane: str, authority: Authority, signer: Signer) -> AuthorityUse:
    """A new authority issues, and the former one is trusted as well. Who trusts only the former one verifies servers by
    the cross-signed certificate, or, where the former one may sign no authority, servers keep theirs until the end.
    """
    doing = f"rotating the {signer.value} authority of plane {plane}"
    if authority.use.also is not None:
        seen = "its last rotation is not finished: two authorities are trusted"
        raise Conflict(doing, seen, f"'certs rotate-ca {plane} --finish', or take it back with --back")
    check_certificate(f"{signer.value}-ca", authority.issuer.certificate, datetime.now(UTC))
    former, number = authority.use.issuer, max(each.number for each in authority.known) + 1
    crossed = may_sign_authorities(authority.issuer.certificate)
    serving = former if signer is Signer.KUBERNETES and not crossed else None
    return AuthorityUse(issuer=number, also=former, serving=serving)


def _notes(request: RotateAuthorities, changes: Mapping[Signer, tuple[AuthorityUse, AuthorityUse]]) -> list[Finding]:
    """What users must know of the change of the authority that their own clients trust."""
    before, after = changes.get(Signer.KUBERNETES, (None, None))
    if before is None or after is None or before == after or request.stage is not RotationStage.FINISH:
        return []
    seen = "clients that trust only the former authority, or whose certificate is of it, are refused from then on"
    first = f"first give them new kubeconfigs ('kubeconfig {request.name}'), and join nodes again that joined before"
    return [Finding("authorities", Verdict.WARN, f"{seen}; {first}")]
