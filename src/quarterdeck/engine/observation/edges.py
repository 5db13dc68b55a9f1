"""Which edges clients may be led to, and which are given up for a while, as far as one process has seen them.

Nobody has to remember it: who comes new takes every edge that does not answer for one that clients may use, until its
address has been in no answer of a DNS server for as long as clients may go on using it. Where addresses float, an edge
that does not answer may have that of any other: of each that is not seen to have its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from quarterdeck.model.edges import EdgeSeen, in_use

#: Seconds for which an edge may be silent before clients are led to others alone.
PATIENCE = 5.0


@dataclass(slots=True)
class Edges:
    """Times of the clock that nobody sets: when an edge of an address answered last (``heard``), and when a DNS server
    may have handed an address out last. Who was never seen before counts from now on.
    """

    heard: dict[tuple[str, str], float] = field(default_factory=dict)
    handed_out: dict[str, float] = field(default_factory=dict)

    def judged(
        self, seen: Sequence[EdgeSeen], in_answers: frozenset[str] | None, lifetime: float, at: float
    ) -> tuple[EdgeSeen, ...]:
        """What was seen of a site's edges, with what follows from it. ``in_answers``: the addresses that DNS servers
        hand out (None: not known). One alone is never given up: there is nobody else to be led to.
        """
        for each in seen:
            if each.status is not None or _key(each) not in self.heard:
                self.heard[_key(each)] = at
            if in_answers is None or each.address in in_answers or each.address not in self.handed_out:
                self.handed_out[each.address] = at
        others_lead = any(each.status is not None and each.status.healthy for each in seen)
        used = in_use(seen, {each.address for each in seen if at - self.handed_out[each.address] < lifetime})
        return tuple(
            replace(
                each,
                may_be_used=each.name in used,
                given_up=others_lead and each.status is None and at - self.heard[_key(each)] >= PATIENCE,
            )
            for each in seen
        )


def _key(edge: EdgeSeen) -> tuple[str, str]:
    """Edges of several sites have one name, those of one site can have one address."""
    return edge.name, edge.address
