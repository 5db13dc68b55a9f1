"""Measuring a round trip from inside of a machine."""

from __future__ import annotations

import sys

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


def round_trip_command(address: str, port: int) -> tuple[str, ...]:
    """What prints the seconds that a TCP connection takes, or why there is none."""
    return sys.executable, "-I", "-S", "-c", _ROUND_TRIP, address, str(port)
