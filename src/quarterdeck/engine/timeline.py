"""What the report's timeline shows of one observation, as JSON for the journal."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from quarterdeck.model.world import World


def snapshot(world: World) -> Mapping[str, JsonValue]:
    """Members and their roles, the leader, backends per load balancer, the DNS record, ready apiservers."""
    membership = world.membership
    sites = {record.name: record.site for record in world.memory.replicas}
    members: dict[str, JsonValue] = {}
    if membership is not None:
        for member in membership.members:
            members[member.replica] = {
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
