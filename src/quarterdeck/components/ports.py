"""Ports of programs, and the health paths of an apiserver.

Ports of seats come in blocks, and each plane has its own block for its load balancers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quarterdeck.components.catalogue import seat_ports
from quarterdeck.errors import InvalidInput
from quarterdeck.model.seats import HostPort, PortName, Seat, SeatPort

#: Ports of two blocks differ by this much, so that many replicas can sit on a machine.
STRIDE = 10
#: The etcd of block 788 would want the port of block 0's scheduler.
LAST_BLOCK = 787
#: Planes are counted as far as blocks are.
LAST_PLANE = LAST_BLOCK

#: The offset of the ports of apiservers that share the address of load balancers.
_BESIDE_BALANCERS = 10_000

#: The status listener of a load balancer, counted from the port that is its plane's own.
_STATUS_SHIFT = 20_000


def first_block() -> Mapping[str, int]:
    """Block 0: upstream's own ports, and for an etcd of events those behind the first one's."""
    return {port.name: port.number for port in seat_ports()}


def ports_of(block: int, names: Iterable[str] | None = None) -> dict[str, int]:
    """The ports of these names (None: of all that a seat has) in block 0 - 787. Raises InvalidInput for another block,
    or a name that no port has.
    """
    first, shift = first_block(), _shift(block, "assigning ports to a replica")
    wanted = tuple(first if names is None else names)
    unknown = ", ".join(name for name in wanted if name not in first)
    if unknown:
        raise InvalidInput("assigning ports to a replica", f"there is no port {unknown}", f"name {', '.join(first)}")
    return {str(name): first[name] + shift for name in wanted}


def beside_balancers(ports: Mapping[str, int]) -> dict[str, int]:
    """The same, with another port for the apiserver than that of load balancers."""
    return {**ports, PortName.APISERVER: ports[PortName.APISERVER] + _BESIDE_BALANCERS}


def seat_with(machine: str, host: str, ports: Mapping[str, int]) -> Seat:
    """A seat with these ports, whose programs listen, and are reached, at ``host``."""
    ends = {name: HostPort(host, port) for name, port in ports.items()}
    return Seat(
        machine=machine, ports=tuple(SeatPort(name=name, listen=end, advertised=end) for name, end in ends.items())
    )


def seat_at(machine: str, host: str, block: int) -> Seat:
    """A replica's seat with the ports of a block. Raises InvalidInput."""
    return seat_with(machine, host, ports_of(block))


def has_own_ports(seat: Seat, number: int) -> bool:
    """Whether a seat has the ports of plane ``number`` (0 - 787), as all its replicas have where these are free. Raises
    InvalidInput.
    """
    own = first_block()[PortName.ETCD_CLIENT] + _shift(number, "comparing a replica's ports with its plane's")
    return seat.listen(PortName.ETCD_CLIENT).port == own


def load_balancer_port(number: int) -> int:
    """The port of the load balancers of plane ``number`` (0 - 787), on machines of the role EDGE. Raises
    InvalidInput.
    """
    return first_block()[PortName.APISERVER] + _shift(number, "assigning a port to a plane")


def balancer_status_port(number: int) -> int:
    """The status port of the load balancers of plane ``number``. Raises InvalidInput."""
    return load_balancer_port(number) + _STATUS_SHIFT


def _shift(number: int, doing: str) -> int:
    if not 0 <= number <= LAST_BLOCK:
        raise InvalidInput(doing, f"{number} is not between 0 and {LAST_BLOCK}", "choose another number")
    return STRIDE * number


#: Of those that the events' etcd fails alone: an apiserver whose own member of it is gone serves all else (kubernetes
#: 1.33: options/etcd.go, addEtcdHealthEndpoint). Names that a version does not know, or that nothing was set up for,
#: are passed over.
_EVENTS = "exclude=etcd-override-0&exclude=etcd-override-readiness-0"
READYZ = f"/readyz?{_EVENTS}"
LIVEZ = f"/livez?{_EVENTS}"

#: The same for an apiserver of a plane that has been served before: it begins to look after the default roles and
#: priority classes, which are there already, only a second after it serves (kubernetes: storage_rbac.go). It reads
#: from etcd once, not twice one after the other: each of the checks ``etcd`` and ``etcd-readiness`` waits for 2 s, and
#: within 1 s of another one answers what it last saw (kubernetes: storagebackend/factory/etcd3.go).
READYZ_FOUNDED = (
    f"{READYZ}&exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
    "&exclude=etcd-readiness"
)
