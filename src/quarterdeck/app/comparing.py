"""What differs between a plane as it is wanted now and as it would be, and what each difference needs."""

from __future__ import annotations

from quarterdeck.api.controlplane import ControlPlane
from quarterdeck.components.difference import Difference, differences, spec_differences
from quarterdeck.engine import revisions
from quarterdeck.engine.home import Home


async def compared(home: Home, current: ControlPlane, wanted: ControlPlane) -> tuple[Difference, ...]:
    """Every difference, by path; content that the spec only names a file of is compared as well.

    Raises InvalidInput for a file that cannot be used.
    """
    now = await revisions.known(home.store, current, guess=True)
    after = await revisions.wanted(home.store, wanted)
    found = (*differences(now.template(now.goal), after.spec), *spec_differences(current.spec, wanted.spec))
    return tuple(sorted(found, key=lambda each: each.path))
