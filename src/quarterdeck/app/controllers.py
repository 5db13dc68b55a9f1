"""The holder of each set of controllers of a plane, as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.engine.controller_sets.set_holders import HeldSet, sets_held
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHeld:
    """A declared set of controllers, and the current holder of its lock."""

    name: str
    #: The set's own lock.
    lock: str
    controllers: tuple[str, ...]
    #: The declared owner.
    owner: ControllerProgram
    #: The lock under which it runs, or will run: its own, or its owner's main one.
    guarded_by: str
    #: The holder's program; None: no holder, or not known.
    manager: ControllerProgram | None
    #: The holder's replica; "": not known.
    replica: str
    #: The holder's identity in the lock; "": no holder.
    identity: str
    #: When it took the lock, by its own clock.
    since: datetime | None
    #: Seconds since it last renewed the lock.
    renewed_ago: float | None
    #: The number of changes of the holder.
    transitions: int
    #: Problems, as text.
    why: tuple[str, ...]
    #: Whether its owner runs it.
    well: bool


async def held(home: Home, name: str) -> tuple[SetHeld, ...]:
    """See ``Looks.controllers``."""
    async with open_plane(home, name) as plane:
        return tuple(map(_row, await sets_held(plane)))


def _row(seen: HeldSet) -> SetHeld:
    return SetHeld(
        name=seen.declared.name,
        lock=seen.declared.lock,
        controllers=seen.declared.controllers,
        owner=seen.declared.owner,
        guarded_by=seen.guard,
        manager=seen.manager,
        replica=seen.replica,
        identity=seen.identity,
        since=datetime.fromtimestamp(seen.since, UTC) if seen.since is not None else None,
        renewed_ago=seen.renewed_ago,
        transitions=seen.token,
        why=seen.why,
        well=seen.well,
    )
