"""Turning off the authentication of etcd takes a certificate of its user root, in every cluster of the plane."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from fakes.etcd import FakeEtcd
from support.fake_plane import FakePlane

from quarterdeck.actions.plane import Plane
from quarterdeck.app import Requester
from quarterdeck.app.etcd.care import EtcdCare
from quarterdeck.components.credentials import KeyPair


async def test_it_is_the_user_root_who_turns_it_off_and_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakePlane()
    await fake.open()
    shown: list[str] = []
    disable = FakeEtcd.disable_authentication

    async def seen(etcd: FakeEtcd, urls: tuple[str, ...], root: KeyPair) -> None:
        subject = x509.load_pem_x509_certificate(root.certificate).subject
        shown.append(str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value))
        await disable(etcd, urls, root)

    monkeypatch.setattr(FakeEtcd, "disable_authentication", seen)

    class Home:
        store = fake.store

        async def plane(self, resource: Any, stack: AsyncExitStack) -> Plane:
            return await fake.open()

    fake.etcd.cluster.authenticates = True
    await EtcdCare(Home(), Requester(name="a test")).disable_authentication("demo")  # type: ignore[arg-type]
    assert not fake.etcd.cluster.authenticates
    assert shown == ["root"]
    assert [each.reason for each in await fake.store.events("demo")] == ["AuthenticationDisabled"]
