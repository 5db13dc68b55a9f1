"""One member of etcd comes to have other data than the others: a key that nobody reads is altered in its database."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field

from quarterdeck.actions.addresses import client_urls
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.leases import comparison_lease
from quarterdeck.engine.workspace.open_plane import open_plane
from quarterdeck.errors import Conflict, NotFound, QuarterdeckError
from quarterdeck.model.faults import Fault
from quarterdeck.sites.port import MakesFaults
from quarterdeck.stores.lease import this_process
from quarterdeck.stores.port import Lease

#: The key: apiservers read and watch none but those below /registry.
_KEY = b"quarterdeck.dev/drill"
#: Seconds for which it is there when whoever wrote it is dead, besides the fault's own time.
_LEFT_FOR = 60.0
#: Seconds for the member to have it on its disk, and between two looks: a database is written ten times a second.
_WRITTEN = 10.0
_PACE = 0.2


@dataclass(kw_only=True)
class Corrupting:
    """One of the ``MakesFaults``. The key that it needs is deleted when the fault is undone; where nobody lives to do
    so, etcd deletes it by itself, on all members alike.
    """

    home: Home
    plane: str
    site: MakesFaults
    _asked: Lease | None = field(default=None, init=False)

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        """Write the key by the whole cluster, alter it on one member, and ask for the members to be compared."""
        name, who = comparison_lease(self.plane), this_process("a drill")
        held = await self.home.store.lease(name)
        if held is not None:
            raise Conflict(f"having {fault.words}", f"{held.holder} has them compared now", "try again in a minute")
        async with open_plane(self.home, self.plane) as plane:  # as it is now: its members are exchanged meanwhile
            life = math.ceil(seconds + _LEFT_FOR)
            await plane.etcd.keep_for(client_urls(plane), _KEY, fault.text.encode(), life)
        await self._altered(fault, seconds)
        self._asked = await self.home.store.acquire(name, who, seconds)

    async def _altered(self, fault: Fault, seconds: float) -> None:
        """Have the fault made once the key is in the member's database."""
        clock = asyncio.get_running_loop().time
        end = clock() + _WRITTEN
        while True:
            try:
                await self.site.make_fault(fault, seconds)
            except NotFound:
                if clock() > end:
                    raise
                await asyncio.sleep(_PACE)
            else:
                return

    async def undo_fault(self, fault: Fault) -> str:
        """Delete the key; the member's data stays as it is, for its manager to be exchanged."""
        if self._asked is not None:
            await self.home.store.release(self._asked)
        try:
            async with open_plane(self.home, self.plane) as plane:
                await plane.etcd.forget(client_urls(plane), _KEY)
        except QuarterdeckError as error:
            return f"the key {_KEY.decode()} in its etcd, which deletes it by itself within minutes ({error.seen})"
        return ""
