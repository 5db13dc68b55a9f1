"""What one look at a site tells of all that is there, whoever's it is."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.units import Machine, UnitState, UnitStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeFacts:
    """A volume. ``entries`` are the names in that folder of it that the look was for; none where there is no such
    folder. ``arriving``: it was taken from another machine, and nobody can use it before it is attached here.
    """

    name: str
    storage_class: str
    entries: tuple[str, ...] = ()
    arriving: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """A machine, its units and volumes; None: not known, since it does not answer.

    ``away`` are storage classes that cannot be looked at now (a disk that is not mounted): what is not among the
    volumes may be there.
    """

    machine: Machine
    units: tuple[UnitStatus, ...] | None = None
    volumes: tuple[VolumeFacts, ...] | None = None
    away: tuple[str, ...] = ()

    def unit(self, name: str) -> UnitStatus:
        """One unit; UNKNOWN where nothing is known of units, ABSENT where there is no such one."""
        if self.units is None:
            return UnitStatus(name=name, state=UnitState.UNKNOWN)
        found = (each for each in self.units if each.name == name)
        return next(found, UnitStatus(name=name, state=UnitState.ABSENT))

    def holds(self, volume: str) -> tuple[str, ...] | None:
        """The entries of a volume: none where there is no such volume, None when that is not known."""
        if self.volumes is None:
            return None
        found = next((each for each in self.volumes if each.name == volume and not each.arriving), None)
        if found is None:
            return None if self.away else ()
        return found.entries


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFacts:
    """A site as it was seen. ``storage_classes``: the default first; ``reattachable``: those whose volumes can be taken
    from a machine that does not answer, and attached to another one. What nothing is said of is not known: a machine
    that is not among ``machines`` may be there.
    """

    name: str
    machines: tuple[MachineFacts, ...]
    storage_classes: tuple[str, ...]
    reattachable: frozenset[str] = frozenset()

    def machine(self, name: str) -> MachineFacts | None:
        """One machine; None when nothing is known of it."""
        return next((each for each in self.machines if each.machine.name == name), None)

    def away_from(self, machine: str, volume: str) -> str:
        """The machine that has a volume which is not, or not yet, that machine's; "" where none is known to."""
        own = self.machine(machine)
        if own is not None and any(each.name == volume and not each.arriving for each in own.volumes or ()):
            return ""  # as nearly always: no need to look through all that other planes have
        for each in self.machines:
            for found in each.volumes or ():
                if found.name == volume and (found.arriving or each.machine.name != machine):
                    return each.machine.name
        return ""
