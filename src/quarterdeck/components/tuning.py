"""etcd's timing for the distance between its members."""

from __future__ import annotations

import math
from dataclasses import dataclass

from quarterdeck.errors import InvalidInput

#: etcd refuses longer election timeouts (etcd: server/embed/config.go, maxElectionMs).
_LONGEST_ELECTION = 50.0
_STEP = 0.05


@dataclass(frozen=True, slots=True)
class Tuning:
    """etcd's raft timing, in seconds; upstream's defaults. Must be equal on all members."""

    heartbeat: float = 0.1
    election: float = 1.0


def tuning(rtt_seconds: float) -> Tuning:
    """The timing for members whose longest round trip is ``rtt_seconds``.

    Upstream's rule (etcd: docs/tuning): heartbeats every 0.5 - 1.5 round trips, elections after 10 or more. Never
    below upstream's defaults. Raises InvalidInput for a round trip that no timing fits.
    """
    if not 0 <= rtt_seconds <= _LONGEST_ELECTION / 10:
        raise InvalidInput(
            "choosing etcd's timing",
            f"the round trip between members is {rtt_seconds * 1000:.0f} ms",
            f"etcd works up to {_LONGEST_ELECTION / 10:.0f} s",
        )
    heartbeat = max(0.1, math.ceil(round(rtt_seconds / _STEP, 6)) * _STEP)
    return Tuning(heartbeat=round(heartbeat, 3), election=round(heartbeat * 10, 3))
