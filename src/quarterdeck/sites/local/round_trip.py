"""Measuring a round trip from inside of a machine."""

from __future__ import annotations

import sys

from quarterdeck.errors import Unavailable
from quarterdeck.model.measures import RoundTrip
from quarterdeck.sites.local.machine import LocalMachine

#: Prints the median time of a few TCP connections, or why one failed.
_ROUND_TRIP = """
import socket, sys, time
times = []
for _ in range(5):
    since = time.monotonic()
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2.0).close()
    except OSError as error:
        print(error)
        break
    times.append(time.monotonic() - since)
else:
    print(sorted(times)[2])
"""


async def round_trip(where: LocalMachine, to: RoundTrip) -> float:
    """See ``measures.RoundTrip``."""
    said = await where.inside(sys.executable, "-I", "-S", "-c", _ROUND_TRIP, to.address, str(to.port))
    try:
        return float(said)
    except ValueError:
        doing = f"measuring the round trip from machine {where.name} to {to.address}:{to.port}"
        raise Unavailable(doing, f"nothing answers there: {said.strip()}") from None
