"""Making the clients of a promoted address wait, at the machine that may have it."""

from __future__ import annotations

import asyncio

from quarterdeck.components.traffic.keepalived import held_line, hold_file
from quarterdeck.errors import Unavailable
from quarterdeck.sites.port import SitePort

#: Seconds until clients wait, and between two checks of the unit's status. The unit may be giving the address away,
#: which takes it up to 2.6 s.
_HELD = 6.0
_LOOKED_AT_EVERY = 0.03
#: Lines of the unit's log that are read for that.
_LINES = 20


async def pause_clients(site: SitePort, machine: str, unit: str, seconds: float) -> None:
    """Return once nothing that clients send to the address comes through on a machine, for at most ``seconds`` from
    then on: they send it again. What came before is answered. Raises Unavailable where the unit does not confirm it in
    time.
    """
    await _hold(site, machine, unit, seconds, new=False)


async def pause_new_clients(site: SitePort, machine: str, unit: str, seconds: float) -> None:
    """The same for clients that are not connected yet. Existing connections continue."""
    await _hold(site, machine, unit, seconds, new=True)


async def resume_clients(site: SitePort, machine: str, unit: str) -> None:
    """End the wait: clients continue there, or where the address moves if nothing serves them there any more."""
    await site.write_files(machine, (hold_file(site.folder(machine, unit), 0.0, _another_number()),))


async def _hold(site: SitePort, machine: str, unit: str, seconds: float, *, new: bool) -> None:
    number = _another_number()
    await site.write_files(machine, (hold_file(site.folder(machine, unit), seconds, number, new=new),))
    try:
        async with asyncio.timeout(_HELD):
            while True:
                log = await site.logs(machine, unit, lines=_LINES)
                if held_line(number) in log.splitlines():
                    return
                await asyncio.sleep(_LOOKED_AT_EVERY)
    except TimeoutError as error:
        raise Unavailable(f"pausing the clients of {unit} on {machine}", "they were not paused in time") from error


def _another_number() -> int:
    return int(asyncio.get_running_loop().time() * 1_000_000)
