"""What the DNS servers say of a plane's name, as the planner takes it."""

from __future__ import annotations

from quarterdeck.actions.addresses import apiservers
from quarterdeck.actions.plane import Plane
from quarterdeck.endpoint.dns.claims import CONSENT, stranger
from quarterdeck.errors import QuarterdeckError
from quarterdeck.model.endpoints import APISERVERS, NameFact, Record, Sighting


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
    replicas, stray = _led_to(plane, seen.record) if site == APISERVERS else (frozenset[str](), False)
    return NameFact(
        site=site,
        replicas=replicas,
        stray=stray,
        ttl=_other_ttl(plane, seen),
        servers=seen.servers,
        foreign=f"{why}; {CONSENT}" if why else "",
        torn=seen.torn,
        uneven=seen.uneven,
        addresses=_addresses(seen.record) if not seen.by_hand else None,
        handed_out=_handed_out(seen),
        also=tuple(sorted(others - {site})),
        stamped=seen.by_hand or plane.guard is None or seen.ownership == claim.ownership,
    )


def _led_to(plane: Plane, record: Record | None) -> tuple[frozenset[str], bool]:
    """The replicas whose own addresses a record has, and whether it has others besides."""
    own, has = apiservers(plane), _addresses(record)
    named = frozenset(name for name, at in own.items() if at.host in has)
    return named, not {at.host for at in own.values()}.issuperset(has)


def _addresses(record: Record | None) -> tuple[str, ...]:
    return record.addresses if record is not None else ()


def _handed_out(seen: Sighting) -> frozenset[str] | None:
    """By all servers, if they say the same."""
    return frozenset(_addresses(seen.record)) if not seen.torn else None


def _other_ttl(plane: Plane, seen: Sighting) -> float | None:
    """For how long addresses are handed out, if that is not as wanted. A person may choose a shorter time."""
    wanted, found = plane.resource.spec.endpoint.ttl, [each for each in (seen.record, *seen.others) if each is not None]
    longest = max((each.ttl for each in found), default=wanted)
    return None if longest == wanted or (seen.by_hand and longest < wanted) else float(longest)


def _site_of(plane: Plane, record: Record | None) -> str | None:
    """The site that a record leads to, if it is one of the plane's, or that it leads to apiservers themselves."""
    if record is None:
        return None
    for site, edges in plane.balancers.items():
        if any(each.address.ip in record.addresses for each in edges.values()):
            return site
    own = {each.host for each in apiservers(plane).values()}
    return None if own.isdisjoint(record.addresses) else APISERVERS
