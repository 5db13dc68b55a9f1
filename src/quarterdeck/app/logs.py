"""The logs of a plane's programs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from quarterdeck.api.plane.memory import memory_from_status
from quarterdeck.components.settings import unit_name
from quarterdeck.engine.preflight.reach import require_in_reach
from quarterdeck.engine.workspace import recorded, revisions
from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import NotFound
from quarterdeck.model.components import Component


@dataclass(frozen=True, slots=True)
class Tail:
    """The last lines of one program of one replica."""

    replica: str
    component: Component
    text: str


async def tails(
    home: Home, name: str, *, replica: str | None, component: Component | None, lines: int
) -> AsyncIterator[Tail]:
    """The logs of a plane, program by program. See ``Quarterdeck.logs``."""
    plane = await recorded.existing(home.store, name)
    every = memory_from_status(plane.status.memory).replicas
    records = [each for each in every if replica in (None, each.name)]
    if not records:
        known = ", ".join(each.name for each in every) or "none"
        raise NotFound(f"reading logs of plane {name}", f"no replica {replica}", f"replicas: {known}")
    await require_in_reach(home, plane)
    programs = (await revisions.known(home.store, plane, guess=True)).programs
    for record in records:
        site = home.sites.open(await home.site(record.site))
        for each in record.programs(programs) if component is None else (component,):
            text = await site.logs(record.machine, unit_name(name, record.name, each), lines=lines)
            yield Tail(record.name, each, text)
