"""Seats: what a site gives a replica."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """A host (an address, or a name) and a TCP port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class SeatPort:
    """One port of a seat: what it is for, where the program listens, and where all others reach it."""

    name: str
    listen: Endpoint
    advertised: Endpoint


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Seat:
    """A replica's place on a machine, with ports of its own: several replicas may sit on one machine."""

    machine: str
    ports: tuple[SeatPort, ...]

    def port(self, name: str) -> SeatPort:
        """The port of that name; raises KeyError when the seat has none."""
        for each in self.ports:
            if each.name == name:
                return each
        raise KeyError(name)
