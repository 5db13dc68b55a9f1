"""How the machines of a local site are kept apart: the port between the local driver and the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class MachinePlace:
    """Where a machine stands. Both numbers are 1 to 254, never change, and are unique: ``site_number`` among
    the sites of one home, ``machine_number`` among the machines of its site.
    """

    site: str
    site_number: int
    machine: str
    machine_number: int
    zone: str


class MachineIsolation(Protocol):
    """Gives each machine of a home an address, and its processes a place to run in.

    One object serves all sites of one home. Nothing is kept in memory between calls that a later process (the
    next run of the command line) would need: machines outlive the process that made them. Every call but
    ``address`` and ``launch_prefix`` is idempotent and has its own deadline; they raise Unavailable when the
    host does not allow it.
    """

    @property
    def name(self) -> str:
        """The name of the isolation, as users write it: ``loopback``, ``netns``."""
        ...

    @property
    def cannot_cut(self) -> str:
        """Why a machine cannot be cut off from the others; "" if it can."""
        ...

    def address(self, place: MachinePlace) -> str:
        """The machine's IP address: the same each time, known before the machine was ever prepared. No IO."""
        ...

    async def more_addresses(self, place: MachinePlace) -> tuple[str, ...]:
        """Addresses that seats on the machine can have besides its own, so that replicas which share it have the same
        ports all the same; none where nobody goes by that, or where they cannot be had. The machine was prepared.
        """
        ...

    def floating_address(self, place: MachinePlace) -> str | None:
        """The address that is this edge's first, and that any edge of the site can have; None where there
        is no such. No IO.
        """
        ...

    def led_addresses(self, site_number: int) -> tuple[str, ...]:
        """Addresses that lead to a site and are no machine's, so that any can have one; none where there are no such.
        No IO.
        """
        ...

    async def prepare(self, place: MachinePlace) -> None:
        """Make the machine's network, and what the site needs for it; one that is there stays as it is, cut off or not.

        Called before anything is started inside the machine; quick when there is nothing to do.
        """
        ...

    async def plug(self, place: MachinePlace) -> None:
        """``prepare``, and undo ``unplug`` and ``deafen``. Called before the machine boots or goes on."""
        ...

    def launch_prefix(self, place: MachinePlace) -> tuple[str, ...]:
        """What is put before an argv so that it runs inside the machine; ``()`` if nothing is needed.

        Called after ``prepare``. The program it starts must keep its environment, its standard streams and its
        session, and must replace itself by the rest of the argv or live as long as it. The machine's supervisor
        is started with it, and the units inherit the place.
        """
        ...

    async def unplug(self, place: MachinePlace) -> None:
        """Take the machine off the network without a word to its peers, as power loss or a hung machine does.

        Called before its processes are killed or frozen. Does nothing where the network cannot do that.
        """
        ...

    async def deafen(self, place: MachinePlace) -> None:
        """Lose all that is sent to the machine, until ``plug``; what it sends arrives. Where ``cannot_cut`` is ""."""
        ...

    async def release(self, place: MachinePlace) -> None:
        """Remove the machine's network; with the last machine of a site, also what the site had. Its processes
        are gone. Nothing happens if there is nothing.
        """
        ...
