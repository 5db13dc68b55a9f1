"""Looking at planes, which loads no more than that takes: the half of ``Quarterdeck`` that changes nothing."""

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
from quarterdeck.engine import status
from quarterdeck.engine.preflight import reach
from quarterdeck.engine.status import Status, summary
from quarterdeck.engine.workspace import leases, operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.home_folder import home_folder, home_key
from quarterdeck.engine.workspace.places import network_of
from quarterdeck.progress import Progress
from quarterdeck.stores.key_seal import Key
from quarterdeck.stores.port import Event

if TYPE_CHECKING:  # most commands look once
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
    """A home for the block. What is not given is as the environment says."""
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
    """An open home that is only looked at; ``Quarterdeck`` is one that can be changed as well.

    What is said there of its calls holds for these.
    """

    def __init__(self, home: Home) -> None:
        """``home`` stays the caller's to close."""
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
        """A plane as it is stored: what is wanted of it, and what is remembered."""
        return await operations.existing(self._home.store, name)

    async def examine(self, name: str) -> Status:
        """Observe a plane now, without touching it: members, leaders, load balancers, and what is left to do."""
        await reach.require_plane_in_reach(self._home, name)
        return await status.look(self._home, name, sure=True)

    def watching(
        self, name: str | None = None, *, every: float = 1.5
    ) -> AsyncGenerator[tuple[WatchedPlane, ...], None]:
        """Observe a plane, or all, every so many seconds, without touching them: what was last seen of each. Ends when
        that one plane is gone. One that cannot be looked at says why, and holds up no other. Raises Gone at once when
        there never was one of that name.
        """
        from quarterdeck.app.plane_watch import Watch

        return Watch(home=self._home, every=every).moments(name)

    async def history(self, name: str) -> tuple[Operation, ...]:
        """What was asked of a plane, the oldest first; also of one that is gone, as long as something is known."""
        found = await operations.operations_of(self._home.store, name)
        if not found:
            await operations.existing(self._home.store, name)
        return found

    async def drills(self, name: str) -> tuple[Drill, ...]:
        """The drills of a plane that are kept, the oldest first."""
        from quarterdeck.app.drill import drills

        return await drills.history(self._home, name)

    async def operations(self) -> tuple[Operation, ...]:
        """What was asked of all planes."""
        return tuple(await self._home.store.list(Operation))

    async def events(self, name: str | None = None) -> tuple[Event, ...]:
        """What is so of a plane, or of all, said once however often it was seen."""
        if name is not None:
            await operations.existing(self._home.store, name)
        return tuple(await self._home.store.events(name))

    async def replicas(self, name: str) -> tuple[ReplicaFacts, ...]:
        """Observe a plane now, and tell of each of its replicas."""
        from quarterdeck.app import replicas

        return await replicas.listed(self._home, await self.examine(name))

    async def controllers(self, name: str) -> tuple[SetHeld, ...]:
        """Who runs each set of controllers that is declared, and which lock guards it, asked of an apiserver and of the
        managers now. Raises Unavailable where no apiserver is ready.
        """
        from quarterdeck.app import controllers

        await reach.require_plane_in_reach(self._home, name)
        return await controllers.held(self._home, name)

    async def compare(self, name: str) -> tuple[MemberHash, ...]:
        """Whether all members of a plane's etcd have the same data, by a hash of all keys. Each reads all its keys for
        it. Raises Unavailable where no quorum answers.
        """
        from quarterdeck.app.etcd import data

        await reach.require_plane_in_reach(self._home, name)
        return await data.compared(self._home, name)

    async def verify(
        self, name: str, *, since: timedelta | None = None, operation: str | None = None, slack: float = 0.05
    ) -> Verification:
        """Who acted for each set of a plane's controllers when, by the history of locks and the apiservers' audit logs:
        in the time of an operation, or ``since`` so long ago; without either in that of the last operation that handed
        a set over, else in the last hour. What cannot be read is said, and then nothing is proven. ``slack``: seconds
        by which clocks of two machines may differ.

        Raises NotFound (the operation), PreconditionFailed for a plane that declares no sets.
        """
        from quarterdeck.app import verification  # few ever do

        await reach.require_plane_in_reach(self._home, name)
        return await verification.verified(self._home, name, since=since, operation=operation, slack=slack)

    async def lost_quorum(self, name: str) -> LostQuorum:
        """What is left of a plane's etcd that has lost its quorum for good, and what would be lost with the rest if the
        plane went on with it. Raises PreconditionFailed for one that has a quorum, or may get it by what can be
        started.
        """
        from quarterdeck.app.etcd import recovery

        await reach.require_plane_in_reach(self._home, name)
        return await recovery.lost_quorum(self._home, name)

    async def network_of(self, name: str) -> Isolation:
        """What kind of network a plane lives in: the host's own for one whose site is gone."""
        return await network_of(self._home.store, await operations.existing(self._home.store, name))

    async def manager(self, name: str) -> str:
        """Which process keeps a plane's network (`quarterdeck serve`), in words; "" if none does."""
        return await reach.manager_of(self._home, name)

    async def managers(self) -> Mapping[Isolation, str]:
        """Which processes keep planes now, in words, by the network of these planes."""
        held = {each: await self._home.store.lease(leases.manager_lease(each)) for each in Isolation}
        return {network: lease.holder for network, lease in held.items() if lease is not None}
