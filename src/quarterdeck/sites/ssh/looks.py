"""Parsing the observation of a host by its script. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from quarterdeck.model.site_facts import VolumeFacts
from quarterdeck.model.units import MachineState, UnitState, UnitStatus, Volume
from quarterdeck.sites.ssh.wire import not_parsed, parsing


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    """One observation of a host: the units of all its machines, each with its machine's name; its volumes; the storage
    classes that are unknown. A host with a fault may report only that it is not up. ``claims``: of re-attachable
    volumes, the start of each of the host's claims (a number that grows).
    """

    units: tuple[tuple[str, UnitStatus], ...]
    volumes: tuple[VolumeFacts, ...]
    away: tuple[str, ...]
    state: MachineState = MachineState.UP
    claims: Mapping[str, int] = field(default_factory=dict)

    def units_of(self, machine: str) -> tuple[UnitStatus, ...]:
        """The units of one machine."""
        return tuple(unit for name, unit in self.units if name == machine)


def read_look(doing: str, answer: bytes) -> HostLook:
    """The output of a host. Raises Corrupt."""
    units: list[tuple[str, UnitStatus]] = []
    volumes: list[VolumeFacts] = []
    away: list[str] = []
    state = MachineState.UP
    claims: dict[str, int] = {}
    line = ""
    try:
        for line in answer.decode().splitlines():
            kind, *fields = line.split("\t")
            match kind:
                case "unit":
                    units.append(_unit(fields))
                case "files":
                    machine, name = fields
                    units.append((machine, UnitStatus(name=name, state=UnitState.STOPPED, files_only=True)))
                case "volume":
                    volume, claim = _volume_facts(fields)
                    volumes.append(volume)
                    claims |= {volume.name: claim} if claim is not None else {}
                case "away":
                    away += fields
                case "off":
                    state = MachineState.DOWN
                case "still":
                    state = MachineState.UNREACHABLE
                case _:
                    raise ValueError(line)
    except ValueError as error:
        raise not_parsed(doing, line or answer.decode(errors="replace"), error) from error
    return HostLook(units=tuple(units), volumes=tuple(volumes), away=tuple(away), state=state, claims=claims)


def _volume_facts(fields: Sequence[str]) -> tuple[VolumeFacts, int | None]:
    """A volume, and the start of the host's claim."""
    storage_class, name, stand, *entries = fields
    arriving, _, since = stand.partition(":")
    facts = VolumeFacts(
        name=name, storage_class=storage_class, entries=tuple(sorted(entries)), arriving=arriving == "yes"
    )
    return facts, int(since) if since else None


def _unit(fields: Sequence[str]) -> tuple[str, UnitStatus]:
    machine, name, state, digest, pid, exit_code, restarts, altered, note, refused = fields
    return machine, UnitStatus(
        name=name,
        state=UnitState(state),
        digest=digest,
        pid=int(pid) if pid else None,
        exit_code=int(exit_code) if exit_code else None,
        restarts=int(restarts),
        refused=refused,
        altered=altered == "yes",
        note=note,
    )


def read_volumes(doing: str, answer: bytes) -> tuple[Volume, ...]:
    """Volumes with their sizes. Raises Corrupt."""
    with parsing(doing, answer) as text:
        return tuple(map(_volume, text.splitlines()))


def _volume(line: str) -> Volume:
    name, storage_class, path, used, changed = line.split("\t")
    return Volume(
        name=name,
        storage_class=storage_class,
        path=PurePosixPath(path),
        used_bytes=int(used),
        changed=float(changed) if changed else None,
    )
