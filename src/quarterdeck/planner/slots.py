"""Slots: the places that replicas fill, derived from the spec, and the cheapest assignment of replicas to slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quarterdeck.model.memory import Replica
from quarterdeck.model.seats import Slot


def slots(*, site: str, zones: tuple[str, ...], replicas: int, present: Iterable[Replica] = ()) -> tuple[Slot, ...]:
    """``replicas`` slots at ``site``, spread evenly over ``zones``.

    Where the zones cannot all get the same number, those with more replicas ``present`` get one more: another order of
    the zones moves nothing.
    """
    there = Counter(record.slot.zone for record in present if record.site == site)
    fullest = sorted(zones, key=lambda zone: (-there[zone], zones.index(zone)))
    each, more = divmod(replicas, len(zones))
    numbers = {zone: each + (zone in fullest[:more]) for zone in zones}
    rounds = range(max(numbers.values()))
    return tuple(Slot(site=site, zone=zone) for number in rounds for zone in zones if number < numbers[zone])


def lent(site: str) -> Slot:
    """The surge slot: a temporary second slot at ``site``, the target of a move from one replica to one replica.

    Two voters need each other, and an apiserver cannot start on a learner. With a second voter, the target is the
    quorum site from the moment it has two, and the voter of the source is never needed again.
    """
    return Slot(site=site, zone="")


@dataclass(frozen=True, slots=True)
class Match:
    """``filled`` has the replicas in the order of the slots that they fill, ``empty`` the slots without a replica."""

    filled: tuple[Replica, ...]
    empty: tuple[Slot, ...]


def match(slots: tuple[Slot, ...], replicas: Iterable[Replica], cost: Callable[[Replica], tuple[int, ...]]) -> Match:
    """Fill as many slots as possible, with the replicas of the lowest cost.

    A slot is for one zone or for any zone of its site: those for one zone are filled first, each by the cheapest
    replica there, and no other assignment is cheaper. Replicas of equal cost are taken in the given order.
    """
    left = sorted(replicas, key=cost)
    chosen: dict[int, Replica] = {}
    for number, slot in sorted(enumerate(slots), key=lambda each: each[1].zone == ""):
        found = next((each for each in left if fits(each, slot)), None)
        if found is not None:
            left.remove(found)
            chosen[number] = found
    return Match(
        filled=tuple(chosen[number] for number in sorted(chosen)),
        empty=tuple(slot for number, slot in enumerate(slots) if number not in chosen),
    )


def fits(record: Replica, slot: Slot) -> bool:
    """Whether a replica is at the place of a slot."""
    place = record.slot
    return place.site == slot.site and slot.zone in ("", place.zone)
