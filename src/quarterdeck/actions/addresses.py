"""The addresses of the programs of a plane's replicas, which follow from their seats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from quarterdeck.actions.plane import Plane
from quarterdeck.components.etcd import PORTS
from quarterdeck.errors import Corrupt
from quarterdeck.etcd.facts import ListedMember
from quarterdeck.kube.port import Address
from quarterdeck.model.clusters import Cluster
from quarterdeck.model.endpoints import BackendAddress
from quarterdeck.model.memory import Memory, Replica
from quarterdeck.model.seats import PortName, Seat


def seat_of(record: Replica) -> Seat:
    """A replica's place on its machine, from which all its addresses follow. Raises Corrupt for a record without one:
    replicas are recorded with their seats.
    """
    if record.seat is None:
        seen = "its record has no seat"
        raise Corrupt(f"working on replica {record.name}", seen, "restore the store from a backup")
    return record.seat


def client_url(record: Replica, cluster: Cluster = Cluster.MAIN) -> str:
    """Where a replica's member of a cluster answers clients."""
    return seat_of(record).advertised(PORTS[cluster].client).url()


def client_urls(plane: Plane, cluster: Cluster = Cluster.MAIN) -> tuple[str, ...]:
    """The client URLs of all replicas that are or may be members of a cluster."""
    return urls_in(plane.memory, cluster)


def urls_in(memory: Memory, cluster: Cluster) -> tuple[str, ...]:
    """``client_urls`` of a plane with that memory."""
    return tuple(client_url(record, cluster) for record in _candidates(memory.of(cluster)))


def candidates(plane: Plane, cluster: Cluster = Cluster.MAIN) -> tuple[Replica, ...]:
    """The replicas that are or may be members of a cluster, in the form of that cluster. Members of a former epoch are
    left out.
    """
    return _candidates(plane.memory.of(cluster))


def _candidates(memory: Memory) -> tuple[Replica, ...]:
    may_be = (each for each in memory.replicas if each.listed or each.name in memory.bootstrap)
    return tuple(each for each in may_be if not memory.is_former(each))


def peer_url(record: Replica, cluster: Cluster = Cluster.MAIN) -> str:
    """Where a replica's member of a cluster answers its peers; it identifies the member."""
    return seat_of(record).advertised(PORTS[cluster].peer).url()


def owners(plane: Plane, cluster: Cluster, members: Iterable[ListedMember]) -> dict[int, Replica]:
    """The replica that each member belongs to, by the member's id; members that belong to none are left out.

    A replica's member is the one with the id that was noted for it, and no other: a member can have any name and any
    free peer URL. Where no id was noted yet, a founder's member is the only one with its name, which etcd has from its
    first moment; any other one's is identified by the replica's peer URL; and for a replica that was moved to another
    machine with its data before ids were noted, it is the only one with its name.
    """
    listed, memory = tuple(members), plane.memory.of(cluster)
    noted = {each.member_id: each for each in memory.replicas if each.member_id}
    found = {member.id: noted[member.id] for member in listed if member.id in noted}
    unnoted = [each for each in memory.replicas if not each.member_id]
    found |= _by_name(listed, found, [each for each in unnoted if each.name in memory.bootstrap])
    known = {each.name for each in found.values()}
    urls = {peer_url(each, cluster): each for each in unnoted if each.name not in known}
    for member in (each for each in listed if each.id not in found):
        url = next((url for url in member.peer_urls if url in urls), None)
        if url is not None:
            found[member.id] = urls.pop(url)
    return found | _by_name(listed, found, [each for each in urls.values() if each.started])


def _by_name(
    listed: Iterable[ListedMember], found: Mapping[int, Replica], records: Iterable[Replica]
) -> dict[int, Replica]:
    """The replicas whose name only one member has that has no owner yet, by the member's id."""
    by_name = {}
    for record in records:
        named = [each.id for each in listed if each.name == record.name and each.id not in found]
        if len(named) == 1:
            by_name[named[0]] = record
    return by_name


def metrics_url(record: Replica, cluster: Cluster = Cluster.MAIN) -> str:
    """Where a replica's member of a cluster serves its metrics, from its first moment on."""
    return seat_of(record).advertised(PORTS[cluster].metrics).url()


def server_address(record: Replica, port: str) -> Address:
    """Where one of a replica's Kubernetes programs answers."""
    end = seat_of(record).advertised(port)
    return Address(end.host, end.port)


def apiserver_address(record: Replica) -> Address:
    """Where a replica's apiserver answers."""
    return server_address(record, PortName.APISERVER)


def apiservers(plane: Plane) -> Mapping[str, Address]:
    """Where each replica's apiserver answers, by its name."""
    return {record.name: apiserver_address(record) for record in plane.memory.replicas}


def elsewhere(plane: Plane, port: int, front: str | None = None) -> frozenset[str]:
    """The replicas whose apiserver is not reached at the port that clients use. ``front``: the site of a promoted
    address, at which only an apiserver at its machine's own address is reached.
    """
    found = {name for name, at in apiservers(plane).items() if at.port != port}
    if front is not None:
        found |= {each.name for each in plane.memory.replicas if each.site != front or not at_its_machines(plane, each)}
    return frozenset(found)


def at_its_machines(plane: Plane, record: Replica) -> bool:
    """Whether all ports of a replica are at its machine's own address."""
    machine = plane.machines.get((record.site, record.machine))
    return machine is not None and set(seat_of(record).hosts) == {machine.address}


def backend_address(record: Replica) -> BackendAddress:
    """The same, for load balancers."""
    end = seat_of(record).advertised(PortName.APISERVER)
    return BackendAddress(end.host, end.port)
