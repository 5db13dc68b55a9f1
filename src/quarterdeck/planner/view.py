"""The world as the rules read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from quarterdeck.model.components import Component
from quarterdeck.model.memory import Replica
from quarterdeck.model.world import World
from quarterdeck.planner.members import lost
from quarterdeck.planner.reading import Reading, quorum_site_of
from quarterdeck.planner.revisions import outdated, wanted_revision
from quarterdeck.planner.rolling_restart import RollingRestart, rest
from quarterdeck.planner.stage import stage
from quarterdeck.planner.standbys import without_standbys


@dataclass(frozen=True, kw_only=True)
class View(Reading):
    """A reading, and the rolling restart that follows from it."""

    @cached_property
    def resting(self) -> RollingRestart | None:
        """The replicas of which some programs must stop, or stay stopped, until they have their next revision."""
        return rest(self.plane)

    def rests(self, replica: Replica, component: Component) -> bool:
        """Whether a program of a replica must not be started now, because of its rolling restart."""
        now = self.plane.resting
        return now is not None and now.has(replica, component)


def view(observed: World) -> View:
    """Read a world that has at least one slot."""
    world = without_standbys(observed)
    useless = lost(world)
    at = quorum_site_of(world)
    revision = wanted_revision(world)
    old = outdated(world, revision)
    now = stage(world, at, useless, old, revision)
    return View(
        world=world,
        quorum_site=at,
        heading=now.heading,
        wanted=now.wanted,
        missing=now.missing,
        unwanted=tuple(record for record in world.memory.replicas if record not in now.wanted),
        lost=useless,
        outdated=old,
        revision=revision,
        held_up=now.waiting,
        observed=observed,
    )
