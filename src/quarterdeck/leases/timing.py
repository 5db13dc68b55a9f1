"""How long a lock is held without news, and what of that its holder may use."""

from __future__ import annotations

from dataclasses import dataclass

from quarterdeck.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """All in seconds, but ``drift``.

    ``duration``: nobody takes a lock before it has seen it unchanged for so long; a whole number over the Lease API.
    ``renew``: how often a holder renews it. ``retry``: after so long what failed is tried again. ``stop_within``: what
    controllers get to end. ``first``: for so long whoever asked for a lock goes first, once it is free.
    ``drift``: by how much of itself a clock's rate may be wrong (NTP: at most 0.0005).
    """

    duration: float = 15.0
    renew: float = 2.0
    retry: float = 1.0
    stop_within: float = 3.0
    first: float = 2.0
    drift: float = 0.01

    def __post_init__(self) -> None:
        """Raises InvalidInput for times with which nobody could hold a lock."""
        doing = "setting the times of locks"
        if not 0 <= self.drift < 1 or min(self.duration, self.renew, self.retry) <= 0 or self.stop_within < 0:
            raise InvalidInput(doing, f"{self} has a time that is none", "use times over 0, and a drift from 0 to 1")
        if usable(self.duration, self.drift) - self.stop_within < self.renew + self.retry:
            raise InvalidInput(
                doing,
                f"one renewal that fails, of every {self.renew:g} s, would end a lock of {self.duration:g} s",
                "make duration longer, or renew, retry or stop_within shorter",
            )


def usable(duration: float, drift: float) -> float:
    """For how many seconds by its own clock a holder may act after it has sent a renewal.

    Others wait for ``duration`` by their clocks, of which one may run fast by ``drift``, while the holder's may run
    slow by it: duration / (1 + drift) seconds pass in truth at least, and (1 - drift) of those are counted here.
    """
    return duration * (1 - drift) / (1 + drift)
