"""The names of the leases in the store: of drivers, of managers, and of requests to a manager."""

from __future__ import annotations

from quarterdeck.api.site import Isolation


def lease_name(plane: str) -> str:
    """The lease of the driver of a plane."""
    return f"plane/{plane}"


def loan_name(plane: str) -> str:
    """The lease of a process that wants to drive the plane itself: its manager releases the plane during it."""
    return f"plane/{plane}/lent"


def comparison_lease(plane: str) -> str:
    """The lease of a process that requests a data comparison from the plane's manager."""
    return f"plane/{plane}/compared"


def manager_lease(network: Isolation) -> str:
    """The lease of the manager of the planes on a network."""
    return f"manager/{network}"


def next_manager_lease(network: Isolation) -> str:
    """The lease of the standby manager: it only shows that there is one."""
    return f"manager/{network}/next"
