"""Certificate authorities and keys that no replica accepts any more are forgotten, authorities in the cluster first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pydantic import JsonValue, SecretStr

from quarterdeck.actions.plane import Plane
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.plane.certificates import Signer
from quarterdeck.api.plane.keys import KeyPurpose
from quarterdeck.components.credentials import NumberedAuthority, SharedSecrets
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.engine.workspace.secrets_in_use import needed, needed_keys
from quarterdeck.errors import Unavailable
from quarterdeck.kube.port import Address
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import without_former, without_former_keys

#: What each apiserver adds its authorities to, for aggregated apiservers. They remove none before it has expired
#: (kubernetes: clusterauthenticationtrust, combineCertLists), but write all of it again once it is deleted.
TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_FIELDS = {Signer.KUBERNETES: "client-ca-file", Signer.FRONT_PROXY: "requestheader-client-ca-file"}
#: Seconds for an apiserver to write it again, and between two looks.
_WRITTEN = 30.0
_LOOK = 0.2


async def forget_former(plane: Plane) -> None:
    """Forget the authorities and keys that no replica of the plane accepts any more, authorities first in the cluster.
    Those with a number above all accepted ones are kept, so that no number is used twice. Raises Unavailable.
    """
    names = {plane.revisions.goal, *(each.revision for each in plane.memory.replicas)}
    templates = [plane.revisions.template(each) for each in names]
    wanted, keys = needed([each.certificates for each in templates]), needed_keys(templates)
    former = {
        signer: [each for each in plane.secrets.authority(signer).known if each.number not in wanted[signer]]
        for signer in Signer
    }
    if any(former.values()):
        await _distrusted(plane, former)
    if _kept(plane.secrets, wanted, keys) == plane.secrets:
        return
    async with plane.writing:
        stored = await plane.store.get(PlaneSecrets, plane.name)
        kept = _kept(decode(stored.data.get_secret_value()), wanted, keys)
        await plane.check()
        data = SecretStr(encode(kept))
        await plane.store.update(stored.model_copy(update={"data": data}), lease=plane.lease)


def _kept(
    secrets: SharedSecrets, wanted: Mapping[Signer, frozenset[int]], keys: Mapping[KeyPurpose, frozenset[int]]
) -> SharedSecrets:
    return without_former_keys(without_former(secrets, wanted), keys)


async def _distrusted(plane: Plane, former: dict[Signer, list[NumberedAuthority]]) -> None:
    """Return once aggregated apiservers are told of none of these authorities."""
    apiserver = await ready_apiserver(plane, "removing a certificate authority that is no longer trusted")
    gone = {field: [each.pair.certificate.decode() for each in former[signer]] for signer, field in _FIELDS.items()}
    until = asyncio.get_running_loop().time() + _WRITTEN
    while not await _is_clean(plane, apiserver, gone):
        if asyncio.get_running_loop().time() > until:
            doing = "removing a certificate authority that is no longer trusted"
            raise Unavailable(doing, f"{TRUST} still has it", "it is tried again")
        await asyncio.sleep(_LOOK)


async def _is_clean(plane: Plane, apiserver: Address, gone: dict[str, list[str]]) -> bool:
    """Whether the object has none of these certificates. One that does is deleted."""
    found = await plane.kube.read(apiserver, TRUST)
    if not isinstance(found, dict):
        return False  # about to be written again
    data, metadata = found.get("data"), found.get("metadata")
    if not isinstance(data, dict) or not isinstance(metadata, dict):
        return False
    if not any(_holds(data.get(field), each) for field, certificates in gone.items() for each in certificates):
        return True
    await plane.check()
    await plane.kube.delete(apiserver, TRUST, uid=str(metadata.get("uid")))
    return False


def _holds(bundle: JsonValue, certificate: str) -> bool:
    return isinstance(bundle, str) and certificate.strip() in bundle
