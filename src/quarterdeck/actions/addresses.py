"""Where the programs of a plane's replicas are reached: everybody goes by the seats, and asks here."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.ports import seat_of_before
from quarterdeck.errors import NotFound
from quarterdeck.kube.port import Address
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import PortName, Seat
from quarterdeck.model.units import Machine


def seat_of(plane: Plane, record: Replica) -> Seat:
    """A replica's place on its machine, which all that runs or reaches it goes by. Raises NotFound for one from
    before there were seats whose machine is gone.
    """
    return recorded_seat(record, plane.resource, plane.machines)


def recorded_seat(record: Replica, plane: ControlPlane, machines: Mapping[tuple[str, str], Machine]) -> Seat:
    """The seat of a replica of any plane. Raises NotFound as ``seat_of`` does."""
    if record.seat is not None:
        return record.seat
    machine = machines.get((record.site, record.machine))
    if machine is None:
        raise NotFound(f"working on replica {record.name}", f"site {record.site} has no machine {record.machine}")
    return seat_of_before(record.machine, machine.address, plane.status.port_offset or 0)


def client_url(plane: Plane, record: Replica) -> str:
    """Where a member answers clients."""
    return seat_of(plane, record).advertised(PortName.ETCD_CLIENT).url()


def client_urls(plane: Plane) -> tuple[str, ...]:
    """The client URLs of all replicas that are or may be members."""
    memory = plane.memory
    return tuple(
        client_url(plane, record) for record in memory.replicas if record.listed or record.name in memory.bootstrap
    )


def peer_url(plane: Plane, record: Replica) -> str:
    """Where a member answers its peers; it identifies the member."""
    return seat_of(plane, record).advertised(PortName.ETCD_PEER).url()


def metrics_url(plane: Plane, record: Replica) -> str:
    """Where a member tells its metrics, from its first moment on."""
    return seat_of(plane, record).advertised(PortName.ETCD_METRICS).url(plane.settings_of(record).metrics_scheme)


def server_address(plane: Plane, record: Replica, port: PortName) -> Address:
    """Where one of a replica's Kubernetes programs answers."""
    end = seat_of(plane, record).advertised(port)
    return Address(end.host, end.port)


def apiserver_address(plane: Plane, record: Replica) -> Address:
    """Where a replica's apiserver answers."""
    return server_address(plane, record, PortName.APISERVER)


def backend_address(plane: Plane, record: Replica) -> BackendAddress:
    """The same, for load balancers."""
    end = seat_of(plane, record).advertised(PortName.APISERVER)
    return BackendAddress(end.host, end.port)
