"""Reading the store of a home, with as few imports as possible: what is recorded of planes, without observing them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Isolation
from quarterdeck.engine.workspace import leases, recorded
from quarterdeck.engine.workspace.home_folder import home_folder, home_key
from quarterdeck.engine.workspace.home_store import open_home_store
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.port import Event, Store


class Records:
    """The recorded state of a home: only its store is open. ``Looks`` can observe planes as well, and ``Quarterdeck``
    can change them. The rules for the calls of ``Quarterdeck`` apply here too.
    """

    def __init__(self, store: Store) -> None:
        """The caller closes ``store``."""
        self._store = store

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path | None = None, *, key: Key | None = None) -> AsyncIterator[Self]:
        """The records of the home in ``folder``, which is found and opened as ``Quarterdeck.open`` does."""
        store = await open_home_store(*place(folder, key))
        try:
            yield cls(store)
        finally:
            await store.close()

    async def planes(self) -> tuple[ControlPlane, ...]:
        """All planes, as they are stored."""
        return tuple(await self._store.list(ControlPlane))

    async def plane(self, name: str) -> ControlPlane:
        """A plane as it is stored: its desired state, and its recorded state."""
        return await recorded.existing(self._store, name)

    async def history(self, name: str) -> tuple[Operation, ...]:
        """The operations of a plane, the oldest first; also of a deleted one, as long as they are stored."""
        found = await recorded.operations_of(self._store, name)
        if not found:
            await recorded.existing(self._store, name)
        return found

    async def operations(self) -> tuple[Operation, ...]:
        """The operations of all planes."""
        return tuple(await self._store.list(Operation))

    async def events(self, name: str | None = None) -> tuple[Event, ...]:
        """The events of a plane, or of all; repeated events are counted."""
        if name is not None:
            await recorded.existing(self._store, name)
        return tuple(await self._store.events(name))

    async def network_of(self, name: str) -> Isolation:
        """The kind of network of a plane: the host's own for a plane whose site is deleted."""
        return await recorded.network_of(self._store, await recorded.existing(self._store, name))

    async def manager(self, name: str) -> str:
        """The process that manages a plane's network (`quarterdeck serve`), as text; "" if there is none."""
        return await recorded.manager_of(self._store, name)

    async def managers(self) -> Mapping[Isolation, str]:
        """The running managers, as text, by the network of their planes."""
        held = {each: await self._store.lease(leases.manager_lease(each)) for each in Isolation}
        return {network: lease.holder for network, lease in held.items() if lease is not None}


def place(folder: Path | None, key: Key | None) -> tuple[Path, Key | None]:
    """The folder and the key of a home. The environment gives the defaults."""
    return home_folder(os.environ) if folder is None else folder, home_key(os.environ) if key is None else key
