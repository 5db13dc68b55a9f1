"""A plane that is backed up into a store in memory, and homes that restore from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from quarterdeck.api.belongings import PlaneSecrets
from quarterdeck.api.controlplane import ControlPlane, new_control_plane
from quarterdeck.api.plane.memory import memory_to_status
from quarterdeck.api.revision import revision_of
from quarterdeck.api.site import Cordon, LocalSpec, Site
from quarterdeck.app.backup.restores import Restores
from quarterdeck.backup.chain import ChainLink, FullBackup, ObjectReference
from quarterdeck.engine.workspace.backups import OpenBackups, open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.plane_archive import archive_of
from quarterdeck.model.memory import Memory
from quarterdeck.pki.codec import encode
from support.databases import AT
from support.resources import with_spec, with_status
from support.small_plane import secrets
from support.templates import template

URL = "s3://planes"
OBJECT = ObjectReference(name="data/1", sha256="", size_bytes=7)


def full(revision: int, *, epoch: int = 0, at: datetime = AT) -> FullBackup:
    return FullBackup(cluster="main", epoch=epoch, revision=revision, at=at, etcd_version="3.6.16", stored=OBJECT)


class RestoringLab:
    """Homes, and the restores of each."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self._stack = stack

    async def home(self, name: str) -> tuple[Home, Restores]:
        home = await Home.open(self.folder / name)
        self._stack.push_async_callback(home.close)
        return home, Restores(home, lambda: cast("Any", SimpleNamespace(upstream=None)))

    async def backed_up(self, *, paused: bool = False, whole: bool = True) -> tuple[ControlPlane, Path]:
        """Plane ``alpha`` of a home, with a full backup and its belongings in the store; and the key of that home."""
        home, _ = await self.home("lost")
        plane = await home.store.create(with_spec(new_control_plane("alpha", site="east"), paused=paused))
        await store_keys(home, plane)
        revision = await home.store.create(revision_of(plane, template()))
        memory = memory_to_status(Memory(created=True, epoch=0, revision=40))
        plane = await home.store.update(
            with_status(plane, revision=revision.name, memory=memory, observed_generation=1)
        )
        east = await home.store.get(Site, "east")
        await home.store.update(east.model_copy(update={"spec": cordoned(east, "ada")}))
        opened = await open_backups(home, plane)
        await self.append(opened, whole=await archive_of(home.store, plane) if whole else None)
        return plane, opened.keys.path

    async def append(self, to: OpenBackups, whole: bytes | None) -> None:
        async def parts() -> AsyncIterator[bytes]:
            assert whole is not None
            yield whole

        belongings = await to.deposit.put(parts()) if whole is not None else None
        link = ChainLink(
            number=0, previous="", plane="", writer="a test", at=AT, fulls=(full(40),), belongings=belongings
        )
        await to.chains.append(await to.chains.read(), link)


async def store_keys(home: Home, plane: ControlPlane) -> None:
    data = {"metadata": {"name": plane.name}, "planeUid": plane.metadata.uid, "data": encode(secrets())}
    await home.store.create(PlaneSecrets.model_validate(data))


def cordoned(site: Site, by: str) -> LocalSpec:
    assert isinstance(site.spec, LocalSpec)
    return site.spec.model_copy(update={"cordons": (Cordon(machine=f"{site.name}-a1", by=by, since=AT),)})
