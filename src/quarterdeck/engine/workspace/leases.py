"""The names of the leases in the store: who drives a plane, keeps those of a network, or asks for something."""

from __future__ import annotations

from quarterdeck.api.site import Isolation


def lease_name(plane: str) -> str:
    """The lease that whoever drives a plane holds."""
    return f"plane/{plane}"


def loan_name(plane: str) -> str:
    """The lease of a process that wants to drive the plane itself: its manager leaves it alone meanwhile."""
    return f"plane/{plane}/lent"


def comparison_lease(plane: str) -> str:
    """The lease of a process that wants the data of a plane's members compared: its manager does so soon."""
    return f"plane/{plane}/compared"


def manager_lease(network: Isolation) -> str:
    """The lease that the manager of the planes on a network holds."""
    return f"manager/{network}"


def next_manager_lease(network: Isolation) -> str:
    """The lease of who stands by to be the next one: it says that there is one, and keeps nobody from anything."""
    return f"manager/{network}/next"
