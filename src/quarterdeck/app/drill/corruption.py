"""Corrupting one etcd member: a key that nothing reads is altered in its database only."""

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

#: The key: apiservers read and watch only keys below /registry.
_KEY = b"quarterdeck.dev/drill"
#: Time to live in seconds, beyond the fault's own time: it removes the key if this process dies.
_LEFT_FOR = 60.0
#: Seconds for the member to write it to disk, and between two checks: a database is written ten times a second.
_WRITTEN = 10.0
_PACE = 0.2


@dataclass(kw_only=True)
class Corrupting:
    """One of the ``MakesFaults``. Undoing the fault deletes the key it needs; if this process is dead, etcd deletes it
    by itself, on all members alike.
    """

    home: Home
    plane: str
    site: MakesFaults
    _asked: Lease | None = field(default=None, init=False)

    async def make_fault(self, fault: Fault, seconds: float) -> None:
        """Write the key through the whole cluster, alter it on one member, and request a comparison of the members."""
        name, holder = comparison_lease(self.plane), this_process("a drill")
        held = await self.home.store.lease(name)
        if held is not None:
            seen = f"{held.holder} compares the data of the members now"
            raise Conflict("corrupting the data of a member", seen, "try again in a minute")
        async with open_plane(
            self.home, self.plane
        ) as plane:  # the current plane: its members may have been replaced since
            life = math.ceil(seconds + _LEFT_FOR)
            await plane.etcd.keep_for(client_urls(plane), _KEY, fault.text.encode(), life)
        await self._altered(fault, seconds)
        self._asked = await self.home.store.acquire(name, holder, seconds)

    async def _altered(self, fault: Fault, seconds: float) -> None:
        """Make the fault once the key is in the member's database."""
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
        """Delete the key. The member's data stays altered, and its manager replaces it."""
        if self._asked is not None:
            await self.home.store.release(self._asked)
        try:
            async with open_plane(self.home, self.plane) as plane:
                await plane.etcd.forget(client_urls(plane), _KEY)
        except QuarterdeckError as error:
            return f"the key {_KEY.decode()} in its etcd, which deletes it by itself within minutes ({error.seen})"
        return ""
