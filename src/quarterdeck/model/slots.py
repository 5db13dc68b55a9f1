"""Slots: the places that the user wants replicas in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Slot:
    """A place for one replica. ``zone`` "": any zone of the site. There may be several equal ones."""

    site: str
    zone: str
