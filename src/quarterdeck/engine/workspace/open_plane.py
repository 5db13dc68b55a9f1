"""A stored plane with all its ports, open for a block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home


@asynccontextmanager
async def open_plane(home: Home, name: str) -> AsyncIterator[Plane]:
    """The plane of that name, for a caller that holds no lease. Raises Gone, and what ``Home.plane`` does."""
    resource = await recorded.existing(home.store, name)
    async with AsyncExitStack() as stack:
        yield await home.plane(resource, stack)
