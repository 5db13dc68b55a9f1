"""Trying what people have written for their storage."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Sequence

from quarterdeck.engine.workspace.home import Home
from quarterdeck.errors import InvalidInput, PreconditionFailed, Unavailable
from quarterdeck.model.promises import Promise
from quarterdeck.model.units import MachineRole, MachineState
from quarterdeck.sites.port import ChecksStorage, Site


async def tried(home: Home, name: str, storage_class: str, machines: Sequence[str] = ()) -> AsyncIterator[Promise]:
    """Whether the commands of a site's storage class keep what they promise, with a volume of its own on two machines:
    the named ones, or any two that answer, of one zone if there are such.

    Raises NotFound, InvalidInput, PreconditionFailed where there are no such commands, Unavailable.
    """
    doing = f"trying storage class {storage_class} of site {name}"
    site = home.sites.open(await home.site(name))
    if not isinstance(site, ChecksStorage):
        raise PreconditionFailed(doing, "its volumes are attached by no commands of yours", "see docs/storage.md")
    if machines and len(machines) != 2:
        raise InvalidInput(doing, f"{len(machines)} machines are named", "name two, or none")
    first, second = machines or await _two(doing, site)
    async for each in site.check_storage(storage_class, f"check-{uuid.uuid4().hex[:8]}", first, second):
        yield each


async def _two(doing: str, site: Site) -> tuple[str, str]:
    up = [
        each
        for each in await site.machines()
        if each.role is MachineRole.CONTROL and each.state is MachineState.UP and each.declared
    ]
    pairs = [(one, other) for at, one in enumerate(up) for other in up[at + 1 :]]
    if not pairs:
        raise Unavailable(doing, f"it takes two machines, and {len(up)} answer")
    one, other = min(pairs, key=lambda pair: pair[0].zone != pair[1].zone)
    return one.name, other.name
