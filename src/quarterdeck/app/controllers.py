"""Who runs each set of controllers of a plane, as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.api.plane.controllers import ControllerProgram
from quarterdeck.engine.controller_sets.set_holders import HeldSet, sets_held
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.open_plane import open_plane


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHeld:
    """A set: its own ``lock``, its ``controllers`` and its ``owner`` as they are declared. ``guarded_by``: the lock
    under which it runs now, or is to run: its own, or its owner's main one. Who holds that: ``manager`` (None: nobody,
    or it is not known), of ``replica`` ("": none says that it does), called ``identity`` ("": nobody holds it),
    ``since`` then by its own clock, renewed so many seconds ago (``renewed_ago``). ``transitions`` counts its holders.
    ``why``: what is to be said against it, in words. ``well``: its owner runs it.
    """

    name: str
    lock: str
    controllers: tuple[str, ...]
    owner: ControllerProgram
    guarded_by: str
    manager: ControllerProgram | None
    replica: str
    identity: str
    since: datetime | None
    renewed_ago: float | None
    transitions: int
    why: tuple[str, ...]
    well: bool


async def held(home: Home, name: str) -> tuple[SetHeld, ...]:
    """See ``Looks.controllers``."""
    async with open_plane(home, name) as plane:
        return tuple(map(_told, await sets_held(plane)))


def _told(seen: HeldSet) -> SetHeld:
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
