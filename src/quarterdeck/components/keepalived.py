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
_HOST = "/usr/local/lib/quarterdeck/host"
_ARGV = (
    "/usr/sbin/keepalived",
    *("--dont-fork", "--log-console", "--vrrp"),
    "--use-file=/run/quarterdeck/keepalived.conf",
    *("--pid=/tmp/keepalived.pid", "--vrrp_pid=/tmp/vrrp.pid"),
)
#: Seconds between two advertisements. An edge that says nothing for three of them has lost its addresses to another.
ADVERTISED_EVERY = 0.5
#: Priorities: an address is its own edge's first, the others follow in turn. Each weight is added while it holds. Who
#: has clients keeps the address, so that it goes home only when that cuts nobody; who does not serve gives it to one
#: who does, and keeps it if nobody does.
OWN, OTHERS = 150, 100
HAS_CLIENTS, DOES_NOT_SERVE = 70, -140
#: Seconds between two looks at how an edge does; so many in a row must fail. A load balancer that is held, or started
#: anew, is no failure.
_LOOKS_EVERY, _LOOKS_FAIL = 1, 3


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


def configuration(settings: RouterSettings) -> str:
    """keepalived.conf(5). Scripts run as the process does, which is not root: "script_user root" leaves that be."""
    parts = [
        _block(
            "global_defs",
            "script_user root",
            "enable_script_security",
            "vrrp_version 3",
            "vrrp_check_unicast_src",
            "vrrp_garp_master_refresh 10",
        ),
        _script("works", "edge-works", fails=_LOOKS_FAIL, weight=DOES_NOT_SERVE),
    ]
    routers = zip(settings.places.items(), router_ids(settings.places), strict=True)
    for number, ((address, place), router) in enumerate(routers, 1):
        parts.append(_script(f"busy_{number}", f"edge-busy {address}", fails=1, weight=HAS_CLIENTS))
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
                *_lines("track_script", "works", f"busy_{number}"),
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


def _script(name: str, words: str, *, fails: int, weight: int) -> str:
    return _block(
        f"vrrp_script {name}",
        f'script "{_HOST} {words}"',
        f"interval {_LOOKS_EVERY}",
        "timeout 2",
        f"fall {fails}",
        "rise 1",
        f"weight {weight}",
    )


def _block(head: str, *inside: str) -> str:
    return "\n".join((f"{head} {{", *(f"    {each}" for each in inside), "}", ""))


def _lines(head: str, *inside: str) -> tuple[str, ...]:
    return (f"{head} {{", *(f"    {each}" for each in inside), "}")
