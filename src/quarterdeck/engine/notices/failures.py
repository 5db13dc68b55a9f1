"""Failures of what goes on beside driving a plane: each is told once, and again only after it went well."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from quarterdeck.engine.notices.events import Happening
from quarterdeck.engine.notices.troubles import MET, Troubles, in_words
from quarterdeck.errors import Unavailable


@dataclass(kw_only=True)
class Failures:
    """What failed and is tried again, by what it is in words. ``reason`` is that of the events that tell of it. What
    nobody could foresee is a defect: watchers are told of it as well, with its traceback.
    """

    troubles: Troubles
    reason: str
    _told: dict[str, str] = field(default_factory=dict)

    def went_well(self, what: str) -> None:
        """It did not fail: the next failure is news."""
        self._told.pop(what, None)

    async def tell(self, what: str, error: Exception, seen: str = "") -> None:
        """Tell of a failure; ``seen``: in these words."""
        known = isinstance(error, MET)
        seen = seen or (str(in_words(error)) if known else f"{type(error).__name__}: {error}")
        if self._told.get(what) == seen:
            return
        self._told[what] = seen
        with contextlib.suppress(Unavailable):  # then it is told with what comes next
            await self.troubles.tell(Happening(self.reason, f"{what}: {seen}"))
        if not known:
            await self.troubles.say_defect(what, error)
