"""What would happen to a plane if something else were wanted of it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.engine.observation.observing import observer_of
from quarterdeck.engine.workspace import operations
from quarterdeck.engine.workspace.home import Home
from quarterdeck.engine.workspace.revisions import between, known, wanted
from quarterdeck.planner.simulated.dry_run import DryRun, dry_run


async def forecast(home: Home, resource: ControlPlane) -> DryRun:
    """What would happen if the plane were wanted so; nothing is changed. Raises InvalidInput for files of the spec that
    are none.
    """
    current = await operations.existing(home.store, resource.name)
    found = await known(home.store, current, guess=True)
    if (resource.spec, resource.status.revision) != (current.spec, current.status.revision):
        goal = await wanted(home.store, resource)
        via = await between(home.store, current, goal)
        templates = {**found.templates, **{each.name: each.spec for each in (*via, goal)}}
        found = replace(found, goal=goal.name, via=tuple(each.name for each in via), templates=templates)
    async with AsyncExitStack() as stack:
        opened = await home.plane(resource, stack, revisions=found)
        return dry_run(await (await observer_of(opened)).observe())
