"""Looks that are not of one moment: some of what a driver sees, or all of it, is as it was a round ago."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from model.kinds import Kind
from quarterdeck.model.components import NAMED
from quarterdeck.model.units import MachineState, UnitState
from quarterdeck.model.world import ReplicaFact, World

_UNKNOWN = tuple((component, UnitState.UNKNOWN) for component in NAMED)


def mixed_looks(old: World, new: World) -> Iterator[tuple[Kind, str, World]]:
    """The observation ``new`` with answers of the one before. Only the memory is the driver's own, and always new."""
    facts = {fact.name: fact for fact in old.replicas}
    replicas = tuple(facts.get(each.name, _unknown(each.name)) for each in new.replicas)
    aged = replace(
        new,
        membership=old.membership,
        events_membership=old.events_membership,
        replicas=replicas,
        machines=old.machines,
        balancers=old.balancers,
        record=old.record,
        record_known=old.record_known,
        apiservers=old.apiservers,
    )
    looks = (
        (Kind.OLD_LOOK, "all is seen as it was", aged),
        (Kind.MIXED_LOOK, "members are seen as they were", replace(new, membership=old.membership)),
        (
            Kind.MIXED_LOOK,
            "members of the events' cluster are seen as they were",
            replace(new, events_membership=old.events_membership),
        ),
        (Kind.MIXED_LOOK, "machines are seen as they were", replace(new, replicas=replicas, machines=old.machines)),
        (
            Kind.MIXED_LOOK,
            "load balancers are seen as they were",
            replace(
                new,
                balancers=old.balancers,
                record=old.record,
                record_known=old.record_known,
                apiservers=old.apiservers,
            ),
        ),
    )
    seen = [new]
    for kind, name, look in looks:
        if look not in seen:
            seen.append(look)
            yield kind, name, look


def _unknown(name: str) -> ReplicaFact:
    return ReplicaFact(name=name, machine=MachineState.UNREACHABLE, units=_UNKNOWN, ready=None)
