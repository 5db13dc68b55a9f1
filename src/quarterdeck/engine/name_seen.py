"""What the DNS servers say of a plane's name, as the planner takes it."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.actions.plane import Plane
from quarterdeck.endpoint.claims import CONSENT, stranger
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.endpoints import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFact:
    """The fields of ``model.world.World`` that tell of the name."""

    known: bool = True
    site: str | None = None
    trouble: str = ""
    foreign: str = ""
    torn: str = ""
    also: tuple[str, ...] = ()
    stamped: bool = True


async def see_name(plane: Plane) -> NameFact:
    """One look. Whatever goes wrong with it makes the name unknown, with the reason: a server that does not answer, a
    key that cannot be read any more, an alias where an address was.
    """
    try:
        seen = await plane.dns.look(plane.resource.host)
    except QuarterdeckError as error:
        return NameFact(known=False, trouble=str(error))
    claim = plane.claim
    why = stranger(seen, claim)
    others = {site for each in seen.others if (site := _site_of(plane, each)) is not None}
    site = _site_of(plane, seen.record)
    return NameFact(
        site=site,
        foreign=f"{why}; {CONSENT}" if why else "",
        torn=seen.torn,
        also=tuple(sorted(others - {site})),
        stamped=seen.by_hand or plane.guard is None or seen.ownership == claim.ownership,
    )


def _site_of(plane: Plane, record: Record | None) -> str | None:
    """The site that a record leads to, if it is one of the plane's."""
    if record is None:
        return None
    found = (site for site, balancer in plane.balancers.items() if balancer.address.ip in record.addresses)
    return next(found, None)
