"""Specs, status, journal and leases."""

from quarterdeck.stores.amend import amend
from quarterdeck.stores.identity import this_process
from quarterdeck.stores.lease import LeaseGuard, hold_lease
from quarterdeck.stores.memory import MemoryStore
from quarterdeck.stores.port import Event, EventType, JournalEntry, Lease, Outcome, Store, Versions
from quarterdeck.stores.sqlite import SqliteStore

__all__ = [
    "Event",
    "EventType",
    "JournalEntry",
    "Lease",
    "LeaseGuard",
    "MemoryStore",
    "Outcome",
    "SqliteStore",
    "Store",
    "Versions",
    "amend",
    "hold_lease",
    "this_process",
]
