"""Reachability of planes in network namespaces: only a process inside one of these can reach their machines."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.site import Isolation
from quarterdeck.drivers import networks
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.recorded import network_of
from quarterdeck.errors import PreconditionFailed


async def require_in_reach(home: Home, plane: ControlPlane) -> None:
    """Raise PreconditionFailed for a plane whose machines this process cannot reach: observing would only time out."""
    if await network_of(home.store, plane) is Isolation.NETNS:
        await require_in_lab(home, f"reaching the machines of plane {plane.metadata.name}")


async def require_plane_in_reach(home: Home, name: str) -> None:
    """The same for the plane of that name. Raises Gone as well."""
    await require_in_reach(home, await recorded.existing(home.store, name))


async def require_in_lab(home: Home, doing: str) -> None:
    """Raise PreconditionFailed unless this process is in one of the networks of the home's lab."""
    if not await networks.holds_us(home.folder):
        raise PreconditionFailed(
            doing,
            "they are in network namespaces, and this process is in none of them",
            "use the command line, which enters them by itself, or start this program with quarterdeck.app.inside_argv",
        )
