"""Locks as resources of a store: ``quarterdeck.leases`` for programs that share one."""

from __future__ import annotations

from typing import Literal

from typing_extensions import override

from quarterdeck.api.base import Metadata, Model, Resource
from quarterdeck.errors import Conflict, NotFound
from quarterdeck.leases.record import Record
from quarterdeck.leases.store import LockStore
from quarterdeck.stores.port import Store, Versions


class LockSpec(Model):
    """See ``Record``."""

    holder: str
    duration: float
    acquired: int
    renewed: int
    transitions: int
    controllers: tuple[str, ...] = ()
    asked_by: str = ""
    answers: str = ""
    precedence: int = 0


class Lock(Resource):
    """A lock as it is stored."""

    kind: Literal["Lock"] = "Lock"
    spec: LockSpec


class StoreLocks(LockStore):
    """A ``LockStore`` in a store. Names of locks are DNS labels there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @override
    async def read(self, name: str) -> Record | None:
        try:
            return _record(await self._store.get(Lock, name))
        except NotFound:
            return None

    @override
    async def create(self, name: str, record: Record) -> Record:
        return _record(await self._store.create(_resource(name, record)))

    @override
    async def update(self, name: str, record: Record) -> Record:
        try:
            return _record(await self._store.update(_resource(name, record)))
        except NotFound as error:
            raise Conflict(error.doing, error.seen) from error

    @override
    async def changed(self, name: str, version: str) -> Record | None:
        seen: Versions = {}
        while True:
            seen = await self._store.watch(seen, Lock)
            if seen.get((Lock.__name__, name), "") != version:
                found = await self.read(name)
                if (found.version if found is not None else "") != version:
                    return found


def _record(stored: Lock) -> Record:
    spec = stored.spec
    return Record(
        holder=spec.holder,
        duration=spec.duration,
        acquired=spec.acquired,
        renewed=spec.renewed,
        transitions=spec.transitions,
        controllers=spec.controllers,
        asked_by=spec.asked_by,
        answers=spec.answers,
        precedence=spec.precedence,
        version=stored.metadata.resource_version or "",
    )


def _resource(name: str, record: Record) -> Lock:
    spec = LockSpec(
        holder=record.holder,
        duration=record.duration,
        acquired=record.acquired,
        renewed=record.renewed,
        transitions=record.transitions,
        controllers=record.controllers,
        asked_by=record.asked_by,
        answers=record.answers,
        precedence=record.precedence,
    )
    return Lock(metadata=Metadata(name=name, resource_version=record.version or None), spec=spec)
