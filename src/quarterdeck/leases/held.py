"""What a controller goes by while it runs."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.errors import LeaseLost


class Held:
    """A lock that is held. ``token`` is of this holder alone, and grows with each one: send it with what is written,
    and have whoever stores that refuse one that is lower than any it has seen.
    """

    def __init__(self, lock: str, token: int, holder: str, left: Callable[[], float]) -> None:
        """``left``: for how many seconds yet nobody else may act under the lock."""
        self.lock = lock
        self.token = token
        self.holder = holder
        self._left = left

    @property
    def left(self) -> float:
        """For how many seconds yet nobody else may act, if the lock is not renewed; none when it may be lost."""
        return max(0.0, self._left())

    def check(self) -> None:
        """Return only if nobody else may act under the lock now. Call it right before each thing that is done.

        Raises LeaseLost, also when this process was frozen and has just been woken. It can still be frozen right after
        this: against that only the token helps.
        """
        if self._left() <= 0:
            raise LeaseLost(
                f"acting under lock {self.lock!r} as {self.holder}",
                "it was not renewed in time, or given up",
                "end this; it begins again when the lock is held again",
            )
