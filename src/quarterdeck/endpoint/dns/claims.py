"""Whose a DNS record is, and by which of its drivers it was last changed.

As external-dns does it (its TXT registry), each name has a TXT record beside it that says who keeps it:
``_quarterdeck.NAME. TXT "heritage=quarterdeck,quarterdeck/owner=PLANE/UID,quarterdeck/token=17"``. The token is that of
the lease under which the record was changed, and it is part of the prerequisites of the next change: what a driver
sends that was overtaken meanwhile is refused by the DNS server itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quarterdeck.errors import Conflict, PreconditionFailed
from quarterdeck.model.endpoints import Ownership, RecordClaim, Sighting

_LABEL = "_quarterdeck"
_TEXT = re.compile(r"heritage=quarterdeck,quarterdeck/owner=([^,]+),quarterdeck/token=([0-9]{1,18})")


def claim_name(name: str) -> str:
    """Where the claim on ``name`` is."""
    return f"{_LABEL}.{name}"


def claim_text(ownership: Ownership) -> str:
    """The text of a claim."""
    return f"heritage=quarterdeck,quarterdeck/owner={ownership.owner},quarterdeck/token={ownership.token}"


def ownership_of(texts: Sequence[str]) -> Ownership | None:
    """Who claims a name by these texts. What is not written by us is somebody else's claim all the same."""
    if not texts:
        return None
    found = _TEXT.fullmatch(texts[0]) if len(texts) == 1 else None
    return Ownership(found[1], int(found[2])) if found else Ownership(" and ".join(sorted(texts)), 0)


def stranger(sighting: Sighting, claim: RecordClaim) -> str:
    """Whom a name belongs to, in words, if it is not the claimer's to change; "" if it is.

    It is not when somebody else claims it, or when it leads elsewhere than to the claimer (whoever made it so may
    depend on that), unless the user has said that it may be taken over.
    """
    if claim.take_over or sighting.by_hand:
        return ""
    if sighting.ownership is not None and sighting.ownership.owner != claim.owner:
        return f"it is claimed by {sighting.ownership.owner}"
    if sighting.record is not None and claim.addresses.isdisjoint(sighting.record.addresses):
        return f"it leads to {' '.join(sighting.record.addresses)}, which is none of the plane's own addresses"
    return ""


def require_own(doing: str, sighting: Sighting, claim: RecordClaim | None) -> None:
    """Raise PreconditionFailed when the name is somebody else's, Conflict when a newer driver has changed it. Who
    claims nothing may change what nobody claims.
    """
    held = sighting.ownership
    if claim is None:
        if held is not None:
            raise PreconditionFailed(doing, f"it is claimed by {held.owner}", "change it under that name")
        return
    seen = stranger(sighting, claim)
    if seen:
        raise PreconditionFailed(doing, seen, CONSENT)
    if held is not None and held.owner == claim.owner and held.token > claim.token:
        raise Conflict(
            doing,
            f"a newer driver has changed it (its token is {held.token}, this one's {claim.token})",
            "run the command again to go on from what is there",
        )


#: What a user can do about a name that is somebody else's.
CONSENT = "have that record deleted, or say spec.endpoint.takeOver: true"
