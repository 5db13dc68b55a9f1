"""The leader of one kind of controllers, and what prevents leadership: facts, and their words for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.model.components import Component

#: Seconds without a renewal by a program of the plane after which its controllers do not work. A standby takes over
#: after 15 s at most, unless something prevents it.
UNLED_S = 30.0
#: Seconds after which a program that could not renew its lease exits (client-go's default RenewDeadline): the holder
#: of an older lease does not work.
RENEWED_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What prevents the programs of a plane from writing a lease. ``seen``: what it is, ``mend``: how to fix it."""

    seen: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The lease of one kind of controllers, in kube-system, as it was read."""

    component: Component
    lease: str
    exists: bool = True
    #: Its holderIdentity; "": it has no holder.
    holder: str = ""
    #: The replica whose program reports that it holds it; "": none does.
    replica: str = ""
    #: It is renewed, but not by a program of the plane.
    foreign: bool = False
    #: Seconds since a program of the plane renewed it; None: unknown.
    idle_s: float | None = None
    #: Until when no other program takes it, by the apiserver's clock in seconds since the epoch; None: unknown.
    expires_at: float | None = None
    #: Whether that time has passed.
    expired: bool = True
    #: Whether a program of the plane leads; None: unknown.
    led: bool | None = None
    #: Why none can, as far as it was found out.
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def trouble(self) -> str:
        """Why no program leads and what to do about it, in one sentence that stays the same while that lasts; "" if
        one leads, or it is unknown.
        """
        if self.led is not False:
            return ""
        seen = [self._state, *(each.seen for each in self.obstacles)]
        mend = [*(each.mend for each in self.obstacles), *([self._mend] if self._mend else [])]
        return f"no process of this plane leads {self.component}: {'; '.join(seen)}: {', then '.join(mend)}"

    @property
    def works(self) -> bool:
        """Whether a program of the plane leads and renewed its lease recently; true where that is unknown."""
        return self.led is None or (self.led and (self.idle_s is None or self.idle_s < RENEWED_S))

    @property
    def hindered(self) -> bool:
        """Whether no program leads for a reason outside the plane's programs."""
        return self.led is False and (bool(self.obstacles) or self.foreign or (bool(self.holder) and not self.expired))

    @property
    def expires(self) -> str:
        """Until when no other program takes the lease, as people read it; "" if it is unknown."""
        return _utc(self.expires_at) if self.expires_at is not None else ""

    @property
    def _state(self) -> str:
        name = f"lease kube-system/{self.lease}"
        if not self.exists:
            return f"there is no {name}"
        if not self.holder:
            return f"{name} has no holder"
        if self.foreign:
            return f"{name} is held and renewed by {self.holder!r}, which is not a process of this plane"
        if not self.expired:
            return f"{name} is held by {self.holder!r}, which does not renew it, until {self.expires or 'it expires'}"
        return f"{name} was held by {self.holder!r} and has expired"

    @property
    def _mend(self) -> str:
        """How to fix the lease itself."""
        delete = f"run 'kubectl --namespace kube-system delete lease {self.lease}'"
        if self.foreign:
            return f"stop that process, then {delete}"
        if self.holder and not self.expired:
            return delete
        return "" if self.obstacles else f"see the log of {self.component}"


def _utc(moment: float) -> str:
    try:
        return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError):
        return "the year 10000 or later"
