"""Where processes listen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a process listens."""

    host: str
    port: int
