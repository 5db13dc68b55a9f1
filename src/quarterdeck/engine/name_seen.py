"""What the DNS servers say of a plane's name, as the planner takes it."""

from __future__ import annotations

from quarterdeck.actions.plane import Plane
from quarterdeck.endpoint.claims import CONSENT, stranger
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.endpoints import NameFact, Record, Sighting


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
        ttl=_other_ttl(plane, seen),
        servers=seen.servers,
        foreign=f"{why}; {CONSENT}" if why else "",
        torn=seen.torn,
        also=tuple(sorted(others - {site})),
        stamped=seen.by_hand or plane.guard is None or seen.ownership == claim.ownership,
    )


def _other_ttl(plane: Plane, seen: Sighting) -> float | None:
    """For how long addresses are handed out, if that is not as wanted. A person may choose a shorter time."""
    wanted, found = plane.resource.spec.endpoint.ttl, [each for each in (seen.record, *seen.others) if each is not None]
    longest = max((each.ttl for each in found), default=wanted)
    return None if longest == wanted or (seen.by_hand and longest < wanted) else float(longest)


def _site_of(plane: Plane, record: Record | None) -> str | None:
    """The site that a record leads to, if it is one of the plane's."""
    if record is None:
        return None
    found = (site for site, balancer in plane.balancers.items() if balancer.address.ip in record.addresses)
    return next(found, None)
