"""Authorities and keys that no replica accepts any more are forgotten, first where clusters keep them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import SecretStr
from support.golden import Golden
from support.small_plane import SmallPlane, small_plane
from support.templates import template

from quarterdeck.actions.status import write_memory
from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.plane.certificates import AuthorityUse, Certificates, Signer
from quarterdeck.api.plane.keys import KeyPurpose, KeyUse
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.components.template import Revisions
from quarterdeck.engine.reconcile import former_secrets
from quarterdeck.engine.reconcile.former_secrets import TRUST, forget_former
from quarterdeck.errors import Unavailable
from quarterdeck.pki.codec import decode, encode
from quarterdeck.pki.issuance import with_authorities, with_keys

BOTH = AuthorityUse(issuer=1, also=0)


@pytest.fixture
async def small(monkeypatch: pytest.MonkeyPatch) -> SmallPlane:
    """Two authorities and two keys of each purpose are known."""
    monkeypatch.setattr(former_secrets, "_LOOK", 0.001)
    made = await small_plane()
    plane, every = made.plane, frozenset({0, 1})
    now = plane.resource.metadata.creation_timestamp
    assert now is not None
    secrets = with_authorities(plane.name, plane.secrets, dict.fromkeys(Signer, every), now)
    plane.secrets = with_keys(secrets, dict.fromkeys(KeyPurpose, every))
    stored = await plane.store.get(PlaneSecrets, plane.name)
    await plane.store.update(stored.model_copy(update={"data": SecretStr(encode(plane.secrets))}))
    return made


async def runs(small: SmallPlane, use: AuthorityUse, key: KeyUse) -> None:
    """Have all replicas run a revision with these authorities and keys; another revision is stored as well."""
    certificates = Certificates(kubernetes=use, etcd=use, front_proxy=use)
    now = template(certificates=certificates, encryption_key=key, service_account_key=key)
    small.plane.revisions = Revisions(goal="now", templates={"now": now, "before": template()})
    records = tuple(replace(each, revision="now") for each in small.plane.memory.replicas)
    await write_memory(small.plane, replace(small.plane.memory, replicas=records))


def told(small: SmallPlane, *numbers: int) -> None:
    """Have aggregated apiservers be told of the Kubernetes authorities with these numbers."""
    known = {each.number: each.pair.certificate.decode() for each in small.plane.secrets.kubernetes_ca.known}
    small.kube.objects.put(TRUST, {"data": {"client-ca-file": "".join(known[each] for each in numbers)}})


async def stored(small: SmallPlane) -> SharedSecrets:
    found = await small.plane.store.get(PlaneSecrets, small.plane.name)
    return decode(found.data.get_secret_value())


def numbers(secrets: SharedSecrets) -> set[tuple[int, ...]]:
    authorities = (secrets.authority(each).known for each in Signer)
    every = (*authorities, secrets.encryption_keys, secrets.service_account)
    return {tuple(each.number for each in found) for found in every}


async def test_what_is_still_accepted_is_kept(small: SmallPlane) -> None:
    await runs(small, BOTH, KeyUse(current=1, also=0))
    await forget_former(small.plane)
    assert numbers(await stored(small)) == {(0, 1)}
    assert small.kube.objects.calls == []


async def test_former_ones_are_forgotten_once_the_cluster_has(small: SmallPlane) -> None:
    await runs(small, AuthorityUse(issuer=1), KeyUse(current=1))
    told(small, 1)
    await forget_former(small.plane)
    assert numbers(await stored(small)) == {(1,)}


async def test_a_cluster_that_is_told_of_a_former_one_is_told_anew(
    small: SmallPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    await runs(small, AuthorityUse(issuer=1), KeyUse(current=1))
    told(small, 0, 1)
    delete = small.kube.delete

    async def written_again(*given: object, **named: object) -> bool:
        gone = await delete(*given, **named)  # type: ignore[arg-type]
        told(small, 1)
        return gone

    monkeypatch.setattr(small.kube, "delete", written_again)
    await forget_former(small.plane)
    assert small.kube.objects.calls == [f"delete {TRUST}"]
    assert numbers(await stored(small)) == {(1,)}


async def test_a_key_is_kept_while_the_cluster_still_has_it(
    small: SmallPlane, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(former_secrets, "_WRITTEN", 0.05)
    await runs(small, AuthorityUse(issuer=1), KeyUse(current=1))
    told(small, 0, 1)
    with golden.raises(Unavailable):
        await forget_former(small.plane)
    assert numbers(await stored(small)) == {(0, 1)}


async def test_one_that_was_taken_back_is_distrusted_and_its_number_is_not_used_again(small: SmallPlane) -> None:
    await runs(small, AuthorityUse(), KeyUse())
    told(small, 0)
    await forget_former(small.plane)
    assert numbers(await stored(small)) == {(0, 1)}
