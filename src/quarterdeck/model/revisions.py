"""What it takes to bring a replica from one revision to another."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.model.components import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a replica of another revision needs to be as the wanted one says: all of it made anew (``exchange``: another
    replica takes its place), some of its programs started anew, or no more than new files for programs that take these
    up while they run (``reload``: none of those that stop).
    """

    exchange: bool = False
    restart: frozenset[Component] = frozenset()
    reload: frozenset[Component] = frozenset()
