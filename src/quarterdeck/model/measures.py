"""What a site can measure at one of its machines. Each answer is a number, in the unit that is said here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """Seconds that a TCP connection to something that listens takes: the median of a few. Unavailable if nothing
    answers there.
    """

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class DiskSync:
    """Seconds until a small write to a disk of that storage class will survive a loss of power: the median of a few."""

    storage_class: str


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Seconds by which the machine's clock is ahead of the caller's (negative: behind)."""


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Bytes of memory that new units may take there, and on all other machines of the same host (``Machine.host``)
    together.
    """


Measure = RoundTrip | DiskSync | ClockOffset | FreeMemory
