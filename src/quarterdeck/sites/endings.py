"""Why a unit does not run, or is unhealthy, according to its machine and its own output."""

from __future__ import annotations

from quarterdeck.components.endings import LINES, present_reason, why_it_ended
from quarterdeck.errors import NotFound, PreconditionFailed, Unavailable
from quarterdeck.model.units import UnitState, UnitStatus
from quarterdeck.sites.port import SitePort

#: The errors of a machine that the site no longer has, that does not answer, or that refuses the login.
_TELLS_NOTHING = (NotFound, PreconditionFailed, Unavailable)


async def output_of(site: SitePort, machine: str, unit: str) -> str | None:
    """The end of a unit's output, as ``components.endings`` reads it; None if it cannot be read."""
    try:
        return await site.logs(machine, unit, lines=LINES)
    except _TELLS_NOTHING:
        return None


async def why_idle(site: SitePort, machine: str, unit: str) -> str:
    """That a unit does not run on a machine, and why, for people; "" if it runs, or if that is not known."""
    try:
        units = {each.name: each for each in await site.units(machine)}
    except _TELLS_NOTHING:
        return ""
    if unit in units and units[unit].state is UnitState.RUNNING:
        return ""
    why = await why_unit_ended(site, machine, unit)
    return f"{unit} does not run on {machine}" + (f": {why}" if why else "")


async def why_unit_ended(site: SitePort, machine: str, unit: str) -> str:
    """Why a unit ended last, even if it was restarted since; "" where its machine, or the unit, reports nothing. See
    ``components.endings.why_it_ended``.
    """
    try:
        units = await site.units(machine)
    except _TELLS_NOTHING:
        return ""
    if (output := await output_of(site, machine, unit)) is None:
        return ""
    status = next((each for each in units if each.name == unit), UnitStatus(name=unit, state=UnitState.ABSENT))
    return status.refused or why_it_ended(output, status.exit_code)


async def complaint(site: SitePort, machine: str, unit: str) -> str:
    """The last error of a running unit since its start; "" where it, or its machine, reports nothing."""
    return present_reason(await output_of(site, machine, unit) or "")
