"""keepalived on the edges of a site: addresses that all its planes share, each at one edge at a time, by VRRP. Pure.

The program is the distribution's. A host starts it for a configuration of these lines alone, and puts its own interface
in (sites/ssh/host/8-routing.sh); what says how an edge does is that script, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import PurePosixPath

from quarterdeck.model.units import UnitFile, UnitSpec

#: The unit's name on each edge, whatever planes there are.
KEEPALIVED = "keepalived"
#: Its file, below the folder of that unit, and the folder with a file for each plane whose load balancer is there.
_CONFIGURATION, _SERVED = "keepalived.conf", "live"
#: The host's script starts keepalived, and writes down how the load balancers there do.
_ARGV = ("/usr/local/lib/quarterdeck/host", "vrrp")
#: The first that reads weights from files by the name that is used here (keepalived: track_file).
_OLDEST = (2, 1)
#: Seconds between two advertisements. An edge that says nothing for three of them has lost its addresses to another.
ADVERTISED_EVERY = 0.5
#: Priorities: an address is its own edge's first, the others follow in turn. Each weight is added while it holds. Who
#: has clients keeps the address, so that it goes home only when that cuts nobody; who does not serve gives it to one
#: who does, and keeps it if nobody does.
OWN, OTHERS = 150, 100
HAS_CLIENTS, DOES_NOT_SERVE = 70, -140


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """An edge's part. ``address`` is its machine's own, ``peers`` are those of the site's other edges. ``places`` has
    each address that goes over with this edge's place in the order of who is to have it (0: it is this edge's own).
    """

    address: str
    peers: tuple[str, ...]
    places: Mapping[str, int]


def router_settings(edge: str, edges: Mapping[str, str], addresses: Sequence[str]) -> RouterSettings:
    """The part of one of ``edges`` (name to the machine's own address, in their order), which have ``addresses`` by
    turns.
    """
    names = list(edges)
    number = names.index(edge)
    return RouterSettings(
        address=edges[edge],
        peers=tuple(each for name, each in edges.items() if name != edge),
        places={each: (number - at) % len(names) for at, each in enumerate(addresses)},
    )


def own_address(edge: str, edges: Iterable[str], addresses: Sequence[str]) -> str:
    """The address that clients of an edge are led to. Where there are fewer than edges, some share one: all but the
    first of these stand by.
    """
    return addresses[[*edges].index(edge) % len(addresses)]


def keepalived_unit(settings: RouterSettings, folder: PurePosixPath) -> UnitSpec:
    """The unit."""
    return UnitSpec(
        name=KEEPALIVED,
        argv=_ARGV,
        files=(UnitFile(folder / _CONFIGURATION, configuration(settings).encode()),),
        stop_timeout=5.0,
    )


def served_file(folder: PurePosixPath, plane: str, *, ready: int, port: int) -> UnitFile:
    """By which an edge knows of a plane's load balancer on it: at which port that says how ``ready`` it is, and which
    one clients come to. Whoever is connected to another is no client: its manager looks at it again and again.
    """
    return UnitFile(folder / _SERVED / plane, f"{ready} {port}\n".encode())


def not_usable(version: str) -> str:
    """Why an edge with that keepalived ("": none) cannot have addresses that go over; "" if it can."""
    if not version:
        return "keepalived is not installed: addresses that float need that of the distribution"
    numbers = tuple(int(each) for each in version.split(".") if each.isdigit())
    if numbers < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        return f"keepalived {version} is too old: addresses that float need {oldest} or newer"
    return ""


def configuration(settings: RouterSettings) -> str:
    """keepalived.conf(5). It runs no scripts, for which it would have to be root: it reads from files how its
    edge does.
    """
    parts = [
        _block("global_defs", "vrrp_version 3", "vrrp_check_unicast_src", "vrrp_garp_master_refresh 10"),
        _said("fails", DOES_NOT_SERVE),
    ]
    routers = zip(settings.places.items(), router_ids(settings.places), strict=True)
    for number, ((address, place), router) in enumerate(routers, 1):
        parts.append(_said(f"busy_{number}", HAS_CLIENTS))
        parts.append(
            _block(
                f"vrrp_instance floating_{number}",
                "state BACKUP",
                "interface @INTERFACE@",
                f"virtual_router_id {router}",
                f"priority {priority(place)}",
                f"advert_int {ADVERTISED_EVERY:g}",
                f"unicast_src_ip {settings.address}",
                # from the same wire alone, where no router has taken anything off
                *_lines("unicast_peer", *(f"{each} min_ttl 255 max_ttl 255" for each in settings.peers)),
                *_lines("virtual_ipaddress", f"{address}/32"),
                *_lines("track_file", "fails", f"busy_{number}"),
            )
        )
    return "\n".join(parts)


def priority(place: int, *, clients: bool = False, serves: bool = True) -> int:
    """Of an edge in that place, as keepalived reckons it: never below 1."""
    base = OWN if place == 0 else OTHERS - place
    return max(1, base + (HAS_CLIENTS if clients else 0) + (0 if serves else DOES_NOT_SERVE))


def router_ids(addresses: Iterable[str]) -> tuple[int, ...]:
    """A number from 1 to 255 for each: the last of its address, as is the custom, or the next that is free."""
    taken: list[int] = []
    for each in addresses:
        number = IPv4Address(each).packed[-1] or 1
        while number in taken:
            number = number % 255 + 1
        taken.append(number)
    return tuple(taken)


def _said(name: str, weight: int) -> str:
    """A file that says 1 while it holds, and 0."""
    return _block(f"track_file {name}", f"file /tmp/{name}", f"weight {weight}")


def _block(head: str, *inside: str) -> str:
    return "\n".join((f"{head} {{", *(f"    {each}" for each in inside), "}", ""))


def _lines(head: str, *inside: str) -> tuple[str, ...]:
    return (f"{head} {{", *(f"    {each}" for each in inside), "}")
