"""Facts of hosts' kernels: listening TCP ports, and inotify instances, of which there are few.

Measured with Kubernetes 1.36: an apiserver opens 7 inotify instances, one for each file that it watches, a controller
manager and a scheduler 2 each; a leading controller manager opens 5 more, one for each signer and one for volume
plugins. An apiserver with webhooks of authorization opens one more, and one for each plugin with manifests of admission
(measured with 1.37), which the numbers below leave out.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence

from quarterdeck.model.seats import HostPort

PER_REPLICA = 11
PER_LEADER = 5
PER_BALANCER = 3
#: Of the leader, a load balancer, a DNS server and a door.
PER_PLANE = PER_LEADER + PER_BALANCER + 2


TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_LISTEN = "0A"


def listening_ends(tables: str, addresses: Sequence[str]) -> frozenset[HostPort]:
    """The listening sockets at one of ``addresses``, or at every address, from the text of the tables."""
    wanted = {ipaddress.ip_address(each): each for each in addresses}
    found: set[HostPort] = set()
    for line in tables.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3] == _LISTEN:
            host, _, port = fields[1].partition(":")
            local = _address(host)
            at = addresses if local.is_unspecified else [wanted[local]] if local in wanted else []
            found |= {HostPort(each, int(port, 16)) for each in at}
    return frozenset(found)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The kernel prints an address as 32-bit words in the byte order of the machine."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    if len(packed) == 4:
        return ipaddress.IPv4Address(packed)
    found = ipaddress.IPv6Address(packed)
    return found.ipv4_mapped or found
