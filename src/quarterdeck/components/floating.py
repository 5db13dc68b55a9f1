"""The unit that has an edge's part in who of the site's edges has which address of a plane."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from quarterdeck.model.units import UnitFile, UnitSpec

_MODULE = "quarterdeck.endpoint.floating.agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingSettings:
    """``edge`` is the machine, ``owners`` has all addresses of the plane at the site, in the order of its edges, with
    the edge that each is of. ``port`` is where clients connect, ``talk`` the UDP port where edges hear each other,
    ``admin`` the socket at which the load balancer answers. ``python`` and ``search_path``: how a machine runs this
    package.
    """

    unit: str
    folder: PurePosixPath
    edge: str
    owners: Mapping[str, str]
    port: int
    talk: int
    admin: PurePosixPath
    python: PurePosixPath
    search_path: str

    @property
    def own(self) -> str:
        """The address of this edge."""
        return next(address for address, edge in self.owners.items() if edge == self.edge)


def floating_unit(settings: FloatingSettings) -> UnitSpec:
    """The unit, beside the load balancer."""
    orders = settings.folder / "orders.json"
    content = {
        "edge": settings.edge,
        "owners": dict(settings.owners),
        "port": settings.port,
        "talk": settings.talk,
        "admin": str(settings.admin),
    }
    return UnitSpec(
        name=settings.unit,
        argv=(str(settings.python), "-S", "-P", "-B", "-m", _MODULE, str(orders)),
        files=(UnitFile(orders, json.dumps(content, indent=1).encode()),),
        env=(("PYTHONPATH", settings.search_path),),
        stop_timeout=2.0,
    )
