"""Slots, the places for replicas that the spec asks for, and seats, the places that a site assigns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PortName(StrEnum):
    """The names of the ports of seats. (``components.catalogue`` has all of them.)"""

    ETCD_CLIENT = "etcd-client"
    ETCD_PEER = "etcd-peer"
    ETCD_METRICS = "etcd-metrics"
    APISERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"
    CLOUD_CONTROLLER_MANAGER = "cloud-controller-manager"
    EVENTS_CLIENT = "events-client"  # of the events' etcd
    EVENTS_PEER = "events-peer"
    EVENTS_METRICS = "events-metrics"


@dataclass(frozen=True, slots=True, order=True)
class HostPort:
    """A host (an address, or a name) and a TCP port."""

    host: str
    port: int

    def url(self, scheme: str = "https") -> str:
        """``https://10.0.0.1:6443``, with brackets around IPv6 addresses."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class SeatPort:
    """One port of a seat: its name, where the program listens, and where all others reach it."""

    name: str
    listen: HostPort
    advertised: HostPort


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Seat:
    """A replica's place on a machine, with its own ports: several replicas may share one machine."""

    machine: str
    ports: tuple[SeatPort, ...]

    def port(self, name: str) -> SeatPort:
        """The port of that name; raises KeyError when the seat has none."""
        for each in self.ports:
            if each.name == name:
                return each
        raise KeyError(name)

    def advertised(self, name: str) -> HostPort:
        """Where all others reach that port; raises KeyError."""
        return self.port(name).advertised

    def listen(self, name: str) -> HostPort:
        """Where the program of that port listens; raises KeyError."""
        return self.port(name).listen

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host at which a port listens or is reached, once each."""
        return tuple(dict.fromkeys(end.host for each in self.ports for end in (each.listen, each.advertised)))


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class TakenSeat:
    """The owner of a seat: a replica of a plane (by its uid: names of planes can be used again)."""

    plane: str
    replica: str
    seat: Seat


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Slot:
    """A place for one replica. ``zone`` "": any zone of the site. There may be several equal slots."""

    site: str
    zone: str
