"""Slots: from what the user wants to the places that replicas fill."""

from __future__ import annotations

from quarterdeck.model.slots import Slot


def slots(*, site: str, zones: tuple[str, ...], storage_class: str, replicas: int) -> tuple[Slot, ...]:
    """``replicas`` slots at ``site``, spread over its zones in turn."""
    return tuple(
        Slot(site=site, zone=zones[index % len(zones)], storage_class=storage_class, index=index)
        for index in range(replicas)
    )


def lent(slot: Slot) -> Slot:
    """The temporary second slot of a move from one replica to one replica.

    Two voters need each other, and an apiserver cannot start on a learner. With a second voter at the target,
    the target holds a quorum by itself from the moment it has two, and the source's one is never needed again.
    """
    return Slot(site=slot.site, zone="", storage_class=slot.storage_class, index=slot.index + 1, temporary=True)
