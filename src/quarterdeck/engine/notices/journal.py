"""The entries of steps and observations in a plane's journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from quarterdeck.actions.plane import Plane
from quarterdeck.model.steps.base import Step
from quarterdeck.model.world import World
from quarterdeck.stores.port import EntryOutcome, JournalEntry


async def tell_step(
    plane: Plane,
    step: Step,
    outcome: EntryOutcome,
    detail: Mapping[str, JsonValue],
    *,
    operation: str = "",
    ago: float = 0.0,
) -> None:
    """Write the outcome of a step, so many seconds ``ago``, and why it was taken."""
    await plane.store.append(
        JournalEntry(
            plane=plane.name,
            time=plane.clock() - ago,
            kind=step.kind,
            text=step.words,
            outcome=outcome,
            operation=operation,
            site=step.site,
            replica=str(getattr(step, "replica", "")),
            detail={"why": step.why, **step.facts, **detail},
        )
    )


# The facts of one observation that the report's timeline shows, as JSON for the journal.

#: Seconds between two rows of the journal that differ only in the number of connections.
CONNECTIONS_EVERY = 15.0


@dataclass
class JournalFilter:
    """Decides which observations are worth a row of the journal, which costs an fsync."""

    _last: Mapping[str, JsonValue] = field(default_factory=dict)
    _at: float = 0.0

    def news(self, world: World, now: float) -> Mapping[str, JsonValue] | None:
        """The row for this observation at ``now`` (seconds, any monotonic clock), if it has news.

        Clients come and go all the time: the number of connections is part of each row, but makes a row by itself only
        every ``CONNECTIONS_EVERY`` seconds.
        """
        seen = snapshot(world)
        same = _without_connections(seen) == _without_connections(self._last)
        if seen == self._last or (same and now - self._at < CONNECTIONS_EVERY):
            return None
        self._last, self._at = seen, now
        return seen


def _without_connections(seen: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    return {name: value for name, value in seen.items() if name != "connections"}


def snapshot(world: World) -> Mapping[str, JsonValue]:
    """Members and their roles, the leader, backends per load balancer, the DNS record, ready apiservers."""
    membership = world.membership
    sites = {record.name: record.site for record in world.memory.replicas}
    members: dict[str, JsonValue] = {}
    if membership is not None:
        for member in membership.members:
            members[member.key] = {
                "site": sites.get(member.replica, ""),
                "role": "learner" if member.learner else "voter",
                "health": str(member.health),
            }
    return {
        "members": members,
        "membershipKnown": membership is not None,
        "leader": membership.leader if membership is not None else None,
        "backends": {each.site: [*sorted(each.backends)] for each in world.balancers if each.running},
        "connections": {each.site: each.connections for each in world.balancers if each.running},
        "record": world.record,
        "ready": [*sorted(fact.name for fact in world.replicas if fact.ready)],
    }
