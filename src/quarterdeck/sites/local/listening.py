"""Which TCP ports are listened on, from the kernel's tables (proc_net_tcp)."""

from __future__ import annotations

import ipaddress
import struct

TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
_LISTEN = "0A"


def listening_ports(tables: str, address: str) -> frozenset[int]:
    """The ports on which something listens at ``address``, or at every address, by the text of the tables."""
    wanted = ipaddress.ip_address(address)
    found = set()
    for line in tables.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[3] == _LISTEN:
            host, _, port = fields[1].partition(":")
            local = _address(host)
            if local.is_unspecified or local == wanted:
                found.add(int(port, 16))
    return frozenset(found)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The kernel prints an address as 32-bit words in the byte order of the machine."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    packed = b"".join(struct.pack("=I", word) for word in words)
    if len(packed) == 4:
        return ipaddress.IPv4Address(packed)
    found = ipaddress.IPv6Address(packed)
    return found.ipv4_mapped or found
