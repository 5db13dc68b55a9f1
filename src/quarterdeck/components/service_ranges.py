"""Ranges of addresses that Services of a plane cannot have. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

_Network = IPv4Network | IPv6Network

#: What every host treats differently (IANA's registries of special-purpose addresses).
_RESERVED: tuple[tuple[_Network, str], ...] = tuple(
    (ip_network(range_), why)
    for range_, why in (
        ("0.0.0.0/8", "addresses of it mean this host"),
        ("127.0.0.0/8", "its addresses never leave a host"),
        ("169.254.0.0/16", "its addresses are link-local, and no host routes them"),
        ("224.0.0.0/4", "its addresses are multicast"),
        ("240.0.0.0/4", "its addresses are reserved, and hosts drop them"),
        ("::/8", "addresses of it are unspecified, loopback, or IPv4 in another form"),
        ("fe80::/10", "its addresses are link-local, and no host routes them"),
        ("ff00::/8", "its addresses are multicast"),
    )
)


def service_range_problem(text: str, addresses: Iterable[str]) -> str:
    """Why Services of a plane whose machines have these ``addresses`` cannot have a range (an address with a prefix
    length); "" if they can.
    """
    network = ip_network(text)
    for reserved, why in _RESERVED:
        if network.version == reserved.version and network.overlaps(reserved):
            return f"{text} overlaps {reserved}: {why}"
    machines = [ip_address(each) for each in addresses]
    if machines and all(each.version != network.version for each in machines):
        return f"{text} is of IPv{network.version}, and the site's machines have IPv{machines[0].version} addresses"
    inside = next((each for each in machines if each in network), None)
    return f"{text} contains {inside}, the address of a machine of the site" if inside is not None else ""
