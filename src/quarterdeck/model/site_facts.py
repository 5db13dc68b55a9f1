"""Facts from one observation of a site, about all planes there."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.units import Machine, UnitState, UnitStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFacts:
    """A volume. ``entries`` are the names in the requested folder of it; empty where the folder does not exist.
    ``arriving``: it was detached from another machine, and cannot be used before it is attached here.
    """

    name: str
    storage_class: str
    entries: tuple[str, ...] = ()
    arriving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """A machine, its units and volumes; None: unknown, because it does not answer.

    ``away`` are storage classes that cannot be read now (a disk that is not mounted): they may have further volumes.
    """

    machine: Machine
    units: tuple[UnitStatus, ...] | None = None
    volumes: tuple[VolumeFacts, ...] | None = None
    away: tuple[str, ...] = ()

    def unit(self, name: str) -> UnitStatus:
        """One unit; UNKNOWN where the units are unknown, ABSENT where it does not exist."""
        if self.units is None:
            return UnitStatus(name=name, state=UnitState.UNKNOWN)
        found = (each for each in self.units if each.name == name)
        return next(found, UnitStatus(name=name, state=UnitState.ABSENT))

    def holds(self, volume: str) -> tuple[str, ...] | None:
        """The entries of a volume: empty where it does not exist, None where that is unknown."""
        if self.volumes is None:
            return None
        found = next((each for each in self.volumes if each.name == volume and not each.arriving), None)
        if found is None:
            return None if self.away else ()
        return found.entries


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """An observed site. ``storage_classes``: the default first; ``reattachable``: those whose volumes can be detached
    from a machine that does not answer, and attached to another one. Missing facts are unknown: a machine that is not
    among ``machines`` may exist.
    """

    name: str
    machines: tuple[MachineFacts, ...]
    storage_classes: tuple[str, ...]
    reattachable: frozenset[str] = frozenset()

    def machine(self, name: str) -> MachineFacts | None:
        """One machine; None where it is unknown."""
        return next((each for each in self.machines if each.machine.name == name), None)

    def away_from(self, machine: str, volume: str) -> str:
        """The other machine that has a volume of ``machine``, or from which it is arriving; "" where none is known."""
        own = self.machine(machine)
        if own is not None and any(each.name == volume and not each.arriving for each in own.volumes or ()):
            return ""  # the usual case: the volumes of other planes need not be searched
        for each in self.machines:
            for found in each.volumes or ():
                if found.name == volume and (found.arriving or each.machine.name != machine):
                    return each.machine.name
        return ""
