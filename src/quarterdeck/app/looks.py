"""Observing planes, with as few imports as possible: the half of ``Quarterdeck`` that changes nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from typing_extensions import override

from quarterdeck.app.plane_status import summary
from quarterdeck.app.records import Records, place
from quarterdeck.engine import status
from quarterdeck.engine.preflight import reach
from quarterdeck.engine.status import Status
from quarterdeck.engine.workspace.home import Home
from quarterdeck.progress import Progress
from quarterdeck.stores.key_seal import Key

if TYPE_CHECKING:  # most commands read once
    from quarterdeck.api.belongings import Drill
    from quarterdeck.app.controllers import SetHeld
    from quarterdeck.app.etcd.data import MemberHash
    from quarterdeck.app.etcd.failover import LostSite
    from quarterdeck.app.etcd.recovery import LostQuorum
    from quarterdeck.app.plane_watch import WatchedPlane
    from quarterdeck.app.replicas import ReplicaFacts
    from quarterdeck.app.verification import Verification

__all__ = ["Looks", "Status", "summary"]


@asynccontextmanager
async def opened(folder: Path | None, key: Key | None, progress: Progress | None = None) -> AsyncIterator[Home]:
    """A home for the block. The environment gives the defaults."""
    where, seal = place(folder, key)
    home = await Home.open(where, key=seal, progress=progress)
    try:
        yield home
    finally:
        await home.close()


class Looks(Records):
    """A read-only open home: it can observe planes; ``Quarterdeck`` can change them as well.

    The rules for its calls apply here too.
    """

    def __init__(self, home: Home) -> None:
        """The caller closes ``home``."""
        super().__init__(home.store)
        self._home = home

    @classmethod
    @asynccontextmanager
    @override
    async def open(cls, folder: Path | None = None, *, key: Key | None = None) -> AsyncIterator[Self]:
        """The home in ``folder``, as ``Quarterdeck.open`` opens it."""
        async with opened(folder, key) as home:
            yield cls(home)

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

    async def drills(self, name: str) -> tuple[Drill, ...]:
        """The recorded drills of a plane, the oldest first."""
        from quarterdeck.app.drill import drills

        return await drills.history(self._home, name)

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

    async def lost_site(self, name: str, to: str) -> LostSite:
        """The standby of a plane that has lost its quorum, and what would be lost if the plane continued with it at
        that site. Raises PreconditionFailed for a plane without a standby there, that has a quorum, or may regain it.
        """
        from quarterdeck.app.etcd import failover

        await reach.require_plane_in_reach(self._home, name)
        return await failover.lost_site(self._home, name, to)
