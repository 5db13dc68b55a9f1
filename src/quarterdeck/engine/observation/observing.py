"""The observer of a plane, by what is wanted of it now."""

from __future__ import annotations

from quarterdeck.actions.plane import Plane
from quarterdeck.engine.observation.observe import Observer
from quarterdeck.engine.workspace.places import site_as_known
from quarterdeck.engine.workspace.settings import front_site, goal_of, planner_settings


async def observer_of(plane: Plane) -> Observer:
    """An observer of a plane, by its spec of now."""
    resource = plane.resource
    site = await site_as_known(plane.store, resource)
    return Observer(
        plane=plane,
        settings=planner_settings(resource),
        goal=goal_of(resource, site),
        deleting=resource.metadata.deletion_timestamp is not None,
        front=front_site(resource, plane.sites),
        promoted=resource.spec.endpoint.promoted,
    )
