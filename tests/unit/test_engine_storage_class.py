"""The folder of a storage class that a plane is to use must be there before anything is written down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

import pytest
from support.golden import Golden

from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.site import Site
from quarterdeck.engine.preflight.admission import admit
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.operations import Requester
from quarterdeck.errors import PreconditionFailed
from quarterdeck.upstream.upstream import Upstream


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = await Home.open(tmp_path / "home")
    yield made
    await made.close()


async def asked(home: Home, disk: Path, cache: Path) -> None:
    spec = {"storageClasses": ({"name": "fast", "path": PurePosixPath(disk)},)}
    await home.store.create(Site.model_validate({"metadata": {"name": "north"}, "spec": spec}))
    upstream = Upstream.from_environment({"QUARTERDECK_CACHE": str(cache)})
    plane: ControlPlane = new_control_plane("alpha", site="north", replicas=1)
    await admit(Engine(home=home, upstream=upstream, requester=Requester(name="a test")), plane)


async def test_a_plane_on_a_disk_that_is_not_mounted_is_refused_before_anything_is_written(
    home: Home, tmp_path: Path, golden: Golden
) -> None:
    with golden.raises(PreconditionFailed):
        await asked(home, tmp_path / "ssd", tmp_path / "cache")
    assert await home.store.list(ControlPlane) == ()
    assert not (tmp_path / "ssd").exists()
