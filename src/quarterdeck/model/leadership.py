"""Who leads one kind of controllers, and what keeps anybody from it: facts, and how they are told to people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from quarterdeck.model.components import Component

#: Seconds without a renewal by a program of the plane after which its controllers do not work. A standby takes over
#: after 15 s at most, unless something keeps it from that.
UNLED_S = 30.0
#: Seconds after which a program that could not renew its lease gives it up and ends (client-go's RenewDeadline, by its
#: default): a lease that is older is held by none that works.
RENEWED_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """What keeps the programs of a plane from writing a lease. ``seen``: what it is, ``mend``: what to do about it."""

    seen: str
    mend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """The lease of one kind of controllers, in kube-system, as it was read.

    ``exists``: there is such a lease; ``holder``: its holderIdentity ("": nobody holds it); ``replica``: whose program
    says that it holds it ("": none does); ``foreign``: none of the plane's does, and it is renewed. ``idle_s``: seconds
    since a program of the plane renewed it (None: not known). ``expires_at``: until when no other program takes it, by
    the apiserver's clock in seconds since the epoch (None: not known), ``expired``: whether that is over. ``led``:
    whether a program of the plane leads (None: not known). ``obstacles``: why none can, as far as it was found out.
    """

    component: Component
    lease: str
    exists: bool = True
    holder: str = ""
    replica: str = ""
    foreign: bool = False
    idle_s: float | None = None
    expires_at: float | None = None
    expired: bool = True
    led: bool | None = None
    obstacles: tuple[Obstacle, ...] = ()

    @property
    def trouble(self) -> str:
        """Why nobody leads and what to do about it, in one sentence that stays the same while that lasts; "" if
        somebody leads, or it is not known.
        """
        if self.led is not False:
            return ""
        seen = [self._state, *(each.seen for each in self.obstacles)]
        mend = [*(each.mend for each in self.obstacles), *([self._mend] if self._mend else [])]
        return f"no process of this plane leads {self.component}: {'; '.join(seen)}: {', then '.join(mend)}"

    @property
    def works(self) -> bool:
        """Whether a program of the plane leads and has renewed its lease just now; also where it is not known."""
        return self.led is None or (self.led and (self.idle_s is None or self.idle_s < RENEWED_S))

    @property
    def hindered(self) -> bool:
        """Whether nobody leads for a reason that is not in the plane's programs."""
        return self.led is False and (bool(self.obstacles) or self.foreign or (bool(self.holder) and not self.expired))

    @property
    def expires(self) -> str:
        """Until when no other program takes the lease, as people read it; "" if it is not known."""
        return _utc(self.expires_at) if self.expires_at is not None else ""

    @property
    def _state(self) -> str:
        name = f"lease kube-system/{self.lease}"
        if not self.exists:
            return f"there is no {name}"
        if not self.holder:
            return f"nobody holds {name}"
        if self.foreign:
            return f"{name} is held and renewed by {self.holder!r}, which is not a process of this plane"
        if not self.expired:
            return f"{name} is held by {self.holder!r}, which does not renew it, until {self.expires or 'it expires'}"
        return f"{name} was held by {self.holder!r} and has expired"

    @property
    def _mend(self) -> str:
        """What to do about the lease itself."""
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
