"""The parts of a local site, and the names and numbers of its machines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quarterdeck.errors import InvalidInput
from quarterdeck.model.units import MachineRole
from quarterdeck.sites.isolation import MachinePlace

MOST_ZONES = 16
MOST_PER_ZONE = 15
EDGE_NUMBER = 254
MOST_EDGES = 8  # they are numbered from EDGE_NUMBER down
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_ENTRY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStorageClass:
    """Where volumes of a class are: below ``folder``, or below the machine's own folder when it is None.

    ``limit_bytes`` bounds the size of all volumes of the class on one machine, as far as ``free_bytes`` reports it.
    ``reattachable``: volumes can be taken from a machine that does not answer.
    """

    folder: Path | None = None
    limit_bytes: int | None = None
    reattachable: bool = False


def _only_standard() -> Mapping[str, LocalStorageClass]:
    return {"standard": LocalStorageClass()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalSiteSettings:
    """A site on this host. The first storage class is the default. ``floating``: its edges take over each other's
    addresses, where the isolation allows it. Raises InvalidInput for invalid settings.
    """

    name: str
    zones: tuple[str, ...] = ("a", "b", "c")
    machines_per_zone: int = 2
    edges: int = 1
    floating: bool = False
    storage_classes: Mapping[str, LocalStorageClass] = field(default_factory=_only_standard)

    def __post_init__(self) -> None:
        doing = f"reading the settings of site {self.name!r}"
        for label in (self.name, *self.zones, *self.storage_classes):
            if not _LABEL.fullmatch(label):
                raise InvalidInput(doing, f"{label!r} is not a DNS label", "use a-z, 0-9 and - only, at most 63")
        if not 1 <= len(self.zones) <= MOST_ZONES or len(set(self.zones)) != len(self.zones):
            raise InvalidInput(doing, f"zones {', '.join(self.zones)!r}", f"name 1 to {MOST_ZONES} different zones")
        if not 1 <= self.machines_per_zone <= MOST_PER_ZONE:
            raise InvalidInput(doing, f"{self.machines_per_zone} machines per zone", f"choose 1 to {MOST_PER_ZONE}")
        if not 1 <= self.edges <= min(MOST_EDGES, len(self.zones)):
            raise InvalidInput(doing, f"{self.edges} edges", f"choose 1 to {MOST_EDGES}, each in another zone")
        if not self.storage_classes:
            raise InvalidInput(doing, "no storage class", "name at least one")

    @property
    def reattachable(self) -> frozenset[str]:
        """The storage classes whose volumes outlive their machines."""
        return frozenset(name for name, each in self.storage_classes.items() if each.reattachable)


@dataclass(frozen=True, slots=True)
class MachineEntry:
    """A machine. ``declared``: it is in the settings; others were used before, and may have something left."""

    place: MachinePlace
    role: MachineRole
    declared: bool = True


def stands(settings: LocalSiteSettings, site_number: int) -> dict[str, MachineEntry]:
    """The machines by name: ``east-a1``, ``east-b1``, ``east-c1``, ``east-a2``, ..., ``east-edge``, ``east-edge-2``.

    A machine keeps its number when zones are appended or the machines per zone change.
    """
    found: dict[str, MachineEntry] = {}

    def add(name: str, number: int, zone: str, role: MachineRole) -> None:
        machine = f"{settings.name}-{name}"
        place = MachinePlace(
            site=settings.name, site_number=site_number, machine=machine, machine_number=number, zone=zone
        )
        found[machine] = MachineEntry(place, role)

    for row in range(settings.machines_per_zone):
        for column, zone in enumerate(settings.zones):
            dash = "-" if zone[-1].isdigit() else ""  # or machine 11 of zone z would be machine 1 of zone z1
            add(f"{zone}{dash}{row + 1}", row * MOST_ZONES + column + 1, zone, MachineRole.CONTROL)
    for at, zone in enumerate(settings.zones[: settings.edges]):
        add(f"edge-{at + 1}" if at else "edge", EDGE_NUMBER - at, zone, MachineRole.EDGE)
    return found


def require_entry_name(doing: str, name: str) -> None:
    """Raise InvalidInput unless ``name`` can name a folder below another, whatever it is built from."""
    if not _ENTRY.fullmatch(name):
        raise InvalidInput(doing, f"{name!r} is not a name", "use letters, digits and . _ - (at most 128)")
