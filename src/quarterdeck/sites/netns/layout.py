"""The layout of a lab: sites, machines, and the ways between sites, as data. No IO.

The keeper writes it to a file, so that a lab whose keeper died, or whose host was rebooted, comes back with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from ipaddress import IPv4Address
from types import MappingProxyType
from typing import Self

from quarterdeck.errors import Conflict, Corrupt, InvalidInput, NotFound

CLIENT = "client"
"""The namespace of the command line, its probes and other clients: it can reach every machine."""
HUB = "hub"
"""The namespace of services that sites share, such as a DNS server."""
OUTSIDE = "@outside"
"""The network of the client and the hub: for the ways between sites it counts as a site (number 0)."""
CLIENT_ADDRESS, HUB_ADDRESS = "10.89.0.2", "10.89.0.53"
SHARED: Mapping[str, int] = MappingProxyType({CLIENT: 2, HUB: 53})
"""The namespaces of OUTSIDE with their numbers."""
ROUTER_SIDE, FORWARDER_SIDE = "wan0", "wan1"
"""The router's interface towards the forwarder, and the one of the forwarder."""
GATEWAY = "10.88.0.1"
"""The router's address, the same on every bridge and outside of all their subnets: no machine number is used up."""

_SEATS = IPv4Address("100.64.0.0")
MOST_SEATS = 16
"""Additional addresses for replicas that share a machine: beyond that they share one while they are replaced."""
MOST_LED = 62
"""Addresses of a site that can move between machines."""
_FLOATING = IPv4Address("198.18.0.0")
_LAST_EDGE, _EDGES = 254, 8


def address(site_number: int, machine_number: int) -> str:
    """The IP address of a machine; both numbers are 1 to 254."""
    for number in (site_number, machine_number):
        if not 1 <= number <= 254:
            raise InvalidInput("giving a machine its address", f"{number} is not a number from 1 to 254")
    return f"10.89.{site_number}.{machine_number}"


def subnet(site_number: int) -> str:
    """The network of a site, without its length, which is 24."""
    return f"10.89.{site_number}.0"


def seats_network(site_number: int) -> str:
    """The network of the addresses that seats have besides their machines', of a whole site: /18 of 100.64.0.0/10,
    which no network of a plane is likely to be part of.
    """
    return _seats_address(site_number, 0, 0)


def seats_of_machine(site_number: int, machine_number: int) -> str:
    """The part of it that is routed to one machine: /26."""
    return _seats_address(site_number, machine_number, 0)


def seat_addresses(site_number: int, machine_number: int) -> tuple[str, ...]:
    """The addresses of a machine's seats besides its own; both numbers are 1 to 254."""
    return tuple(_seats_address(site_number, machine_number, seat) for seat in range(1, MOST_SEATS + 1))


def _seats_address(site: int, machine: int, seat: int) -> str:
    return str(_SEATS + (site << 14 | machine << 6 | seat))


def led_addresses(site_number: int) -> tuple[str, ...]:
    """The addresses that lead to a site and belong to no machine: the current holder is found by ARP."""
    return tuple(_seats_address(site_number, 0, each) for each in range(1, MOST_LED + 1))


def floating_network(site_number: int) -> str:
    """The network of the addresses that move between the edges of a site: /23 of 198.18.0.0/15, which is for isolated
    networks.
    """
    return str(_FLOATING + (site_number << 9))


def floating_address(site_number: int, machine_number: int) -> str | None:
    """The address of an edge that can move to another edge of the site; None where the machine's number is not that of
    an edge.
    """
    edge = _LAST_EDGE - machine_number
    return str(_FLOATING + (site_number << 9 | edge + 1)) if 0 <= edge < _EDGES else None


def site_of(packed: bytes) -> int:
    """The number of the site that an address of the lab leads to, by its four bytes."""
    if packed[0] == _SEATS.packed[0]:
        return (packed[1] & 0x3F) << 2 | packed[2] >> 6
    if packed[0] == _FLOATING.packed[0]:
        return (packed[1] & 1) << 7 | packed[2] >> 1
    return packed[2]


def inside(site: str, machine: str) -> str:
    """The name of the namespace of a machine, as ``enter`` accepts it (besides CLIENT and HUB)."""
    return f"{site}/{machine}"


class Cut(StrEnum):
    """The directions of a link that lose every packet."""

    NONE = "none"
    BOTH = "both"
    A_TO_B = "a_to_b"
    B_TO_A = "b_to_a"


@dataclass(frozen=True, slots=True)
class Way:
    """One direction between two sites. ``delay_ms`` is what a packet takes for it, in milliseconds."""

    delay_ms: float = 0.0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """Both directions between two sites."""

    a_to_b: Way = Way()
    b_to_a: Way = Way()

    @property
    def cut(self) -> Cut:
        """Which directions are cut."""
        if self.a_to_b.cut:
            return Cut.BOTH if self.b_to_a.cut else Cut.A_TO_B
        return Cut.B_TO_A if self.b_to_a.cut else Cut.NONE

    @property
    def rtt_ms(self) -> float:
        """The round trip that the link adds, in milliseconds."""
        return self.a_to_b.delay_ms + self.b_to_a.delay_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSite:
    """A site: a bridge in the router."""

    name: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabMachine:
    """A machine: a network namespace on its site's bridge. ``plugged`` is false while it is cut off, and ``deaf`` is
    true while no packets reach it.
    """

    site: str
    name: str
    number: int
    plugged: bool = True
    deaf: bool = False

    def with_cable(self, *, plugged: bool, deaf: bool = False) -> Self:
        """With its cable plugged in or out, or in one direction alone."""
        return replace(self, plugged=plugged, deaf=deaf)


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole lab. ``ways`` has only those that delay or cut, each as (from site, to site, way)."""

    sites: tuple[LabSite, ...] = ()
    machines: tuple[LabMachine, ...] = ()
    ways: tuple[tuple[str, str, Way], ...] = ()

    def number(self, site: str) -> int:
        """A site's number, 0 for OUTSIDE; raises NotFound."""
        if site == OUTSIDE:
            return 0
        for each in self.sites:
            if each.name == site:
                return each.number
        raise NotFound("looking up a site of the lab", f"site {site!r} does not exist")

    def machine(self, site: str, name: str) -> LabMachine | None:
        """That machine, or None."""
        return next((each for each in self.machines if (each.site, each.name) == (site, name)), None)

    def way(self, source: str, target: str) -> Way:
        """One direction between two sites."""
        return next((way for a, b, way in self.ways if (a, b) == (source, target)), Way())

    def with_site(self, site: LabSite) -> Self:
        """With a site added; unchanged if it exists; Conflict if its name or number belongs to another."""
        if site in self.sites:
            return self
        if site.name == OUTSIDE or not 1 <= site.number <= 254:
            raise InvalidInput("adding a site to the lab", f"{site.name!r} with number {site.number} is invalid")
        taken = next((each for each in self.sites if each.name == site.name or each.number == site.number), None)
        if taken is not None:
            raise Conflict("adding a site to the lab", f"{taken.name!r} already has number {taken.number}")
        return replace(self, sites=(*self.sites, site))

    def with_machine(self, machine: LabMachine) -> Self:
        """With a machine added to an existing site, or plugged in or out if it exists itself."""
        address(self.number(machine.site), machine.number)
        others = tuple(each for each in self.machines if (each.site, each.name) != (machine.site, machine.name))
        before = self.machine(machine.site, machine.name)
        taken = any(each.site == machine.site and each.number == machine.number for each in others)
        if taken or (before is not None and before.number != machine.number):
            raise Conflict(
                "adding a machine to the lab", f"the number of {machine.name!r} changed, or belongs to another machine"
            )
        return replace(self, machines=(*others, machine))

    def without_machine(self, site: str, name: str) -> Self:
        """Without a machine; without its site and the site's ways too if it was the last one there."""
        machines = tuple(each for each in self.machines if (each.site, each.name) != (site, name))
        if any(each.site == site for each in machines):
            return replace(self, machines=machines)
        return replace(
            self,
            machines=machines,
            sites=tuple(each for each in self.sites if each.name != site),
            ways=tuple(each for each in self.ways if site not in each[:2]),
        )

    def with_way(self, source: str, target: str, way: Way) -> Self:
        """With one direction between two sites changed."""
        if self.number(source) == self.number(target) or way.delay_ms < 0:
            raise InvalidInput("changing a link of the lab", f"{source} to {target}, {way.delay_ms} ms, is invalid")
        others = tuple(each for each in self.ways if each[:2] != (source, target))
        return replace(self, ways=others if way == Way() else (*others, (source, target, way)))

    def to_json(self) -> bytes:
        """The layout for its file."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """The layout from its file; raises Corrupt."""
        try:
            read = json.loads(content)
            return cls(
                sites=tuple(LabSite(**each) for each in read["sites"]),
                machines=tuple(LabMachine(**each) for each in read["machines"]),
                ways=tuple((source, target, Way(**way)) for source, target, way in read["ways"]),
            )
        except (ValueError, TypeError, KeyError) as error:
            raise Corrupt("reading the layout of the lab", str(error), "delete the file to start again") from error
