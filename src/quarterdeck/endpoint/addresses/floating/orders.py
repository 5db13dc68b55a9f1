"""What the process of an edge, or of any machine that an address is led to, goes by: a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Orders:
    """What the file says: ``edge`` is this machine's name; ``owners`` has each address with the edge that it is of, in
    the order of the site. ``port`` is where clients connect, ``talk`` the UDP port where the machines of this plane
    hear each other, and ``admin`` the socket at which the load balancer answers ("": there is none here, and clients
    come to whoever listens at ``port``).

    Where an address is led to machines, ``order`` names these, ``leads`` their own addresses, and ``number`` is higher
    than that of all orders before. ``owner`` and ``token``: in whose name, and under which token of its lease, that was
    written.
    """

    edge: str
    owners: dict[str, str]
    port: int
    talk: int
    admin: str
    order: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    number: tuple[int, int] = (0, 0)
    owner: str = ""
    token: int = 0


#: Beside the orders: for how many seconds clients are to be held here.
HOLD = "hold"


def read(path: Path) -> Orders:
    """What a file says. Raises OSError, ValueError."""
    said = json.loads(path.read_bytes())
    lists = {each: tuple(said[each]) for each in ("order", "leads", "number") if each in said}
    try:
        return Orders(**{**said, **lists})
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from None
