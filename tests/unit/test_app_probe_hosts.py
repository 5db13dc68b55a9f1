"""Whose clients look at a plane: those of this host, or of a host of a site."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.golden import Golden
from support.host_sites import host, host_site

from quarterdeck.api.controlplane import new_control_plane
from quarterdeck.app import Quarterdeck, Requester, onlookers
from quarterdeck.drivers.ssh import SshSites
from quarterdeck.engine.workspace import operations
from quarterdeck.errors import InvalidInput, NotFound
from quarterdeck.model.findings import Checked
from quarterdeck.probe.target import ProbeTarget, Source
from quarterdeck.sites.ssh.hosts import Login

ASKER = Requester(name="a test")
TARGET = ProbeTarget(host="demo.test", port=6443, ca_pem="", client_cert_pem="", client_key_pem="")


class Session:
    """Remembers where its clients are."""

    def __init__(self, *_: object, source: Source | None, **__: object) -> None:
        self.source = source

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None: ...


@pytest.fixture
async def face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Quarterdeck]:
    async def target(*_: object) -> ProbeTarget:
        return TARGET

    async def check(*_: object) -> Checked:
        return Checked(findings=(), summary="well")

    monkeypatch.setattr(onlookers, "ProbeSession", Session)
    monkeypatch.setattr(onlookers, "probe_target", target)
    monkeypatch.setattr(SshSites, "check", check)
    async with Quarterdeck.open(tmp_path / "home", requester=ASKER) as made:
        login = {"user": "ann", "port": 2222, "identityFile": "/keys/one"}
        await made.sites.add(host_site(host("cp-1", ssh=login), host("cp-2"), name="rack"))
        await made.sites.add(host_site(host("cp-2", address="192.0.2.102"), host("cp-3"), name="other"))
        for name, site in (("demo", "rack"), ("local", "east")):
            await operations.create(made._home, new_control_plane(name, site=site), ASKER)
        yield made


async def source(face: Quarterdeck, name: str, where: str | None) -> Any:
    session: Any
    async with face.probing(name, host=where) as session:
        return session.source


async def test_they_are_where_one_says_and_here_if_one_does_not(face: Quarterdeck) -> None:
    assert await source(face, "demo", None) is None
    way = Login(host="192.0.2.1", port=2222, user="ann", identity="/keys/one")
    assert await source(face, "demo", "cp-1") == Source(name="rack/cp-1", login=way)
    assert (await source(face, "demo", "other/cp-2")).login.host == "192.0.2.102"
    assert (await source(face, "demo", "cp-3")).name == "other/cp-3", "of any site"


async def test_a_host_that_is_not_there_or_not_the_only_one_is_refused(face: Quarterdeck, golden: Golden) -> None:
    with golden.raises(NotFound):
        await source(face, "demo", "cp-9")
    with golden.raises(NotFound):
        await source(face, "demo", "east/a1")
    with golden.raises(InvalidInput):
        await source(face, "demo", "cp-2")


async def test_no_host_reaches_a_plane_that_is_on_this_one(face: Quarterdeck, golden: Golden) -> None:
    with golden.raises(InvalidInput):
        await source(face, "local", "cp-1")
