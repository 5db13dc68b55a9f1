"""The programs of replicas, as users name them."""

from __future__ import annotations

from quarterdeck.components.catalogue import CATALOGUE, named
from quarterdeck.model.components import Component

__all__ = ["components", "named"]


def components() -> tuple[Component, ...]:
    """All programs that replicas may have, in the order in which they start."""
    return tuple(CATALOGUE)
