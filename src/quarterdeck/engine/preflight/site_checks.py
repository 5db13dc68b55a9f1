"""What is checked of any site that is to get members of a plane."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from quarterdeck.api.site import Site
from quarterdeck.engine.observation.clock_skew import MOST_SKEW
from quarterdeck.errors import QuarterdeckError, Unavailable
from quarterdeck.model.capabilities import NEEDED, ClockOffset
from quarterdeck.model.findings import Finding, ok, refuse
from quarterdeck.model.units import Machine
from quarterdeck.sites.port import SitePort

T = TypeVar("T")


def unconnected(source: str, target: Site) -> Finding:
    """The networks of two sites are not connected: members could not reach each other."""
    kind = target.spec.driver
    where = f"isolation {target.spec.network}" if kind == "local" else f"driver {kind}"
    seen = f"the addresses of site {target.name}, of {where}, do not reach site {source}, nor the other way round"
    return refuse("network", seen, f"choose a site of the same kind as {source}")


def incapable(site: SitePort) -> Finding | None:
    """The capabilities that members need and a site does not have; None if it has them."""
    if cannot := NEEDED - site.capabilities:
        seen = f"sites like {site.name} do not have: {', '.join(sorted(cannot))}"
        return refuse("site", seen, "choose a site of another kind")
    return None


async def answer(check: Callable[[T], Awaitable[Finding]], asked: T) -> Finding:
    """The finding of a check; an error of it is a refusal."""
    name = check.__name__.replace("_", " ")
    try:
        return await check(asked)
    except Unavailable as error:
        return refuse(name, str(error), "unknown is not healthy: make it answer first")
    except QuarterdeckError as error:
        return refuse(name, f"{error.doing}: {error.seen}", error.next_step)


async def clocks_of(site: SitePort, machines: Sequence[Machine]) -> Finding:
    """Whether the clocks of these machines agree with this host's."""
    skews = {machine.name: await site.measure(machine.name, ClockOffset()) for machine in machines}
    worst = max(skews, key=lambda name: abs(skews[name]), default=None)
    if worst is not None and abs(skews[worst]) > MOST_SKEW:
        return refuse("clocks", f"the clock of {worst} is off by {skews[worst]:+.0f} s", "set it, and run NTP there")
    return ok("clocks", f"within {max((abs(skew) for skew in skews.values()), default=0.0):.1f} s")
