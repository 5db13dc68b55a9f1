"""An address of loopback for programs that run for a moment, and free ports there."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable


def free_loopback_ports(names: Iterable[str]) -> tuple[str, dict[str, int]]:
    """A loopback address that nothing else uses, and a port there by each name. Blocks. Raises OSError where there is
    no such interface.
    """
    address = "127.255." + ".".join(str(1 + secrets.randbelow(254)) for _ in range(2))
    ports: dict[str, int] = {}
    held: list[socket.socket] = []
    try:
        for name in names:
            held.append(each := socket.socket())
            each.bind((address, 0))
            ports[name] = each.getsockname()[1]
    finally:
        for each in held:
            each.close()
    return address, ports
