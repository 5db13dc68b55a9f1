"""What is promised by what people write for quarterdeck, and whether that is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One promise, in ``words``, that was tried. ``seen``: what was seen instead; "" when it was kept."""

    words: str
    seen: str = ""

    @property
    def kept(self) -> bool:
        """Whether it was kept."""
        return not self.seen
