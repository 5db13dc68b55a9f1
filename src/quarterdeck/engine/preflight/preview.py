"""The preview of a change: the findings of all checks and the forecast, from one observation of the plane."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

from quarterdeck.actions.plane import Plane
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.template import Revisions
from quarterdeck.engine.observation.observe import observer_of
from quarterdeck.engine.preflight import preconditions
from quarterdeck.engine.workspace import recorded
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.revisions import between, known, wanted
from quarterdeck.model.findings import Finding, Verdict
from quarterdeck.model.world import World
from quarterdeck.planner.simulated.dry_run import DryRun, dry_run

#: Changes an observed world before the forecast.
Supposing = Callable[[World], World]


def as_seen(world: World) -> World:
    """The world unchanged."""
    return world


async def preview(
    home: Home,
    current: ControlPlane,
    changed: ControlPlane,
    *,
    allow_distance: bool = False,
    supposing: Supposing = as_seen,
) -> tuple[tuple[Finding, ...], DryRun | None]:
    """All findings, and the forecast for the ``changed`` plane (None: a check refuses). Nothing is changed.
    ``supposing``: changes the world with which the forecast begins.

    Raises NotFound for an unknown site, InvalidInput for unreadable files of the spec.
    """
    target = await home.site(changed.spec.placement.site)
    async with AsyncExitStack() as stack:
        plane = await home.plane(current, stack)
        if (refusal := preconditions.out_of_reach(plane, target)) is not None:
            return (refusal,), None
        now, then = await _by_one_look(home, plane, changed, stack)
        findings = await preconditions.examine(plane, changed, now, target, allow_distance=allow_distance)
    refused = any(each.verdict is Verdict.REFUSE for each in findings)
    return findings, None if refused else dry_run(supposing(then))


async def forecast(home: Home, changed: ControlPlane, supposing: Supposing = as_seen) -> DryRun:
    """The forecast for a changed plane, without checks; nothing is changed. ``supposing``: as above. Raises
    InvalidInput for unreadable files of the spec.
    """
    current = await recorded.existing(home.store, changed.name)
    async with AsyncExitStack() as stack:
        opened = await home.plane(changed, stack, revisions=await _supposed(home, current, changed))
        return dry_run(supposing(await (await observer_of(opened)).observe()))


async def _by_one_look(home: Home, plane: Plane, changed: ControlPlane, stack: AsyncExitStack) -> tuple[World, World]:
    """The world of the plane with its present spec, and with the changed one."""
    revisions = await _supposed(home, plane.resource, changed)
    supposed = await observer_of(await home.plane(changed, stack, revisions=revisions))
    observer = await observer_of(plane)
    return await observer.observe_with(supposed)


async def _supposed(home: Home, current: ControlPlane, changed: ControlPlane) -> Revisions:
    """The revisions of the ``changed`` plane."""
    found = await known(home.store, current, guess=True)
    if (changed.spec, changed.status.revision) == (current.spec, current.status.revision):
        return found
    goal = await wanted(home.store, changed)
    via = await between(home.store, current, goal)
    templates = {**found.templates, **{each.name: each.spec for each in (*via, goal)}}
    return replace(found, goal=goal.name, via=tuple(each.name for each in via), templates=templates)
