"""Reading planes, with as few imports as possible: the half of ``Quarterdeck`` that changes nothing."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.operation import Operation
from quarterdeck.api.site import Isolation
from quarterdeck.app.plane_status import summary
from quarterdeck.engine import status
from quarterdeck.engine.preflight import reach
from quarterdeck.engine.status import Status
from quarterdeck.engine.workspace import leases, operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.home_folder import home_folder, home_key
from quarterdeck.engine.workspace.places import network_of
from quarterdeck.progress import Progress
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.port import Event

if TYPE_CHECKING:  # most commands read once
    from quarterdeck.api.belongings import Drill
    from quarterdeck.app.controllers import SetHeld
    from quarterdeck.app.etcd.data import MemberHash
    from quarterdeck.app.etcd.recovery import LostQuorum
    from quarterdeck.app.plane_watch import WatchedPlane
    from quarterdeck.app.replicas import ReplicaFacts
    from quarterdeck.app.verification import Verification

__all__ = ["Looks", "Status", "summary"]


@asynccontextmanager
async def opened(folder: Path | None, key: Key | None, progress: Progress | None = None) -> AsyncIterator[Home]:
    """A home for the block. The environment gives the defaults."""
    home = await Home.open(
        home_folder(os.environ) if folder is None else folder,
        key=home_key(os.environ) if key is None else key,
        progress=progress,
    )
    try:
        yield home
    finally:
        await home.close()


class Looks:
    """A read-only open home; ``Quarterdeck`` can change it as well.

    The rules for its calls apply here too.
    """

    def __init__(self, home: Home) -> None:
        """The caller closes ``home``."""
        self._home = home

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path | None = None, *, key: Key | None = None) -> AsyncIterator[Self]:
        """The home in ``folder``, as ``Quarterdeck.open`` opens it."""
        async with opened(folder, key) as home:
            yield cls(home)

    async def planes(self) -> tuple[ControlPlane, ...]:
        """All planes, as they are stored."""
        return tuple(await self._home.store.list(ControlPlane))

    async def plane(self, name: str) -> ControlPlane:
        """A plane as it is stored: its desired state, and its recorded state."""
        return await operations.existing(self._home.store, name)

    async def examine(self, name: str) -> Status:
        """Observe a plane now, without changing it: members, leaders, load balancers, and what is left to do."""
        await reach.require_plane_in_reach(self._home, name)
        return await status.look(self._home, name, sure=True)

    def watching(
        self, name: str | None = None, *, every: float = 1.5
    ) -> AsyncGenerator[tuple[WatchedPlane, ...], None]:
        """Observe a plane, or all, every ``every`` seconds without changing them: the last observation of each. Ends
        when that one plane is deleted. A plane that cannot be observed has an error text, and delays no other. Raises
        Gone at once when no plane has that name.
        """
        from quarterdeck.app.plane_watch import Watch

        return Watch(home=self._home, every=every).moments(name)

    async def history(self, name: str) -> tuple[Operation, ...]:
        """The operations of a plane, the oldest first; also of a deleted one, as long as they are stored."""
        found = await operations.operations_of(self._home.store, name)
        if not found:
            await operations.existing(self._home.store, name)
        return found

    async def drills(self, name: str) -> tuple[Drill, ...]:
        """The recorded drills of a plane, the oldest first."""
        from quarterdeck.app.drill import drills

        return await drills.history(self._home, name)

    async def operations(self) -> tuple[Operation, ...]:
        """The operations of all planes."""
        return tuple(await self._home.store.list(Operation))

    async def events(self, name: str | None = None) -> tuple[Event, ...]:
        """The events of a plane, or of all; repeated events are counted."""
        if name is not None:
            await operations.existing(self._home.store, name)
        return tuple(await self._home.store.events(name))

    async def replicas(self, name: str) -> tuple[ReplicaFacts, ...]:
        """Observe a plane now, and describe each of its replicas."""
        from quarterdeck.app import replicas

        return await replicas.listed(self._home, await self.examine(name))

    async def controllers(self, name: str) -> tuple[SetHeld, ...]:
        """The holder of each declared set of controllers, and its guarding lock, read from an apiserver and from the
        managers now. Raises Unavailable where no apiserver is ready.
        """
        from quarterdeck.app import controllers

        await reach.require_plane_in_reach(self._home, name)
        return await controllers.held(self._home, name)

    async def compare(self, name: str) -> tuple[MemberHash, ...]:
        """Whether all members of a plane's etcd have the same data, by a hash of all keys. Each member reads all its
        keys for it. Raises Unavailable where no quorum answers.
        """
        from quarterdeck.app.etcd import data

        await reach.require_plane_in_reach(self._home, name)
        return await data.compared(self._home, name)

    async def verify(
        self, name: str, *, since: timedelta | None = None, operation: str | None = None, slack: float = 0.05
    ) -> Verification:
        """Which manager acted for each set of a plane's controllers at what time, from the history of locks and the
        apiservers' audit logs: in the time of an operation, or in the last ``since``; without either in the time of the
        last operation that moved a set, else in the last hour. Missing logs are reported, and then nothing is proven.
        ``slack``: seconds by which the clocks of two machines may differ.

        Raises NotFound (the operation), PreconditionFailed for a plane that declares no sets.
        """
        from quarterdeck.app import verification  # rarely used

        await reach.require_plane_in_reach(self._home, name)
        return await verification.verified(self._home, name, since=since, operation=operation, slack=slack)

    async def lost_quorum(self, name: str) -> LostQuorum:
        """The survivors of a plane's etcd that has lost its quorum for good, and what would be lost if the plane
        continued with them. Raises PreconditionFailed for a plane that has a quorum, or may regain it by starting
        programs.
        """
        from quarterdeck.app.etcd import recovery

        await reach.require_plane_in_reach(self._home, name)
        return await recovery.lost_quorum(self._home, name)

    async def network_of(self, name: str) -> Isolation:
        """The kind of network of a plane: the host's own for a plane whose site is deleted."""
        return await network_of(self._home.store, await operations.existing(self._home.store, name))

    async def manager(self, name: str) -> str:
        """The process that manages a plane's network (`quarterdeck serve`), as text; "" if there is none."""
        return await reach.manager_of(self._home, name)

    async def managers(self) -> Mapping[Isolation, str]:
        """The running managers, as text, by the network of their planes."""
        held = {each: await self._home.store.lease(leases.manager_lease(each)) for each in Isolation}
        return {network: lease.holder for network, lease in held.items() if lease is not None}
