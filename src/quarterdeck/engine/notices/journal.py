"""What is told of steps in a plane's journal."""

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
    """Tell of a step what came of it, so many seconds ``ago``, and why it was taken."""
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


# What the report's timeline shows of one observation, as JSON for the journal.

#: Seconds between two rows of the journal that differ in nothing but how many connections there are.
CONNECTIONS_EVERY = 15.0


@dataclass
class JournalFilter:
    """What of the observations is worth a row of the journal, which is an fsync."""

    _last: Mapping[str, JsonValue] = field(default_factory=dict)
    _at: float = 0.0

    def news(self, world: World, now: float) -> Mapping[str, JsonValue] | None:
        """What to write down of this observation at ``now`` (seconds, any clock that only grows), if anything.

        Clients come and go all the time: how many connections there are is written down with everything else, and by
        itself only now and then.
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
