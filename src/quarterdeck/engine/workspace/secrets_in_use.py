"""The certificate authorities and keys of a plane: made before a revision uses them, and how a client uses them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from pydantic import SecretStr

from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.certificates import AuthorityUse, Certificates, Signer
from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.api.revision import ReplicaTemplate
from quarterdeck.components.credentials import Authority, SharedSecrets, uses
from quarterdeck.components.template import Revisions
from quarterdeck.components.transitions.authorities import common
from quarterdeck.engine.workspace import revisions
from quarterdeck.engine.workspace.belongings import secrets_of
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import with_authorities, with_keys, with_manager
from quarterdeck.stores.port import Lease, Store, amend


async def secrets_in_use(store: Store, plane: ControlPlane, known: Revisions | None = None) -> SharedSecrets:
    """The plane's secrets, as clients use them that meet replicas of all its revisions. (An authority that was asked
    for is made when the plane is driven; until then nobody has anything of it.) Raises what ``secrets_of`` does.
    """
    found = known or await revisions.known(store, plane, guess=True)
    secrets = await secrets_of(store, plane)
    wanted = common(certificates_of(found))
    return secrets.used({signer: _as_made(secrets.authority(signer), use) for signer, use in wanted.items()})


def _as_made(authority: Authority, use: AuthorityUse) -> AuthorityUse:
    known = {each.number for each in authority.known}
    return use if use.also is None or use.also in known else AuthorityUse(issuer=use.issuer)


def certificates_of(known: Revisions) -> Collection[Certificates]:
    """The certificates of each revision."""
    return [each.certificates for each in known.templates.values()]


def needed(certificates: Collection[Certificates]) -> Mapping[Signer, frozenset[int]]:
    """The numbers of the authorities that replicas with any of these certificates trust."""
    every = [uses(each) for each in certificates]
    return {signer: frozenset[int]().union(*(each[signer].trusted for each in every)) for signer in Signer}


def needed_keys(templates: Collection[ReplicaTemplate]) -> Mapping[KeyPurpose, frozenset[int]]:
    """The numbers of the keys that replicas of any of these revisions accept."""
    return {
        each: frozenset(number for template in templates for number in template.key_use(each).accepted)
        for each in KeyPurpose
    }


async def settle_secrets(store: Store, plane: ControlPlane, *, lease: Lease | None = None) -> None:
    """Make the authorities and keys that the plane's revisions need and that are missing. Renew quarterdeck's own
    certificates if the plane's generation of certificates is newer, or another authority is to issue them.
    """
    known = await revisions.known(store, plane, guess=True)
    wanted, keys = certificates_of(known), needed_keys(known.templates.values())
    generation, used = plane.spec.certificates.generation, common(wanted)

    def settled(secrets: SharedSecrets) -> SharedSecrets:
        now = datetime.now(UTC)
        complete = with_keys(with_authorities(plane.name, secrets, needed(wanted), now), keys)
        return with_manager(complete.used(used), generation, now)

    before = (await secrets_of(store, plane)).used(used)
    if settled(before) is before:
        return

    def written(stored: PlaneSecrets) -> PlaneSecrets:
        secrets = settled(decode(stored.data.get_secret_value()))
        return stored.model_copy(update={"data": SecretStr(encode(secrets))})

    await amend(store, PlaneSecrets, plane.name, written, lease=lease)
