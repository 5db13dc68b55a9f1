"""The programs that replicas may have, for interfaces which name them."""

from __future__ import annotations

from quarterdeck.components.catalogue import CATALOGUE, named
from quarterdeck.model.components import Component

__all__ = ["components", "named"]


def components() -> tuple[Component, ...]:
    """All programs that replicas may have, in start order; ``named`` parses a component's name."""
    return tuple(CATALOGUE)
