"""What a kind of site can do besides what every site can."""

from __future__ import annotations

from enum import StrEnum


class Capability(StrEnum):
    """One thing that not every driver can do: asked for before it is relied on."""

    HOLDS = "holds"  # units can be held where they stand, and are let go by themselves (``Holds``)
    FLOATS = "floats"  # its edges take over each other's addresses (``Floats``)
    LEADS = "leads"  # an address can be led from machine to machine (``Leads``)
    ONE_ADDRESS = "one-address"  # replicas may have the address of load balancers, and so no port that these have
    FAULTS = "faults"  # things can be made to fail, for tests and drills (``Faults``)


#: What a plane needs of a site that it moves to: clients wait while it hands over.
NEEDED = frozenset({Capability.HOLDS})
