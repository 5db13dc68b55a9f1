"""The owner of a DNS record, and the driver that last changed it.

As in external-dns (its TXT registry), each name has a TXT record with its owner: ``_quarterdeck.NAME. TXT
"heritage=quarterdeck,quarterdeck/owner=PLANE/UID,quarterdeck/token=17"``. The token is that of the lease under which
the record was changed, and it is part of the prerequisites of the next change: the DNS server itself refuses the change
of a driver that was overtaken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quarterdeck.errors import Conflict, PreconditionFailed
from quarterdeck.model.endpoints import Ownership, RecordClaim, Sighting

_LABEL = "_quarterdeck"
_TEXT = re.compile(r"heritage=quarterdeck,quarterdeck/owner=([^,]+),quarterdeck/token=([0-9]{1,18})")


def claim_name(name: str) -> str:
    """The name of the claim on ``name``."""
    return f"{_LABEL}.{name}"


def claim_text(ownership: Ownership) -> str:
    """The text of a claim."""
    return f"heritage=quarterdeck,quarterdeck/owner={ownership.owner},quarterdeck/token={ownership.token}"


def ownership_of(texts: Sequence[str]) -> Ownership | None:
    """The owner by these texts. A text of another program is another owner's claim, too."""
    if not texts:
        return None
    found = _TEXT.fullmatch(texts[0]) if len(texts) == 1 else None
    return Ownership(found[1], int(found[2])) if found else Ownership(" and ".join(sorted(texts)), 0)


def stranger(sighting: Sighting, claim: RecordClaim) -> str:
    """The owner of a name, as text, if the claimer must not change it; "" if it may.

    It must not when another owner claims it, or when it leads elsewhere than to the claimer (whose maker may depend on
    that), unless the user has allowed to take it over.
    """
    if claim.take_over or sighting.by_hand:
        return ""
    if sighting.ownership is not None and sighting.ownership.owner != claim.owner:
        return f"it is claimed by {sighting.ownership.owner}"
    if sighting.record is not None and claim.addresses.isdisjoint(sighting.record.addresses):
        return f"it leads to {' '.join(sighting.record.addresses)}, which is none of the plane's own addresses"
    return ""


def require_own(doing: str, sighting: Sighting, claim: RecordClaim | None) -> None:
    """Raise PreconditionFailed when the name has another owner, Conflict when a newer driver has changed it. Without a
    claim, only unclaimed names may be changed.
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
            "run the command again to continue",
        )


#: What a user can do about a name of another owner.
CONSENT = "delete that record, or set spec.endpoint.takeOver: true"
