"""Machines whose replicas were replaced repeatedly are cordoned, as a person would do."""

from __future__ import annotations

from datetime import UTC, datetime

from quarterdeck.actions.handlers import Handlers
from quarterdeck.actions.plane import Plane
from quarterdeck.api.site import Cordon, Site
from quarterdeck.model.steps.healing import CordonMachine
from quarterdeck.model.world import World
from quarterdeck.stores.port import amend


async def cordon_machine(plane: Plane, step: CordonMachine, _: World) -> None:
    """Cordon a machine, so that no plane places a replica there."""
    since = datetime.fromtimestamp(plane.clock(), UTC).replace(microsecond=0)
    made = Cordon(machine=step.machine, by=f"quarterdeck for plane {plane.name}", since=since)
    await amend(plane.store, Site, step.site, lambda seen: seen.with_cordon(made))


HANDLERS: Handlers = {CordonMachine: cordon_machine}
