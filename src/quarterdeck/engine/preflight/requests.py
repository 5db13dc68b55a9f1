"""What can be asked for of a plane. Nothing is looked at, and nothing happens, before one is given to a call."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.api.plane.controllers import Manager


@dataclass(frozen=True, slots=True)
class Create:
    """A new plane, as a document declares it or as ``new_control_plane`` makes it."""

    plane: ControlPlane


@dataclass(frozen=True, slots=True)
class Apply:
    """The plane as it is declared: created if there is none of that name, else changed."""

    plane: ControlPlane


@dataclass(frozen=True, slots=True)
class Migrate:
    """The plane at another site, with as many replicas as now or with 1, 3, 5 or 7.

    ``allow_distance``: also where a round trip takes more than 180 ms.
    """

    name: str
    to: str
    replicas: int | None = None
    allow_distance: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The plane with another number of replicas, where it is."""

    name: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Replace:
    """Replicas exchanged for new ones, one after the other, whether or not they are well: one, or all of them."""

    name: str
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class HandOver:
    """A set of controllers run by another manager. ``downtime_allowed``: the managers of all replicas may stop at once,
    where that is the shorter way.
    """

    name: str
    controller_set: str
    source: Manager
    target: Manager
    downtime_allowed: bool = False


@dataclass(frozen=True, slots=True)
class HandBack:
    """A set of controllers run by the manager that had it before: what is under way is taken back, or else the last
    hand-over of that set is undone by another one. ``downtime_allowed``: as of ``HandOver``.
    """

    name: str
    controller_set: str
    downtime_allowed: bool = False


@dataclass(frozen=True, slots=True)
class RenewCertificates:
    """All certificates issued anew but those of authorities, and taken up by one replica after the other."""

    name: str


@dataclass(frozen=True, slots=True)
class Abort:
    """The plane as it was before the operation that is under way."""

    name: str


@dataclass(frozen=True, slots=True)
class Delete:
    """The plane gone, with all its data."""

    name: str


Request = Create | Apply | Migrate | Scale | Replace | HandOver | HandBack | RenewCertificates | Abort | Delete
