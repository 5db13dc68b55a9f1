"""Restoring a plane from a backup: in place, or where its home was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.api.base import Resource
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.epochs import NewEpoch, RestoreFrom
from quarterdeck.api.site import Site
from quarterdeck.app.backup.events import EventsPlan, events_plan
from quarterdeck.backup.belongings import PlaneArchive, read_archive
from quarterdeck.backup.build import opened as opened_object
from quarterdeck.backup.chain import BackupMoment, Chain
from quarterdeck.backup.chain_store import ChainStore
from quarterdeck.backup.kubernetes.object_changes import MomentDifference
from quarterdeck.backup.moments import newest_moment_at, seen_at
from quarterdeck.backup.objects.port import ObjectStore
from quarterdeck.backup.proof import Proof
from quarterdeck.backup.sealing import Identities
from quarterdeck.components.upstream_versions import minor
from quarterdeck.drivers.backup_stores import open_backup_store
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import operations, recorded
from quarterdeck.engine.workspace.backups import (
    OpenBackups,
    add_identities,
    open_backups,
    read_identities,
    read_options,
)
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.restores import MAIN, restored_database
from quarterdeck.engine.workspace.scratch_moments import moment_difference
from quarterdeck.errors import Conflict, Corrupt, InvalidInput, NotFound, PreconditionFailed, QuarterdeckError
from quarterdeck.model.epochs import BackupOrigin
from quarterdeck.stores.port import Store, amend

LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """A restore that is ready: the database is built and proven on this host, and nothing of the plane was touched."""

    plane: str
    store: str
    folder: str
    #: The epoch that would begin.
    epoch: int
    #: The epoch that the moment belongs to.
    from_epoch: int
    revision: int
    #: The last revision of etcd that was observed of the plane.
    seen: int
    #: When the last full backup or increment that is used was stored.
    at: datetime
    #: None: it was built by an earlier attempt, and proven then.
    proof: Proof | None
    #: What happened to objects since, up to the newest moment of the backup; an error where that could not be read: it
    #: need not keep anybody from restoring.
    losses: MomentDifference | QuarterdeckError
    #: None: the plane has no separate etcd for events.
    events: EventsPlan | None = None

    @property
    def lost(self) -> int | None:
        """The number of revisions that would be lost, as far as is known. None for a moment of an earlier epoch:
        everything since is lost, and revisions of two epochs are not comparable.
        """
        return max(0, self.seen - self.revision) if self.from_epoch == self.epoch - 1 else None


class Restores:
    """``Quarterdeck.backups.restores``. The rules for calls of ``Quarterdeck`` apply."""

    def __init__(self, home: Home, engine: Callable[[], Engine]) -> None:
        """``engine``: opened for what needs programs."""
        self._home = home
        self._engine = engine

    async def plan(self, name: str, *, to: str = LATEST, by_replay: bool = False) -> RestorePlan:
        """Choose a moment (``latest``, an etcd revision, or a time in RFC 3339), build its database, and prove it. The
        plane is not touched. ``by_replay``: a scratch etcd does once more what the increments say, for hours perhaps.

        Raises InvalidInput for a moment that is none, NotFound for one that no backup has, PreconditionFailed for a
        plane that is being deleted or paused, and what building raises.
        """
        plane = await recorded.existing(self._home.store, name)
        _require_restorable(plane)
        backups = await open_backups(self._home, plane)
        chain = await backups.chains.read()
        moment = await self.moment(backups, chain, to)
        at = time_of(to, moment)
        events = await events_plan(self._engine(), plane, backups, chain, at=at, by_replay=by_replay)
        return await self._planned(plane, backups, chain, moment, events, by_replay=by_replay)

    async def moment(self, backups: OpenBackups, chain: Chain, to: str) -> BackupMoment:
        """A moment of a chain by its name. Of several epochs with the same revision, the newest one is meant."""
        epochs = chain.epochs(MAIN)
        if not epochs:
            raise NotFound(f"restoring from {backups.url}", "there is no full backup there", "see 'backup list'")
        if to == LATEST:
            return chain.latest(MAIN, epochs[0])
        if to.replace(",", "").isdigit():
            return _at_revision(chain, epochs, int(to.replace(",", "")))
        at, now, identities = _time(to), datetime.now(UTC), backups.keys.identities
        return await newest_moment_at(chain, MAIN, at, now=now, store=backups.store, identities=identities)

    async def start(self, plan: RestorePlan, *, even_if_others_live: bool = False) -> None:
        """Consent to begin the epoch of a plan: a driver stops the plane, restores the database, and starts it again.
        A plane that ``adopt`` brought back is resumed with the same write. Raises Conflict where another epoch has
        begun since.
        """
        doing = f"restoring plane {plan.plane}"

        def consented(seen: ControlPlane) -> ControlPlane:
            _require_restorable(seen)
            operations.require_next_epoch(seen, plan.epoch, doing)
            restore = RestoreFrom(
                store=plan.store,
                folder=plan.folder,
                epoch=plan.from_epoch,
                revision=plan.revision,
                events=plan.events.restore if plan.events is not None else None,
            )
            word = NewEpoch(epoch=plan.epoch, even_if_others_live=even_if_others_live, restore=restore)
            if not seen.status.awaits_data:
                return seen.with_spec(new_epoch=word)
            resumed = seen.with_spec(new_epoch=word, paused=False, paused_until=None)
            return resumed.with_status(awaits_data=False)

        await amend(self._home.store, ControlPlane, plan.plane, consented)

    async def adopt(self, name: str, url: str, *, key: Path, options: Path | None = None) -> str:
        """Bring a plane whose home was lost back into this home from a backup store, as it was in its newest backup:
        its resource, keys, revisions, and the sites that this home does not have. It is paused until its data is
        restored (``plan`` and ``start``), so that no manager heals it from nothing. May be called again until that has
        begun. Returns the uid of the plane.

        Raises Conflict where the home has another plane of that name, or that one with its data, NotFound where the
        store has no backup of it, PreconditionFailed where the key does not open it.
        """
        doing = f"restoring plane {name} from {url}"
        here = await _here(self._home.store, name)
        if here is not None and not _awaits_data(here):
            raise Conflict(doing, "this home has a plane of that name", "restore it without --from, or delete it first")
        identities = read_identities(key)
        store = open_backup_store(url, read_options(options) if options is not None else {})
        folder, chain = await newest_chain(store, name, doing)
        uid = folder.rpartition("/")[2]
        if here is not None and here.metadata.uid != uid:
            raise Conflict(doing, "this home has another plane of that name", "delete it first, or use another home")
        reference = chain.belongings[-1].stored if chain.belongings else None
        if reference is None:
            raise PreconditionFailed(doing, "the backup has only data, not the keys of the plane", "create a plane")
        async with opened_object(store, reference, Identities(identities)) as parts:
            archive = read_archive(b"".join([part async for part in parts]))
        if archive.plane.metadata.uid != uid:
            raise Corrupt(doing, f"the plane in folder {folder} is another one", "use another backup store")
        await add_identities(self._home.folder, identities)
        if here is None:
            await self._store(archive, url, options)
        return uid

    async def _store(self, archive: PlaneArchive, url: str, options: Path | None) -> None:
        """The plane comes last: an attempt that was interrupted before is continued."""
        store = self._home.store
        here = {each.name for each in await store.list(Site)}
        for site in archive.sites:
            if site.name not in here:
                await store.create(site)
        uid = archive.plane.metadata.uid or ""
        for each in (*archive.revisions, *archive.manifests, archive.secrets):
            await _put(store, each)
        backup = archive.plane.spec.backup.model_copy(
            update={"store": url, **({"options_file": options} if options is not None else {})}
        )
        plane = archive.plane.with_spec(backup=backup, new_epoch=None, paused=True, paused_until=None)
        await store.create(plane.with_status(observed_generation=None, awaits_data=True), uid=uid)

    async def _planned(
        self,
        plane: ControlPlane,
        backups: OpenBackups,
        chain: Chain,
        moment: BackupMoment,
        events: EventsPlan | None,
        *,
        by_replay: bool,
    ) -> RestorePlan:
        memory = plane.status.memory
        origin = BackupOrigin(store=backups.url, folder=backups.folder, epoch=moment.full.epoch)
        upstream, revision = self._engine().upstream, moment.revision
        require_readable(f"restoring plane {plane.name}", plane, moment)
        database = await restored_database(self._home, upstream, plane, origin, revision, by_replay=by_replay)
        return RestorePlan(
            plane=plane.name,
            store=backups.url,
            folder=backups.folder,
            epoch=memory.epoch + 1,
            from_epoch=moment.full.epoch,
            revision=moment.revision,
            seen=max(memory.revision, chain.reached.revision if chain.reached.epoch == memory.epoch else 0),
            at=await seen_at(moment, backups.store, backups.keys.identities),
            proof=database.proof,
            losses=await self._losses(plane, backups, chain, moment),
            events=events,
        )

    async def _losses(
        self, plane: ControlPlane, backups: OpenBackups, chain: Chain, moment: BackupMoment
    ) -> MomentDifference | QuarterdeckError:
        try:
            newest = await self.moment(backups, chain, LATEST)
            return await moment_difference(self._home, plane.name, backups, moment, newest)
        except QuarterdeckError as error:
            return error


async def _here(store: Store, name: str) -> ControlPlane | None:
    try:
        return await store.get(ControlPlane, name)
    except NotFound:
        return None


def _awaits_data(plane: ControlPlane) -> bool:
    """Whether a plane that was brought back still has to get its data: the epoch with it has not begun."""
    word = plane.spec.new_epoch
    consented = word is not None and word.restore is not None and word.epoch == plane.status.memory.epoch + 1
    return plane.status.awaits_data or consented


async def _put(store: Store, resource: Resource) -> None:
    """Store a resource of a plane that this home does not have: what has its name is of an interrupted attempt, or of
    a plane that was deleted.
    """
    try:
        await store.create(resource)
    except Conflict:
        found = await store.get(type(resource), resource.name)
        version = {"resource_version": found.metadata.resource_version}
        await store.update(resource.model_copy(update={"metadata": resource.metadata.model_copy(update=version)}))


def require_readable(doing: str, plane: ControlPlane, moment: BackupMoment) -> None:
    """Raise PreconditionFailed for the database of a newer etcd: the older one panics on it."""
    made, has = moment.full.etcd_version, plane.spec.etcd.version
    if minor(made) > minor(has):
        seen = f"etcd {made} made the backup, and the plane has etcd {has}"
        raise PreconditionFailed(
            doing, seen, f"'upgrade {plane.name} --etcd {made}' first, or choose an earlier moment"
        )


def _require_restorable(plane: ControlPlane) -> None:
    doing = f"restoring plane {plane.name}"
    if plane.metadata.deletion_timestamp is not None:
        raise PreconditionFailed(doing, "it is being deleted", f"'quarterdeck wait {plane.name}' continues that")
    if not plane.status.awaits_data and (paused := operations.why_paused(plane, datetime.now(UTC))):
        raise PreconditionFailed(doing, paused, f"'quarterdeck resume {plane.name}' first")
    operations.require_known(plane)


def _at_revision(chain: Chain, epochs: list[int], revision: int) -> BackupMoment:
    """Of several epochs with that revision, the newest one; the error names what the newest one has."""
    for epoch in epochs:
        if any(first <= revision <= last for first, last in chain.ranges(MAIN, epoch)):
            return chain.at_revision(MAIN, revision, epoch)
    return chain.at_revision(MAIN, revision, epochs[0])


def time_of(to: str, moment: BackupMoment) -> datetime | None:
    """The time that a moment is of, as it was asked for; None for the newest one."""
    if to == LATEST:
        return None
    return moment.at if to.replace(",", "").isdigit() else _time(to)


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        seen = f"{text!r} is neither 'latest', an etcd revision, nor a time such as 2026-01-31T12:00:00Z"
        raise InvalidInput("choosing a moment to restore", seen, "see 'backup list'") from error
    if at.tzinfo is None:
        raise InvalidInput(
            "choosing a moment to restore", f"{text!r} has no time zone", f"write {text}Z for UTC, or {text}+02:00"
        )
    return at


async def newest_chain(store: ObjectStore, name: str, doing: str) -> tuple[str, Chain]:
    """The backups of the plane of that name that were written to last."""
    folders = sorted({"/".join(each.name.split("/")[:2]) for each in await store.names(name)})
    chains = [(each, await ChainStore(store, each.rpartition("/")[2], each).read()) for each in folders]
    found = [(folder, chain) for folder, chain in chains if chain.length]
    if not found:
        raise NotFound(doing, "the store has no backup of a plane of that name", "see what is in the store")
    return max(
        found, key=lambda each: max((full.at for full in each[1].fulls), default=datetime.min.replace(tzinfo=UTC))
    )
