"""What surrounds the planner, broken on purpose; and the lives that show it, each of a story with one kind of fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from fakes.site import FakeSite

from loop import session
from loop.faults import Kind
from loop.lives import PATIENCE, STORIES, Story
from quarterdeck.actions import hold
from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.observation.silence import Silence
from quarterdeck.engine.reconcile import step_backoff
from quarterdeck.engine.workspace.settings import planner_settings
from quarterdeck.model.bounds import Settings
from quarterdeck.model.membership import Health

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Mutant:
    """``kind`` None: a life in which nothing goes wrong shows it. Else the fault is at each ``every``-th effect, from
    the ``first`` one.
    """

    apply: Callable[[Patch], None]
    story: str
    kind: Kind | None = None
    first: int = 0
    every: int = 3

    def __str__(self) -> str:
        return self.apply.__name__

    @property
    def of(self) -> Story:
        return next(each for each in STORIES if each.name == self.story)


async def _nothing(self: Plane) -> None:
    return None


def neither_lease_nor_fence_is_asked(patch: Patch) -> None:
    def unfenced(_: session.Session, site: FakeSite) -> FakeSite:
        return site

    patch.setattr(Plane, "check", _nothing)
    patch.setattr(session.Session, "fenced", unfenced)


def a_hold_is_never_let_go(patch: Patch) -> None:
    async def forgotten(*_: object) -> None:
        return None

    patch.setattr(hold, "_let_go", forgotten)


def what_only_we_do_not_see_counts_as_down(patch: Patch) -> None:
    original = Silence.health.fget
    assert original is not None

    def health(self: Silence) -> Health:
        found = original(self)
        return Health.DOWN if found is Health.UNREACHABLE else found

    patch.setattr(Silence, "health", property(health))


def nobody_waits_for_connections_to_end(patch: Patch) -> None:
    def hasty(plane: ControlPlane) -> Settings:
        return replace(planner_settings(plane), drain=0.0)

    patch.setattr("quarterdeck.engine.observation.observe.planner_settings", hasty)


def time_passes_twenty_times_as_fast(patch: Patch) -> None:
    former = Plane.now
    patch.setattr(Plane, "now", lambda self: 20 * former(self))


def the_wall_clock_is_what_counts(patch: Patch) -> None:
    patch.setattr(Plane, "now", lambda self: self.clock())


def what_failed_is_never_tried_again(patch: Patch) -> None:
    patch.setattr(step_backoff, "SHORTEST", PATIENCE)
    patch.setattr(step_backoff, "LONGEST", PATIENCE)


MUTANTS = (
    Mutant(neither_lease_nor_fence_is_asked, "1 to 1", Kind.SENT_LATE_BACK),
    Mutant(a_hold_is_never_let_go, "1 to 1"),
    Mutant(what_only_we_do_not_see_counts_as_down, "3 to 3", Kind.SITE_UNSEEN),
    Mutant(nobody_waits_for_connections_to_end, "1 to 1"),
    Mutant(time_passes_twenty_times_as_fast, "1 to 1"),
    Mutant(the_wall_clock_is_what_counts, "1 to 1", Kind.CLOCK_AHEAD, every=1),
    Mutant(what_failed_is_never_tried_again, "1 to 1", Kind.FAILS),
)
