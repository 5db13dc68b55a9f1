"""keepalived: virtual IPs, each at one machine of a site at a time, by VRRP. Pure.

Addresses that *float* belong to the site: all its planes share them, and its edges have them by turns. An address that
is *promoted* belongs to one plane, and any machine of the site can have it. Both are units of the same program, the
distribution's, which each kind of site starts in its own way (``Routing``). Beside keepalived runs a loop that writes
down how its machine does (sites/vrrp/8-vrrp.sh), and puts the machine's interface into the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from pathlib import PurePosixPath

from quarterdeck.model.units import UnitFile, UnitSpec

#: The unit's name on each edge, whatever planes there are.
KEEPALIVED = "keepalived"
#: Its file, below the folder of that unit, and the folder with a file for each plane that is served on the machine.
_CONFIGURATION, _SERVED = "keepalived.conf", "live"
#: The file that has the clients of a promoted address wait.
_HOLD = PurePosixPath("hold", "now")
#: The first that reads weights from files by the name that is used here (keepalived: track_file).
_OLDEST = (2, 1)
#: Seconds between two advertisements. An edge that says nothing for three of them has lost its addresses to another.
ADVERTISED_EVERY = 0.5
#: Priorities: an address is its own edge's first, the others follow in turn. Each weight is added while its condition
#: holds. An edge with clients keeps the address, so that it goes home only when that cuts no connection. An edge that
#: does not serve gives it to one that does, and keeps it if none does.
OWN, OTHERS = 150, 100
HAS_CLIENTS, DOES_NOT_SERVE = 70, -140
#: The same of a promoted address. A machine that is not to have it any more keeps it as long as it serves clients, and
#: stands by for those that are to have it.
FORMER = 45
HAS_CLIENTS_OF_ITS_OWN, DOES_NOT_SERVE_ITS_OWN = 140, -253


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How a machine runs keepalived: the program of the unit, and the files of it that come with the machine."""

    argv: tuple[str, ...]
    files: tuple[UnitFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterSettings:
    """An edge's part. ``address`` is its machine's own, ``peers`` are those of the site's other edges. ``places`` has
    each address that moves between edges, with this edge's place in its order of edges (0: it is this edge's own).
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


def keepalived_unit(settings: RouterSettings, folder: PurePosixPath, routing: Routing) -> UnitSpec:
    """The unit of an edge, for floating addresses."""
    return _unit(KEEPALIVED, configuration(settings), folder, routing)


def promoted_unit_name(plane: str) -> str:
    """The name of the unit of a plane that has its promoted address, on each machine."""
    return f"{plane}-{KEEPALIVED}"


def is_keepalived(unit: str) -> bool:
    """Whether a unit of that name is one of these."""
    return unit == KEEPALIVED or unit.endswith(f"-{KEEPALIVED}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotedSettings:
    """A machine's part in the promoted ``address`` of a plane. ``own`` is the machine's address. ``place`` is its place
    among the machines that are to have it (None: it is none of them). ``note`` is what the machine tells of the unit.
    """

    unit: str
    address: str
    own: str
    place: int | None
    note: str


def promoted_unit(settings: PromotedSettings, folder: PurePosixPath, routing: Routing) -> UnitSpec:
    """The unit. Another place or note is a change of its files alone."""
    unit = _unit(settings.unit, promoted_configuration(settings), folder, routing)
    return replace(unit, note=settings.note)


def _unit(name: str, text: str, folder: PurePosixPath, routing: Routing) -> UnitSpec:
    file = UnitFile(folder / _CONFIGURATION, text.encode())
    return UnitSpec(name=name, argv=routing.argv, files=(file, *routing.files), stop_timeout=5.0)


def served_file(folder: PurePosixPath, plane: str, *, ready: int | None, port: int) -> UnitFile:
    """The file from which a machine knows how a plane is served on it: the port at which its load balancer reports
    how ``ready`` it is (None: an apiserver serves, as long as it listens), and the ``port`` of clients. Connections to
    other ports are not those of clients: the manager's observations make them.
    """
    return UnitFile(folder / _SERVED / plane, f"{'-' if ready is None else ready} {port}\n".encode())


def hold_file(folder: PurePosixPath, seconds: float, number: int, *, new: bool = False) -> UnitFile:
    """Has the clients of a promoted address on this machine wait for at most so long, or go on (0). The unit's log has
    the line ``held_line`` once they wait. ``number`` is another one for each hold. ``new``: only clients that are not
    connected yet wait, and only where nftables is installed.
    """
    return UnitFile(folder / _HOLD, f"{max(0, round(seconds * 1000))} {number}{' new' if new else ''}\n".encode())


def held_line(number: int) -> str:
    """The line in the unit's log once clients are paused."""
    return f"clients wait: {number}"


def not_usable(version: str) -> str:
    """Why an edge with that keepalived ("": none) cannot have floating addresses; "" if it can."""
    if not version:
        return "keepalived is not installed: floating addresses need the distribution's package"
    numbers = tuple(int(each) for each in version.split(".") if each.isdigit())
    if numbers < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        return f"keepalived {version} is too old: floating addresses need {oldest} or newer"
    return ""


def configuration(settings: RouterSettings) -> str:
    """keepalived.conf(5) of an edge. It runs no scripts, for which it would have to be root: it reads from files how
    its machine does.
    """
    # from the same wire alone, where no router has taken anything off
    peers = _lines("unicast_peer", *(f"{each} min_ttl 255 max_ttl 255" for each in settings.peers))
    spoken = (f"unicast_src_ip {settings.address}", *peers)
    parts = [_defaults("vrrp_check_unicast_src"), _tracked_file("fails", DOES_NOT_SERVE)]
    routers = zip(settings.places.items(), router_ids(settings.places), strict=True)
    for number, ((address, place), router) in enumerate(routers, 1):
        parts.append(_tracked_file(f"busy_{number}", HAS_CLIENTS))
        parts.append(_instance(number, address, router, priority(place), spoken))
    return "\n".join(parts)


def promoted_configuration(settings: PromotedSettings) -> str:
    """keepalived.conf(5) of a machine that may have a promoted address. It speaks to all on the wire: any machine of
    the site may get the address, and its holder must learn of that, whichever machines it knew.
    """
    (router,) = router_ids((settings.address,))
    base = FORMER if settings.place is None else _base(settings.place)
    return "\n".join(
        (
            _defaults(),
            _tracked_file("fails", DOES_NOT_SERVE_ITS_OWN),
            _tracked_file("busy_1", HAS_CLIENTS_OF_ITS_OWN),
            _instance(1, settings.address, router, base, (f"mcast_src_ip {settings.own}",)),
        )
    )


def _defaults(*more: str) -> str:
    return _block("global_defs", "vrrp_version 3", *more, "vrrp_garp_master_refresh 10")


def _instance(number: int, address: str, router: int, base: int, spoken: Iterable[str]) -> str:
    return _block(
        f"vrrp_instance floating_{number}",
        "state BACKUP",
        "interface @INTERFACE@",
        f"virtual_router_id {router}",
        f"priority {base}",
        f"advert_int {ADVERTISED_EVERY:g}",
        *spoken,
        *_lines("virtual_ipaddress", f"{address}/32"),
        *_lines("track_file", "fails", f"busy_{number}"),
    )


def priority(place: int, *, clients: bool = False, serves: bool = True) -> int:
    """The priority of an edge in that place, as keepalived computes it: never below 1."""
    return _reckoned(_base(place) + (HAS_CLIENTS if clients else 0) + (0 if serves else DOES_NOT_SERVE))


def promoted_priority(place: int | None, *, clients: bool = False, serves: bool = True) -> int:
    """The same for a promoted address."""
    base = FORMER if place is None else _base(place)
    return _reckoned(
        base + (HAS_CLIENTS_OF_ITS_OWN if clients else 0) + (0 if serves else DOES_NOT_SERVE_ITS_OWN),
    )


def _base(place: int) -> int:
    return OWN if place == 0 else OTHERS - place


def _reckoned(sum_of_all: int) -> int:
    """A priority within the bounds of keepalived."""
    return min(254, max(1, sum_of_all))


def router_ids(addresses: Iterable[str]) -> tuple[int, ...]:
    """A number from 1 to 255 for each: the last of its address, as is the custom, or the next that is free."""
    taken: list[int] = []
    for each in addresses:
        number = IPv4Address(each).packed[-1] or 1
        while number in taken:
            number = number % 255 + 1
        taken.append(number)
    return tuple(taken)


def _tracked_file(name: str, weight: int) -> str:
    """A tracked file: 1 while the condition holds, else 0."""
    return _block(f"track_file {name}", f"file @STATE@/{name}", f"weight {weight}")


def _block(head: str, *inside: str) -> str:
    return "\n".join((f"{head} {{", *(f"    {each}" for each in inside), "}", ""))


def _lines(head: str, *inside: str) -> tuple[str, ...]:
    return (f"{head} {{", *(f"    {each}" for each in inside), "}")
