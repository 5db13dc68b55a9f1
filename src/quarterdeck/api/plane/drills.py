"""Scheduled drills: which failure, how often, and at what time of the day."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import Annotated

from pydantic import AfterValidator, Field

from quarterdeck.api.base import Model
from quarterdeck.api.names import shortened
from quarterdeck.api.schema import InSchema
from quarterdeck.api.values import Seconds
from quarterdeck.model.faults import Fail

_HOUR = r"([01]\d|2[0-3]):[0-5]\d"
_WINDOW = re.compile(rf"{_HOUR}-{_HOUR}")
#: Seconds of the shortest interval: a plane must recover in between.
_OFTEN = 3600.0


def _window(text: str) -> str:
    if not _WINDOW.fullmatch(text) or text[:5] == text[6:]:
        raise ValueError(f"{shortened(text)} is not a time window, such as 02:00-04:00")
    return text


class DrillSchedule(Model):
    """A drill that the manager runs regularly."""

    #: The failure to inject, as the option `--fail` of `quarterdeck drill run`.
    fail: Fail
    #: The time from one drill to the next.
    every: Annotated[Seconds, Field(ge=_OFTEN)]
    #: The part of the day in UTC in which it may start, such as `22:00-04:00`; without it, any time.
    window: Annotated[str, AfterValidator(_window), InSchema({"pattern": f"^{_HOUR}-{_HOUR}$"})] | None = None

    def open_at(self, now: datetime) -> bool:
        """Whether a drill may run at that time."""
        if self.window is None:
            return True
        begin, end = (time.fromisoformat(each) for each in self.window.split("-"))
        at = now.astimezone(UTC).time()
        return begin <= at < end if begin < end else at >= begin or at < end


def _named_once(drills: tuple[DrillSchedule, ...]) -> tuple[DrillSchedule, ...]:
    names = [each.fail for each in drills]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"names {name.value} twice")
    return drills


DrillSchedules = Annotated[tuple[DrillSchedule, ...], AfterValidator(_named_once), InSchema({"uniqueItems": True})]
