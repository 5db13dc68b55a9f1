"""Restoring a backup as another plane, beside the one that it is of: that one is not touched, and may be gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from quarterdeck.addons.content import Content
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.plane.epochs import NewEpoch, RestoreFrom
from quarterdeck.api.site import Site
from quarterdeck.app.backup.copied_plane import CopyRequest, backed_up_at, copied_plane
from quarterdeck.app.backup.events import EventsPlan, events_plan
from quarterdeck.app.backup.restores import LATEST, Restores, newest_chain, require_readable, time_of
from quarterdeck.backup.belongings import PlaneArchive, read_archive
from quarterdeck.backup.build import opened as opened_object
from quarterdeck.backup.chain import BackupMoment, Chain
from quarterdeck.backup.proof import Proof
from quarterdeck.components.credentials import SharedSecrets
from quarterdeck.concurrency import together
from quarterdeck.drivers.backup_stores import open_backup_store
from quarterdeck.engine.preflight.admission import admit
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import addons, operations, recorded
from quarterdeck.engine.workspace.backups import (
    OpenBackups,
    add_identities,
    open_backups,
    open_backups_in,
    read_identities,
    read_options,
)
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import RestoredDatabase, restored_database
from quarterdeck.errors import Conflict, PreconditionFailed
from quarterdeck.model.epochs import BackupOrigin
from quarterdeck.model.units import MachineRole, MachineState
from quarterdeck.pki.codec import decode
from quarterdeck.pki.issuance import copied_secrets


@dataclass(frozen=True, slots=True)
class ForeignBackup:
    """A backup of a plane that this home need not have: its store, the file with the key that opens it, and the file
    with the store's options.
    """

    url: str
    key: Path
    options: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPlan:
    """A new plane that is ready to be created: its database is built and proven on this host, and nothing is stored."""

    #: With the consent to begin with the backup.
    plane: ControlPlane
    #: The name of the plane that was backed up.
    of: str
    store: str
    revision: int
    #: When the last full backup or increment that is used was stored.
    at: datetime
    #: None: it was built by an earlier attempt, and proven then.
    proof: Proof | None
    #: Its differences from the plane that was backed up.
    differences: tuple[str, ...]
    #: The databases.
    databases: tuple[Path, ...]
    #: None: it has no separate etcd for events.
    events: EventsPlan | None
    secrets: SharedSecrets = field(repr=False)
    contents: tuple[Content, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The backups that a copy begins with. ``identities`` are keys that the home does not have yet."""

    backups: OpenBackups
    chain: Chain
    identities: tuple[str, ...] = field(default=(), repr=False)
    foreign: ForeignBackup | None = None


class Copies:
    """``Quarterdeck.backups.copies``. The rules for calls of ``Quarterdeck`` apply."""

    def __init__(self, home: Home, engine: Callable[[], Engine], restores: Restores) -> None:
        self._home = home
        self._engine = engine
        self._restores = restores

    async def plan(
        self,
        name: str,
        asked: CopyRequest,
        *,
        to: str = LATEST,
        source: ForeignBackup | None = None,
        by_replay: bool = False,
    ) -> CopyPlan:
        """Declare the new plane, check it, and build and prove its database as ``Restores.plan`` does for plane
        ``name``. Nothing is stored but a key that opens the backup.

        Raises Conflict for a name that the home has, NotFound for a plane, a site or a moment, InvalidInput for what
        two planes cannot share, PreconditionFailed for a backup of data alone and for a site without room, and what
        admission and building raise.
        """
        doing = f"restoring plane {name} as {asked.name}"
        await self._require_new(asked.name, doing)
        found = await self._opened(name, source)
        moment = await self._restores.moment(found.backups, found.chain, to)
        archive = await _archive(found, moment, doing)
        site = await self._home.site(asked.site or archive.plane.spec.placement.site)
        copied = copied_plane(archive.plane, asked, site)
        require_readable(doing, plane := _backed_up(copied.plane, found), moment)
        await admit(self._engine(), plane)
        await add_identities(self._home.folder, found.identities)
        database, events = await self._built(plane, site, found, moment, to=to, by_replay=by_replay)
        return CopyPlan(
            plane=_consenting(plane, found.backups, moment, events),
            of=name,
            store=found.backups.url,
            revision=moment.revision,
            at=moment.at,
            proof=database.proof,
            differences=copied.differences,
            databases=_databases(database.path, events),
            events=events,
            secrets=_secrets(plane, archive),
            contents=_contents(archive),
        )

    async def start(self, plan: CopyPlan) -> Operation:
        """Create the new plane: a driver places its replicas, and begins its etcd with the backup. Raises Conflict
        where a plane of that name was created since.
        """
        requester = self._engine().requester
        return await operations.create(self._home, plan.plane, requester, plan.contents, secrets=plan.secrets)

    async def discard(self, plan: CopyPlan) -> None:
        """Delete the databases of a plan that is not used: they hold the secrets of a plane."""
        for each in plan.databases:
            await asyncio.to_thread(each.unlink, missing_ok=True)

    async def _require_new(self, name: str, doing: str) -> None:
        if name in {each.name for each in await self._home.store.list(ControlPlane)}:
            raise Conflict(doing, "this home has a plane of that name", "give another name with --as")

    async def _opened(self, name: str, source: ForeignBackup | None) -> _Source:
        if source is None:
            backups = await open_backups(self._home, await recorded.existing(self._home.store, name))
            return _Source(backups=backups, chain=await backups.chains.read())
        identities = read_identities(source.key)
        options: Mapping[str, str] = read_options(source.options) if source.options is not None else {}
        store = open_backup_store(source.url, options)
        folder, chain = await newest_chain(store, name, f"restoring plane {name} from {source.url}")
        backups = await open_backups_in(self._home, source.url, folder, options)
        keys = replace(backups.keys, others=(*backups.keys.others, *identities))
        return _Source(backups=replace(backups, keys=keys), chain=chain, identities=identities, foreign=source)

    async def _built(
        self, plane: ControlPlane, site: Site, found: _Source, moment: BackupMoment, *, to: str, by_replay: bool
    ) -> tuple[RestoredDatabase, EventsPlan | None]:
        origin = BackupOrigin(store=found.backups.url, folder=found.backups.folder, epoch=moment.full.epoch)
        upstream, revision = self._engine().upstream, moment.revision
        database = await restored_database(self._home, upstream, plane, origin, revision, by_replay=by_replay)
        at = time_of(to, moment)
        events = await events_plan(self._engine(), plane, found.backups, found.chain, at=at, by_replay=by_replay)
        await self._require_room(plane, site, database)
        return database, events

    async def _require_room(self, plane: ControlPlane, site: Site, database: RestoredDatabase) -> None:
        """Each replica has room for the database, and the first one for it twice. Where it has not, the database is
        deleted: it holds the secrets of a plane.
        """
        size = (await asyncio.to_thread(database.path.stat)).st_size
        driver, zones = self._home.sites.open(site), plane.spec.placement.zones or site.spec.zones
        here = [
            each.name
            for each in await driver.machines()
            if (each.role, each.state) == (MachineRole.CONTROL, MachineState.UP) and each.zone in zones
        ]
        named = plane.spec.etcd_storage_class or site.spec.storage_classes[0].name
        free = await together(*(driver.free_bytes(each, named) for each in here))
        roomy = [each for each, room in zip(here, free, strict=True) if room >= 2 * size]
        if len(roomy) < plane.spec.replicas:
            await asyncio.to_thread(database.path.unlink)
            raise PreconditionFailed(
                f"placing plane {plane.name} at site {site.name}",
                f"{plane.spec.replicas} machines need {2 * size:,} bytes each for its database;"
                f" those that have it: {', '.join(roomy) or 'none'}",
                "make room there, or choose another site with --site",
            )


def _backed_up(plane: ControlPlane, found: _Source) -> ControlPlane:
    """The plane with the store that the backup is in, where the user has named that."""
    foreign = found.foreign
    if foreign is None:
        return plane
    options = PurePosixPath(foreign.options.absolute()) if foreign.options is not None else None
    return backed_up_at(plane, foreign.url, options)


def _databases(main: Path, events: EventsPlan | None) -> tuple[Path, ...]:
    return (main, *(() if events is None or events.database is None else (events.database,)))


def _consenting(
    plane: ControlPlane, backups: OpenBackups, moment: BackupMoment, events: EventsPlan | None
) -> ControlPlane:
    """The plane, with the consent to begin with that moment: its first epoch after none."""
    restore = RestoreFrom(
        store=backups.url,
        folder=backups.folder,
        epoch=moment.full.epoch,
        revision=moment.revision,
        events=events.restore if events is not None else None,
    )
    return plane.with_spec(new_epoch=NewEpoch(epoch=1, restore=restore))


async def _archive(found: _Source, moment: BackupMoment, doing: str) -> PlaneArchive:
    """The belongings of the moment: with other keys, its Secrets and tokens would be useless."""
    reference = found.chain.belongings_at(moment.revision, moment.full.epoch)
    if reference is None:
        seen = f"the backup of etcd revision {moment.revision:,} has only data, not the keys of the plane"
        raise PreconditionFailed(doing, seen, "choose a later moment: 'backup list' says what it restores")
    backups = found.backups
    async with opened_object(backups.store, reference, backups.keys.identities) as parts:
        return read_archive(b"".join([part async for part in parts]))


def _secrets(plane: ControlPlane, archive: PlaneArchive) -> SharedSecrets:
    source = decode(archive.secrets.data.get_secret_value())
    return copied_secrets(plane.name, source, plane.spec.certificates.generation, datetime.now(UTC))


def _contents(archive: PlaneArchive) -> tuple[Content, ...]:
    """The add-ons as they were applied, whatever the files have become."""
    named = archive.plane.status.addon_manifests
    return addons.contents_of(next((each for each in archive.manifests if each.name == named), None))
