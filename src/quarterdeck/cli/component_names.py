"""What options for a component of a replica have in common."""

from __future__ import annotations

from quarterdeck.app.components import components, named

__all__ = ["PROGRAM", "named"]

#: The values of an option that takes a component, for its help; ``named`` parses them.
PROGRAM = f"[{'|'.join(components())}]"
