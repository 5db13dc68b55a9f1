"""Certificates are asked for again when a third of their life is left, once, and not before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from support.fake_plane import FakePlane

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.engine.background.certificates import CertificateRenewal
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.model.world import World
from quarterdeck.pki.issuance import LEAF_LIFETIME


@pytest.mark.parametrize(("share", "asked"), [(0.6, 0), (0.7, 1)])
async def test_they_are_asked_for_again_at_two_thirds_of_their_life_and_once(share: float, asked: int) -> None:
    fake = FakePlane()
    fake.memory = replace(fake.memory, replicas=())
    fake.clocks.wall = (datetime.now(UTC) + share * LEAF_LIFETIME).timestamp()
    plane = await fake.open()
    task = CertificateRenewal(home=cast("Home", SimpleNamespace(store=fake.store)), requester=Requester(name="a test"))
    for _ in range(2):
        await task.turn(plane, World(slots=(), memory=plane.memory, now=0.0))
    assert (await fake.store.get(ControlPlane, plane.name)).spec.certificates.generation == asked
    assert len(await fake.store.list(Operation)) == asked


def test_that_is_long_before_they_end() -> None:
    assert timedelta(days=90) < LEAF_LIFETIME / 3
