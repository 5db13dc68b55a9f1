"""What differs between a plane as it is wanted now and as it would be, and what each difference needs."""

from __future__ import annotations

from quarterdeck.addons.changes import AddonChange, changes
from quarterdeck.addons.content import Content
from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.difference import Difference, differences, spec_differences
from quarterdeck.engine.workspace import addons, revisions
from quarterdeck.engine.workspace.home import Home


async def compared(home: Home, current: ControlPlane, wanted: ControlPlane) -> tuple[Difference, ...]:
    """Every difference, by path; content that the spec only names a file of is compared as well.

    Raises InvalidInput for a file that cannot be used.
    """
    now = await revisions.known(home.store, current, guess=True)
    after = await revisions.wanted(home.store, wanted)
    found = (*differences(now.template(now.goal), after.spec), *spec_differences(current.spec, wanted.spec))
    return tuple(sorted(found, key=lambda each: each.path))


async def compared_addons(
    home: Home, current: ControlPlane | None, wanted: ControlPlane
) -> tuple[tuple[Content, ...], tuple[AddonChange, ...]]:
    """What add-ons are to be, and what changes of them, object by object; what their sources say now is read, unless
    ``wanted`` names it.

    Raises what reading them does, and InvalidInput for a change that would take wanted objects away with a namespace.
    """
    if current is None:
        after = await addons.read(wanted)
        return after, changes((), after)
    before = await addons.before(home.store, current)
    after = addons.contents_of(await addons.wanted(home.store, wanted))
    addons.require_possible(wanted, before, after)
    return after, changes(before, after)
