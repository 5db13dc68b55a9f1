"""Controllers that run in one process at a time: a primary lock, and locks for controllers that move from one program
to another.

The pattern of the proposal "Cloud Controller Manager Migration" (kubernetes/enhancements), as a library:
docs/leases.md.
"""

from quarterdeck.leases.manager import Manager
from quarterdeck.leases.metrics import LockMetrics
from quarterdeck.leases.record import Record, Timing
from quarterdeck.leases.sets import Controller, ControllerSet, Held, check_sets
from quarterdeck.leases.store import LockStore, MemoryLocks

__all__ = [
    "Controller",
    "ControllerSet",
    "Held",
    "LockMetrics",
    "LockStore",
    "Manager",
    "MemoryLocks",
    "Record",
    "Timing",
    "check_sets",
]
