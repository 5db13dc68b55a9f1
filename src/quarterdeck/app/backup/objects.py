"""The objects of a plane as its backups have them: compared, read, and brought back into the plane."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import quote

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.app.backup.restores import LATEST, Restores
from quarterdeck.backup.chain import BackupMoment, Chain
from quarterdeck.backup.kubernetes.bring_back import (
    MANAGER,
    FieldChange,
    Owner,
    applicable,
    field_changes,
    owners_of,
    printable,
    warnings,
    why_not,
)
from quarterdeck.backup.kubernetes.kinds import CRDS, chosen_kind, served_kinds
from quarterdeck.backup.kubernetes.object_changes import ComparedMoment, MomentDifference, compared
from quarterdeck.backup.kubernetes.scratch_apiserver import ScratchApiserver
from quarterdeck.engine.observation.queries import ready_apiserver
from quarterdeck.engine.preflight.reach import require_plane_in_reach
from quarterdeck.engine.reconcile.drive import Engine
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.backups import OpenBackups, open_backups
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.engine.workspace.scratch_moments import moment_difference
from quarterdeck.engine.workspace.scratch_planes import scratch_plane
from quarterdeck.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from quarterdeck.kube.port import Address, ApiResource, Discovered, Refusal, Refused

_DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUpObject:
    """An object as it was at a moment. ``document`` may have secrets; it has no ``managedFields``."""

    plane: str
    moment: ComparedMoment
    resource: ApiResource
    namespace: str
    name: str
    document: Mapping[str, JsonValue] = field(repr=False)

    @property
    def path(self) -> str:
        """Where an apiserver serves it."""
        return self.resource.path(self.namespace, quote(self.name))

    @property
    def called(self) -> str:
        """What people call it, such as ``widgets.tests.example default/one``."""
        kind = ".".join(filter(None, (self.resource.plural, self.resource.group)))
        return f"{kind} {self.namespace}/{self.name}" if self.namespace else f"{kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BringBack:
    """What bringing an object back will do. ``uid``: that of the object of its name that the plane has now ("": none).
    ``changes`` are the fields of that one that change, and ``left`` those that stay, because they were added since.
    ``dropped`` are owners that no longer exist.
    """

    object: BackedUpObject
    uid: str
    manifest: Mapping[str, JsonValue] = field(repr=False)
    changes: tuple[FieldChange, ...] = ()
    left: tuple[FieldChange, ...] = ()
    dropped: tuple[Owner, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether the plane has all of it."""
        return bool(self.uid) and not self.changes

    @property
    def warnings(self) -> tuple[str, ...]:
        """What does not come back with the object."""
        return warnings(self.object.document, created=not self.uid)


class BackedUpObjects:
    """``Quarterdeck.backups.objects``. The rules for calls of ``Quarterdeck`` apply. Moments are named as for
    ``Restores.plan``, and raise the same errors.
    """

    def __init__(self, home: Home, engine: Callable[[], Engine], restores: Restores) -> None:
        """``engine``: opened for what needs programs."""
        self._home = home
        self._engine = engine
        self._restores = restores

    async def diff(self, name: str, *, at: str, to: str = LATEST) -> MomentDifference:
        """What happened to the objects of a plane from the moment ``at`` to another one. Raises what building does."""
        backups, chain, before = await self._moment(name, at)
        after = await self._restores.moment(backups, chain, to)
        return await moment_difference(self._home, name, backups, before, after)

    async def get(self, name: str, kind: str, object_: str, *, at: str) -> BackedUpObject:
        """An object as it was at a moment: ``kind`` as kubectl takes types, ``object_`` as NAMESPACE/NAME or NAME. An
        apiserver on a copy of the database decodes it on this host. Nothing of the plane is touched.

        Raises NotFound for an unknown type and for an object that was not there, InvalidInput for a type that may be
        several, and what building raises.
        """
        plane = await recorded.existing(self._home.store, name)
        backups, chain, moment = await self._moment(name, at)
        upstream = self._engine().upstream
        async with scratch_plane(self._home, upstream, plane, backups, chain, moment) as apiserver:
            return await _read(apiserver, name, kind, object_, compared(moment))

    async def plan(self, found: BackedUpObject) -> BringBack:
        """What bringing an object back into its plane would do; changes nothing. Raises PreconditionFailed for an
        object that cannot be brought back sensibly, or that the plane refuses, and Unavailable.
        """
        doing = _bringing(found)
        if why := why_not(found.document):
            raise PreconditionFailed(doing, why)
        async with self._asked(found.plane, doing) as (plane, apiserver):
            await _require_served(plane, apiserver, found, doing)
            dropped = await _lost_owners(plane, apiserver, found)
            manifest = applicable(found.document, without=dropped)
            live = _document(await plane.kube.read(apiserver, found.path))
            if _document(live.get("metadata")).get("deletionTimestamp") is not None:
                raise PreconditionFailed(doing, "it is being deleted now", "run the command again once it is gone")
            try:
                result = _document(await plane.kube.preview(apiserver, found.path, manifest, manager=MANAGER))
            except Refused as error:
                raise _refused(doing, error, exists=bool(live)) from error
        return BringBack(
            object=found,
            uid=_uid(live),
            manifest=manifest,
            changes=field_changes(live, result) if live else (),
            left=field_changes(result, {**manifest}) if live else (),
            dropped=dropped,
        )

    async def bring_back(self, plan: BringBack) -> None:
        """Apply it, server-side and by a field manager of its own. Raises Conflict where the object was created,
        deleted or replaced since it was planned, PreconditionFailed where the plane refuses it, and Unavailable.
        """
        found, doing = plan.object, _bringing(plan.object)
        async with self._asked(found.plane, doing) as (plane, apiserver):
            if _uid(_document(await plane.kube.read(apiserver, found.path))) != plan.uid:
                raise Conflict(doing, "it was created or deleted meanwhile", "run the command again")
            try:
                await plane.kube.apply(apiserver, found.path, plan.manifest, manager=MANAGER, force=True)
            except Refused as error:
                raise _refused(doing, error, exists=bool(plan.uid)) from error

    async def _moment(self, name: str, at: str) -> tuple[OpenBackups, Chain, BackupMoment]:
        plane = await recorded.existing(self._home.store, name)
        backups = await open_backups(self._home, plane)
        chain = await backups.chains.read()
        return backups, chain, await self._restores.moment(backups, chain, at)

    @asynccontextmanager
    async def _asked(self, name: str, doing: str) -> AsyncIterator[tuple[Plane, Address]]:
        """A plane and one of its apiservers."""
        await require_plane_in_reach(self._home, name)
        async with open_plane(self._home, name) as plane:
            yield plane, await ready_apiserver(plane, doing)


async def _read(
    apiserver: ScratchApiserver, plane: str, kind: str, object_: str, moment: ComparedMoment
) -> BackedUpObject:
    """Lists at an exact revision of etcd: what this apiserver wrote since it started is not seen."""
    doing = f"reading {kind} {object_} of plane {plane} at revision {moment.revision:,}"
    exactly = f"resourceVersion={apiserver.revision}&resourceVersionMatch=Exact"
    kinds = await served_kinds(apiserver.objects, apiserver.address, f"{CRDS.path()}?{exactly}")
    resource = chosen_kind(kinds, kind, doing)
    namespace, _, name = object_.rpartition("/")
    if not name or "/" in namespace:
        raise InvalidInput(doing, f"{object_!r} names no object", "write NAMESPACE/NAME, or NAME")
    if namespace and not resource.namespaced:
        raise InvalidInput(doing, f"{resource.plural} are in no namespace", f"write {name}")
    namespace = (namespace or _DEFAULT) if resource.namespaced else ""
    path = f"{resource.path(quote(namespace))}?fieldSelector=metadata.name%3D{quote(name, safe='')}&{exactly}"
    listed = _document(await apiserver.objects.read(apiserver.address, path)).get("items")
    items = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    if not items:
        where = f"in namespace {namespace} " if namespace else ""
        raise NotFound(doing, f"there was no such object {where}then", "see 'backup diff', or choose another moment")
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    document: dict[str, JsonValue] = {"apiVersion": version, "kind": resource.kind, **items[0]}
    return BackedUpObject(
        plane=plane, moment=moment, resource=resource, namespace=namespace, name=name, document=printable(document)
    )


async def _require_served(plane: Plane, apiserver: Address, found: BackedUpObject, doing: str) -> None:
    """Raise PreconditionFailed where the plane lacks what the object needs: its kind, or its namespace."""
    if found.resource not in (await plane.kube.discover(apiserver)).resources:
        version = f"{found.resource.group}/{found.resource.version}".lstrip("/")
        seen = f"the plane does not serve {found.resource.plural} ({version}) now"
        raise PreconditionFailed(doing, seen, "bring its CustomResourceDefinition back first, or 'restore' the plane")
    if found.namespace and await plane.kube.read(apiserver, f"/api/v1/namespaces/{found.namespace}") is None:
        seen = f"namespace {found.namespace} does not exist now"
        raise PreconditionFailed(doing, seen, f"bring it back first: '--apply namespaces {found.namespace}'")


async def _lost_owners(plane: Plane, apiserver: Address, found: BackedUpObject) -> tuple[Owner, ...]:
    """The owners that do not exist now. Another object of the same name is not the owner: an object whose owners are
    all gone is deleted.
    """
    owners = owners_of(found.document)
    served = await plane.kube.discover(apiserver) if owners else Discovered(())
    lost = []
    for owner in owners:
        kinds = (each for each in served.resources if (each.group, each.kind) == (owner.group, owner.kind))
        kind = next(kinds, None)
        path = kind.path(found.namespace, quote(owner.name)) if kind is not None else ""
        there = _document(await plane.kube.read(apiserver, path)) if path else {}
        if _uid(there) != owner.uid:
            lost.append(owner)
    return tuple(lost)


def _bringing(found: BackedUpObject) -> str:
    return f"bringing {found.called} back into plane {found.plane}"


def _refused(doing: str, error: Refused, *, exists: bool) -> PreconditionFailed:
    """The plane's own words. What cannot be changed can be created again."""
    again = exists and error.why is Refusal.INVALID
    return PreconditionFailed(doing, error.seen, "delete it first, and run the command again" if again else "")


def _document(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _uid(document: Mapping[str, JsonValue]) -> str:
    uid = _document(document.get("metadata")).get("uid")
    return uid if isinstance(uid, str) else ""
