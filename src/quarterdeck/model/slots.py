"""Slots: the replicas that the user wants."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Slot:
    """A place for one replica. ``temporary`` slots are lent for the length of a move (see planner.slots)."""

    site: str
    zone: str
    storage_class: str
    index: int = 0
    temporary: bool = False
